"""Sphinx settings: `make docs` builds the site into docs/_build/html, offline and without warnings."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

import pullback  # noqa: E402

project = "pullback"
author = "The pullback developers"
project_copyright = "the pullback developers"
version = release = pullback.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
extensions += ["docstrings", "drawing", "explorer", "links", "mathml", "notebooks"]  # of _ext/
source_suffix = {".md": "markdown", ".ipynb": "markdown"}  # _ext/notebooks.py
exclude_patterns = ["_build", "_ext"]
html_theme = "furo"
html_title = f"pullback {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist", "attrs_inline"]
myst_heading_anchors = 3
suppress_warnings = ["myst.header"]  # generated tables have headings of the third level alone

autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_inherit_docstrings = False  # what a base class documents is said there
autodoc_preserve_defaults = True
autodoc_class_signature = "mixed"
napoleon_use_rtype = False
napoleon_use_ivar = True
python_use_unqualified_type_names = True
highlight_language = "none"
