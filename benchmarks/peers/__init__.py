"""The peers: a file each, imported only where it is asked for. What is not installed is skipped."""

from __future__ import annotations

from importlib import metadata
from importlib.util import find_spec

PEERS = {
    "torch-struct": "torch_struct",
    "pytorch-crf": "torchcrf",
    "pysdtw": "pysdtw",
    "scipy": "scipy",
    "lapx": "lap",
    "monotonic-align": "monotonic_align",
    "supar": "supar",
    "lp-sparsemap": "lpsmap",
    "entmax": "entmax",
}
"""Their distributions, and the modules in these."""


def versions() -> dict[str, str | None]:
    """The version of each peer; None if it is not installed."""
    return {peer: _version(peer, module) for peer, module in PEERS.items()}


def _version(distribution: str, module: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "of unknown version" if find_spec(module) else None  # a folder on the path
