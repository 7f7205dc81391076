"""`pullback data`: check and fetch the corpora."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from pullback_study.cli.options import SETTINGS
from pullback_study.cli.terminal import out as console
from pullback_study.cli.terminal import stop, user_errors

app = typer.Typer(**SETTINGS, help="Check and download the corpora and word vectors.")

FolderArgument = Annotated[
    Path | None, typer.Argument(metavar="DIR", help="The data folder. [default: $PULLBACK_DATA]", show_default=False)
]


@app.command()
def check(folder: FolderArgument = None) -> None:
    """List the data files, and say whether they are the published ones.

    For example: `pullback data check ~/data`

    The exit status is 1 if a file is not the published one, or if the folder is empty.
    """
    from pullback.viz import Table
    from pullback_study.corpora import find_data
    from pullback_study.corpora.check import COLUMNS, WRONG
    from pullback_study.corpora.check import check as read
    from pullback_study.corpora.layout import choose_vectors, vector_names

    with user_errors():
        data = find_data(folder)
        rows, vectors = read(data), vector_names(data)
        notes = [f"word vectors: {', '.join(vectors) or 'none'}"]
        notes += [f"used by default: {choose_vectors(data)}"] if vectors else []
        shown = [[_shown(cell) for cell in row] for row in rows]
        console.print(Table(_shown(f"Corpora in {data}"), COLUMNS, shown, [_shown(note) for note in notes]).rich())
    if wrong := [name for name, _, state in rows if state == WRONG]:
        stop(f"{', '.join(map(_shown, wrong))}: {WRONG}; move it away, and `pullback data download {data}` fetches it", code=1)
    if not vectors and all(size == "missing" for _, size, _ in rows):
        stop(f"There is no data in {data}; `pullback data download {data}` fetches it.", code=1)


@app.command()
def download(
    folder: FolderArgument = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only `sst`, `snli`, `ewt` or `glove`; repeatable.")
    ] = None,
) -> None:
    """Download SST, SNLI, UD English EWT and GloVe 840B (2.2 GB) from their publishers.

    Every file is verified by its SHA-256 checksum. Existing files are verified and kept.

    For example: `pullback data download ~/data --only sst --only snli`
    """
    from pullback_study.corpora.download import DATASETS
    from pullback_study.corpora.download import download as fetch
    from pullback_study.tasks.schema import nearest

    given = folder or os.environ.get("PULLBACK_DATA")
    if not given:
        stop("no folder is given: for example `pullback data download ~/data`, or set PULLBACK_DATA")
    data = Path(given).expanduser()
    with user_errors():
        for name in only or ():
            if name not in DATASETS:
                raise ValueError(f"--only {name}: there is no such data; {nearest(name, list(DATASETS))}")
        for dataset in (DATASETS[name] for name in only or DATASETS):
            console.print(f"{dataset.title} ({dataset.size})", highlight=False)
            new = fetch(dataset.sources, data)
            for path in new:
                console.print(f"  {_shown(str(path))}", highlight=False, markup=False, soft_wrap=True)
            if not new:
                console.print("  already there")
    console.print(f"Next: pullback data check {data}", highlight=False, markup=False, soft_wrap=True)


def _shown(text: str) -> str:
    """Names and messages come from files: control characters in them are shown, not sent to the terminal."""
    from pullback.viz import visible

    return visible(text)
