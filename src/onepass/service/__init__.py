"""A service around models that learn: durable, one writer per model, predictions that never wait for learning.

Read in this order: `wire` (what requests and answers look like), `served` (what a model can be asked), `host` (one
model in production: its events, its writer, the belief that predictions are made with), `state` (the folder with all
models), `web` (HTTP, and nothing else that knows about it). `playground` is a page of its own that needs no state.
"""

from onepass._extras import require

require("serve", "onepass.service")
