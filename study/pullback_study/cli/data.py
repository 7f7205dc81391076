"""`pullback data`: check and fetch the corpora."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from pullback_study.cli.options import SETTINGS
from pullback_study.cli.terminal import out, show, stop, user_errors

app = typer.Typer(**SETTINGS, help="Check and download the corpora and word vectors.")
Folder = Annotated[
    Path | None, typer.Argument(metavar="DIR", help="The data folder. [default: $PULLBACK_DATA]", show_default=False)
]


@app.command()
def check(folder: Folder = None) -> None:
    """List the data files, and say whether they are the published ones.

    For example: `pullback data check ~/data`

    The exit status is 1 if a file is not the published one, or if the folder is empty.
    """
    from pullback.viz import Table, visible
    from pullback_study.corpora import download, files, find_data

    with user_errors("check the data"):
        data = find_data(folder)
        rows, vectors = download.check(data), files.vector_names(data)
        notes = [f"word vectors: {visible(', '.join(vectors)) or 'none'}"]
        notes += [f"used by default: {visible(files.choose_vectors(data))}"] if vectors else []
        show(Table(visible(f"Corpora in {data}"), ["file", "MB", "checksum"], rows, notes))
    if wrong := [name for name, _, state in rows if state == download.WRONG]:
        stop(f"{', '.join(wrong)}: {download.WRONG}; move it away, and `pullback data download {data}` fetches it", code=1)
    if not vectors and all(size == "missing" for _, size, _ in rows):
        stop(f"There is no data in {data}; `pullback data download {data}` fetches it.", code=1)


@app.command()
def download(
    folder: Folder = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only `sst`, `snli`, `ewt` or `glove`; repeatable.")
    ] = None,
) -> None:
    """Download SST, SNLI, UD English EWT and GloVe 840B (2.3 GB) from their publishers.

    Every file is verified by its SHA-256 checksum. Existing files are verified and kept.

    For example: `pullback data download ~/data --only sst --only snli`
    """
    from pullback_study.corpora.download import DATASETS
    from pullback_study.corpora.download import download as fetch
    from pullback_study.tasks.schema import check_known

    given = folder or os.environ.get("PULLBACK_DATA")
    if not given:
        stop("no folder is given: for example `pullback data download ~/data`, or set PULLBACK_DATA")
    data = Path(given).expanduser()
    with user_errors(f"download into {data}"):
        for name in only or ():
            check_known(f"--only {name}: there is no such data", name, DATASETS)
        for dataset in (DATASETS[name] for name in only or DATASETS):
            out.print(f"{dataset.title} ({dataset.size})")
            out.print("\n".join(f"  {path}" for path in fetch(dataset.sources, data)) or "  already there")
    out.print(f"Next: pullback data check {data}")
