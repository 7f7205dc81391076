"""The peers: a file each, imported only where it is asked for. What is not installed is skipped."""

from __future__ import annotations

from importlib import metadata

PEERS = ("torch-struct", "supar", "lp-sparsemap", "entmax")


def versions() -> dict[str, str | None]:
    """The version of each peer; None if it is not installed."""
    return {peer: _version(peer) for peer in PEERS}


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None
