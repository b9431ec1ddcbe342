"""HTTP around the service, and nothing else that knows about it.

Read in this order: `operations` (what an operation is), `table` (all of them; routes and the OpenAPI document are made
from it), `endpoint` (the way of a request: who asks, what is sent, what is answered), `rows`, `models`, `access` and
`probes` (what each operation does), `app` (everything put together), `server` (how it runs). `bodies`, `arrow` and
`problems` know how content is written; `security`, `tokens` and `sessions` who may do what.
"""
