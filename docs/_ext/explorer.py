"""The explorer of the estimators as a page of the site: `_static/explorer.html`."""

from pathlib import Path


def _write(app, error):
    if error is None and app.builder.format == "html":
        from pullback_study.report.page import explorer_page

        Path(app.outdir, "_static", "explorer.html").write_text(explorer_page(), encoding="utf-8")


def setup(app):
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True}
