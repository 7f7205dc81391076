"""Links to files outside of docs/ that have a page here: they work in the repository and on the site."""

import re

PAGES = (
    (r"src/pullback/inference/(?:engine/)?(\w+)/README\.md", r"algorithms/\1.md"),
    (r"CONTRIBUTING\.md", "contributing.md"),
    (r"CHANGELOG\.md", "changelog.md"),
    (r"benchmarks/README\.md", "benchmarks.md"),
    (r"README\.md", "index.md"),
    (r"docs/", ""),
)


def _rewrite(app, docname, source):
    up = "../" * docname.count("/")
    for path, page in PAGES:
        source[0] = re.sub(rf"\]\((?:\.\./)+{path}", lambda found, page=page: f"]({up}" + found.expand(page), source[0])


def setup(app):
    app.connect("source-read", _rewrite)
    return {"parallel_read_safe": True}
