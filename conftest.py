"""Modules for libraries that need an environment of their own are tested where these are installed."""

from importlib.util import find_spec

collect_ignore = [f"src/onepass/integrations/{one}" for one in ("skpro", "sktime") if not find_spec(one)]
