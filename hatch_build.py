"""The description of the package: README.md, whose links to files of the repository work only in the repository.

With an address `Repository` in `project.urls` they lead there, to the tag of the version; without one they are plain text.
"""

import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:|#)([^)]+)\)")


def description(text: str, address: str | None, version: str) -> str:
    """A README without links that only the repository has."""
    return LINK.sub(r"\1" if address is None else rf"[\1]({address.rstrip('/')}/blob/v{version}/\2)", text)


class Readme(MetadataHookInterface):
    """Hatchling calls `update` before it writes the metadata."""

    def update(self, metadata: dict) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        version = re.search(r'__version__ = "(.*)"', (Path(self.root) / "src/pullback/__init__.py").read_text("utf-8"))[1]
        address = metadata.get("urls", {}).get("Repository")
        metadata["readme"] = {"content-type": "text/markdown", "text": description(text, address, version)}
