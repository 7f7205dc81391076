"""Addresses of the data, and SHA-256 of the files there.

The checksums of the three archives and of SNLI's training file are those that several public projects record for
these addresses; those of the other files were taken from copies of them, and agree with public records where any exist.
"""

from __future__ import annotations

from dataclasses import dataclass, field

_STANFORD = "https://nlp.stanford.edu"
_EWT = "https://raw.githubusercontent.com/UniversalDependencies/UD_English-EWT/r2.16"


@dataclass(frozen=True)
class Source:
    """A file of a publisher: a zip archive, or the file itself."""

    url: str
    files: dict[str, str]  # {member of the archive: path in the data folder}; {"": path} for a file that is no archive
    sha256: str  # of the file at the address
    checksums: dict[str, str] = field(default_factory=dict)  # SHA-256 of the files by path, as far as known


@dataclass(frozen=True)
class Dataset:
    """The sources behind one name of `--only`, and their size in words."""

    title: str
    size: str
    sources: tuple[Source, ...]


def _archive(url: str, sha256: str, folder: str, members: dict[str, str]) -> Source:
    """Members have their SHA-256, or "" if it is not known; they go to the folder under their own names."""
    places = {member: f"{folder}/{member.rpartition('/')[2]}" for member in members}
    known = {places[each]: checksum for each, checksum in members.items() if checksum}
    return Source(f"{_STANFORD}/{url}", places, sha256, known)


def _treebank(split: str, sha256: str) -> Source:
    name = f"en_ewt-ud-{split}.conllu"
    return Source(f"{_EWT}/{name}", {"": f"ud-ewt/{name}"}, sha256, {f"ud-ewt/{name}": sha256})


DATASETS = {
    "sst": Dataset("Stanford Sentiment Treebank", "0.8 MB, 3 MB on disk", (_archive(
        "sentiment/trainDevTestTrees_PTB.zip", "5c613a4f673fc74097d523a2c83f38e0cc462984d847b82c7aaf36b01cbbbfcc", "sst",
        {
            "trees/train.txt": "e2f3f41b0b1e6d4dddc0effe3bfc2d27ed8928079aa9a03d652311614fc5feb7",
            "trees/dev.txt": "0e9336aed6e4730e19f58d00a77b3f0297efdb755f7b5e598c98a05e3f97ea40",
            "trees/test.txt": "6e54806dee95cf80cd918e7dfb3f6770f6df24bf826f289a4d1f709e1c8f6761",
        },
    ),)),
    "snli": Dataset("SNLI 1.0", "95 MB, 507 MB on disk", (_archive(
        "projects/snli/snli_1.0.zip", "afb3d70a5af5d8de0d9d81e2637e0fb8c22d1235c2749d83125ca43dab0dbd3e", "snli",
        {
            "snli_1.0/snli_1.0_train.jsonl": "ee95dfbc57800f7b1f62b7602ad2b176c2b983210435a49238e660324a01e963",
            "snli_1.0/snli_1.0_dev.jsonl": "9c03faff70182ef086ebfeed2cffbabb5fcc6a84a8b3314decbbb5b01f07f4bf",
            "snli_1.0/snli_1.0_test.jsonl": "1147550151ca8b16ddb31d8dc0e739a670a65f7c3e64aac5951eaeff103fb220",
        },
    ),)),
    "ewt": Dataset("UD English EWT 2.16", "18 MB", (
        _treebank("train", "3fb78e2b55482c8ee00caa653af436c88c9e5bc9a73ce26e4ae3ddc79d2b7e7b"),
        _treebank("dev", "531a54ff90d6ab12201c5a50c3e78e6ddac4de69abc4bce5d275d3cd29efe2b6"),
        _treebank("test", "e266e515a0a7547657ed3d90d9ba46487d6bd251f27ad4269d4e8a427c8555cd"),
    )),
    "glove": Dataset("GloVe 840B 300d", "2.2 GB, 5.6 GB on disk", (_archive(
        "data/glove.840B.300d.zip", "c06db255e65095393609f19a4cfca20bf3a71e20cc53e892aafa490347e3849f", "vectors",
        {"glove.840B.300d.txt": ""},
    ),)),
}  # fmt: skip
