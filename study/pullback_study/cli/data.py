"""`pullback data`: check and fetch the corpora."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pullback_study.cli.options import SETTINGS
from pullback_study.cli.terminal import out as console
from pullback_study.cli.terminal import stop, user_errors

if TYPE_CHECKING:
    from pullback_study.corpora.download import Progress

app = typer.Typer(**SETTINGS, help="Check and download the corpora and word vectors.")

FolderArgument = Annotated[
    Path | None, typer.Argument(metavar="DIR", help="The data folder. [default: $PULLBACK_DATA]", show_default=False)
]


@app.command()
def check(folder: FolderArgument = None) -> None:
    """List the data files, with counts, checksums and coverage by word vectors.

    For example: `pullback data check ~/data`

    A second check is fast as long as no file has changed. The exit status is 1 if a file is broken or has the wrong
    number of rows, or if the folder is empty.
    """
    from pullback.viz import Table
    from pullback_study.corpora import find_data
    from pullback_study.corpora.check import FILE_COLUMNS, VECTOR_COLUMNS
    from pullback_study.corpora.check import check as read
    from pullback_study.corpora.layout import cache_folder, choose_vectors

    with user_errors():
        data = find_data(folder)
        with console.status("reading") as status:
            found = read(data, lambda name: status.update(f"reading {_shown(name)}"), cache_folder() / "checks")
        notes = [f"{', '.join(VECTOR_COLUMNS[3:])}: the share of the corpus's tokens that have a vector", *found.notes]
        if found.vectors:
            notes.append(f"used by default: {choose_vectors(data)}")
        vectors = found.vectors or [["none", "missing", *("" for _ in VECTOR_COLUMNS[2:])]]
        for title, columns, rows, below in (
            (f"Corpora in {data}", FILE_COLUMNS, found.files, []),
            (f"Word vectors in {data / 'vectors'}", VECTOR_COLUMNS, vectors, notes),
        ):
            shown = [[_shown(cell) for cell in row] for row in rows]
            console.print(Table(_shown(title), columns, shown, [_shown(note) for note in below]).rich())
    if found.problems:
        stop("\n".join(map(_shown, found.problems)), code=1)
    if found.empty:
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
            with _bars() as progress:
                new = fetch(dataset.sources, data, progress=progress)
            for path in new:
                console.print(f"  {_shown(str(path))}", highlight=False, markup=False, soft_wrap=True)
            if not new:
                console.print("  already there")
    console.print(f"Next: pullback data check {data}", highlight=False, markup=False, soft_wrap=True)


def _shown(text: str) -> str:
    """Names and messages come from files: control characters in them are shown, not sent to the terminal."""
    from pullback.viz import visible

    return visible(text)


@contextmanager
def _bars() -> Iterator[Progress]:
    """One bar per file."""
    from rich.progress import BarColumn, DownloadColumn, TaskID, TextColumn, TimeRemainingColumn, TransferSpeedColumn
    from rich.progress import Progress as RichProgress

    columns = (
        TextColumn("  {task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    with RichProgress(*columns, console=console, transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def progress(name: str, done: int, total: int | None) -> None:
            if name not in tasks:
                tasks[name] = bars.add_task(name, total=total)
            bars.update(tasks[name], completed=done, total=total)

        yield progress
