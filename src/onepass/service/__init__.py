"""An HTTP service for models that learn: events are stored durably, and predictions never wait for learning.

Read in this order: `wire` (what requests and answers look like), `served` (what a model can be asked), `host` (one
model in production: its events, the thread that writes and learns them, the copy that predicts), `state` (the folder
with all models), `web` (HTTP; no other part knows about it). `playground` is a page of its own that stores nothing.
"""

from onepass._extras import require

require("serve", "onepass.service")
