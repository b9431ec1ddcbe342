"""Modules for libraries that need an environment of their own are tested where these are installed."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("skpro") else ["src/onepass/integrations/skpro"]
