"""How Sphinx builds the site: `make docs` writes it to build/site, and needs no network."""

import os
import sys
import tomllib
from pathlib import Path

from onepass import __version__

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

_about = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
project = "onepass"
author = "the onepass developers"
copyright = author
release = version = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "click_help",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "doctest_blocks",
    "http_api",
    "mathml",
    "notebooks",
    "own_members",
]
exclude_patterns = ["_extensions", "_style.md", "_templates", "conftest.py"]
templates_path = ["_templates"]
language = "en"
nitpicky = False
default_role = "py:obj"

# Pages
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "amsmath"]
myst_heading_anchors = 4
myst_dmath_double_inline = True
html_math_renderer = "mathml"

# API
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_mock_imports = ["skpro", "sktime"]  # an environment of their own has them, see requirements-peers.lock
autosummary_generate = True
autosummary_imported_members = True
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_xref_param_type = False

# Figures, each made by the example that is shown with it
sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "thumbnail_size": (640, 360),
    "show_signature": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "within_subsection_order": "FileNameSortKey",
    "remove_config_comments": True,
    "plot_gallery": "True",
}

# Versions: scripts/build_versions.py names those that are published side by side
html_context = {
    "docs_version": os.environ.get("ONEPASS_DOCS_VERSION", release),
    "docs_versions": os.environ.get("ONEPASS_DOCS_VERSIONS", "").split(),
}

# Looks
html_theme = "furo"
html_title = "onepass"
html_logo = html_favicon = "_static/logo.svg"
html_sidebars = {
    "**": [
        f"sidebar/{part}.html" for part in ("brand", "versions", "search", "scroll-start", "navigation", "scroll-end")
    ]
}
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b5394", "color-brand-content": "#0b5394"},
    "dark_css_variables": {"color-brand-primary": "#7fb8ea", "color-brand-content": "#7fb8ea"},
    "footer_icons": [
        {"name": name, "url": _about["urls"][name], "html": name, "class": ""} for name in ("Source", "Issues")
    ],
}
pygments_style, pygments_dark_style = "default", "native"  # no colour has a contrast below 4.5:1
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
suppress_warnings = ["config.cache"]
