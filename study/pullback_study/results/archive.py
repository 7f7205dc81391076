"""Archives of the runs behind the results pages: what is needed to make a page again, and to continue its runs.

    docs/results/runs-<study>.tar.xz    runs/<id>/{config.json, metrics.jsonl, result.json}

of every run that is done, and of the groups that were interrupted also `runs/.work/<id>/{members.json, checkpoint.pt}`, with
which another machine continues them. The same runs make the same bytes.
"""

from __future__ import annotations

import io
import json
import lzma
import tarfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from pullback_study.results.choice import Runs
from pullback_study.runs.files import write_atomically
from pullback_study.runs.provenance import refuse_unfit
from pullback_study.runs.run import WORK

DONE = ("config.json", "metrics.jsonl", "result.json")
INTERRUPTED = ("members.json", "checkpoint.pt")


def archive_of(page: Path) -> Path:
    """The archive beside a page."""
    return page.with_name(f"runs-{page.stem}.tar.xz")


def pack(runs: Runs, tasks: Sequence[str], archive: Path, *, force: bool = False) -> int:
    """Write the runs of some tasks into an archive, those that are done and the checkpoints of others; how many are done.

    Raises `ValueError` for runs that nobody can make again, unless `force` is given.
    """
    done = [run for run in runs.all if run.task in tasks and run.state == "done"]
    if not force:
        refuse_unfit(done, "archives hold runs of clean commits")
    started = {run.id for run in runs.all if run.task in tasks}
    paths = {run.path / name for run in done for name in DONE}
    for members in (runs.folder / WORK).glob("*/members.json"):
        if not started.isdisjoint(names := json.loads(members.read_text())):
            paths |= {members.with_name(name) for name in INTERRUPTED}
            paths |= {runs.folder / run / name for run in names for name in DONE}
    write_atomically(archive, _packed(runs.folder, (path for path in paths if path.is_file())))
    return len(done)


def unpack(archive: Path, folder: Path) -> Runs:
    """The runs of an archive, in a folder."""
    with tarfile.open(archive) as members:
        members.extractall(folder, filter="data")
    return Runs(folder / "runs")


def _packed(folder: Path, paths: Iterable[Path]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path in sorted(paths):
            content = path.read_bytes()
            member = tarfile.TarInfo(str(Path("runs") / path.relative_to(folder)))
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return lzma.compress(buffer.getvalue(), preset=9 | lzma.PRESET_EXTREME)
