"""Where the data lies, and how many examples the publishers' files have."""

from __future__ import annotations

import os
import re
from pathlib import Path

SPLITS = ("train", "dev", "test")
SST_TREES = {"train": 8544, "dev": 1101, "test": 2210}
SST_BINARY = {"train": 6920, "dev": 872, "test": 1821}
SNLI_PAIRS = {"train": 550_152, "dev": 10_000, "test": 10_000}
SNLI_PART = 100_000  # pairs in a training file named `first100k`
EWT_SENTENCES = {"train": 12_544, "dev": 2001, "test": 2077}  # release 2.16
VECTOR_ENDINGS = (".npz", ".txt", ".txt.gz")
PREFERRED_VECTORS = ("glove.840B.300d", "googlenews_mapped.300d")
VECTOR_ORDER = f"{PREFERRED_VECTORS[0]} if it is in `vectors/`, else {PREFERRED_VECTORS[1]}, else the widest"


def find_data(data: Path | None = None) -> Path:
    """The data folder: the one given, else `$PULLBACK_DATA`."""
    given = data or os.environ.get("PULLBACK_DATA")
    if not given:
        raise ValueError(
            "no data folder is given: pass --data DIR or set PULLBACK_DATA; `pullback data download DIR` fetches the data"
        )
    folder = Path(given).expanduser()
    if not folder.is_dir():
        source = "" if data else " (from PULLBACK_DATA)"
        raise ValueError(f"{given}{source} is not a folder; `pullback data download DIR` fetches the data")
    return folder


def sst_file(data: Path, split: str) -> Path:
    """The trees of a split."""
    return first_of(data / "sst", f"{split}.txt", f"{split}.txt.gz")


def snli_file(data: Path, split: str) -> Path:
    """The pairs of a split; for training the whole corpus if it is there, else its first 100,000 pairs."""
    name = f"snli_1.0_{split}"
    part = (f"{name}.first100k.jsonl", f"{name}.first100k.jsonl.gz") if split == "train" else ()
    return first_of(data / "snli", f"{name}.jsonl", f"{name}.jsonl.gz", *part)


def ewt_file(data: Path, split: str) -> Path:
    """The treebank of a split: UD English EWT."""
    return first_of(data / "ud-ewt", f"en_ewt-ud-{split}.conllu", f"en_ewt-ud-{split}.conllu.gz")


def choose_vectors(data: Path, name: str | None = None) -> str:
    """The name of the word vectors to use: the one given if it exists, else the best ones in `data/vectors`.

    The order is GloVe 840B, the vectors of the recorded results, then the widest (the number in `NAME.300d`), then by name.
    """
    if name is not None:
        vector_file(data, name)
        return name
    names = vector_names(data)
    if not names:
        raise ValueError(f"no word vectors in {data / 'vectors'}; `pullback data download {data} --only glove` fetches some")
    return min(names, key=_rank)


def _rank(name: str) -> tuple[int, int, str]:
    width = re.search(r"\.(\d+)d$", name)
    known = PREFERRED_VECTORS.index(name) if name in PREFERRED_VECTORS else len(PREFERRED_VECTORS)
    return known, -int(width[1]) if width else 0, name


def vector_file(data: Path, name: str) -> Path:
    """The file of word vectors of that name in `data/vectors`; or `name` itself if it is the path of a file."""
    for ending in ("", *VECTOR_ENDINGS):
        if (data / "vectors" / f"{name}{ending}").is_file():
            return data / "vectors" / f"{name}{ending}"
    if Path(name).is_file():
        return Path(name)
    there = ", ".join(vector_names(data)) or "none"
    raise ValueError(f"no vectors {name!r} in {data / 'vectors'}; there are: {there}. Pass one of these, or a file's path")


def vector_names(data: Path) -> list[str]:
    """The names of the vector files in `data/vectors`."""
    files = [path.name for path in (data / "vectors").glob("*") if path.is_file()]
    return sorted({file.removesuffix(ending) for file in files for ending in VECTOR_ENDINGS if file.endswith(ending)})


def first_of(folder: Path, *names: str) -> Path:
    """The first of these files that exists."""
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise ValueError(f"no {' or '.join(names)} in {folder}; `pullback data check` shows what is missing")
