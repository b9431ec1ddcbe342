"""HTTP around the service, and nothing else that knows about it.

Read in this order: `operations` (what an operation is), `table` (all of them, from which routes and the OpenAPI document
are made), `endpoint` (the way of a request: who asks, what is sent, what is answered), `rows`, `models` and `access` (what
each operation does), `app` (everything put together). `bodies`, `arrow` and `problems` know how content is written,
`security`, `tokens` and `sessions` who may do what.
"""
