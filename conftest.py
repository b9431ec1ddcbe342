"""What is collected depends on the libraries that are installed: pages and modules for skpro need skpro."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("skpro") else ["src/onepass/integrations/skpro", "docs/how-to/skpro.md"]
