"""A file over HTTP, resumed where it broke off.

What has arrived waits in `NAME.part`, with the server's validator of that version of the file (its ETag, or its date)
in `NAME.part.json`. A resumed request carries the validator in `If-Range`: a server whose file has changed, or that
cannot resume, sends all of it, and the transfer begins again. NAME itself appears complete and checked, or not at all.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pullback_study.corpora.checksums import sha256
from pullback_study.runs import write_atomically

CHUNK = 1 << 18
TIMEOUT = 30.0  # seconds without a byte
TRIES = 5  # in a row that get no further than those before
PASSING = (408, 425, 429, 500, 502, 503, 504)  # answers that may be others a moment later

Progress = Callable[[str, int, int | None], None]  # what, bytes so far, bytes in all where known


class DownloadError(ValueError):
    """A download that cannot be finished, and why."""


def fetch(url: str, target: Path, *, checksum: str | None, progress: Progress, pause: float = 1.0) -> None:
    """Fetch a file; goes on where an earlier call broke off, and through broken connections.

    Args:
        url: its address.
        target: its path.
        checksum: its SHA-256, where known.
        progress: told about the bytes as they come.
        pause: seconds before the second try; twice as many before each further one.
    """
    partial = _Partial(url, target, resumable_blindly=checksum is not None)
    failures, most = 0, partial.size
    while not partial.complete:
        try:
            partial.receive(progress)
        except urllib.error.HTTPError as error:
            if error.code not in PASSING:
                raise DownloadError(f"{url}: the server answers {error.code} {error.reason}") from None
            reason = f"the server answers {error.code} {error.reason}"
        except (urllib.error.URLError, ConnectionError, http.client.HTTPException) as error:
            reason = str(getattr(error, "reason", "") or error or type(error).__name__)
        else:
            continue
        failures = 0 if partial.size > most else failures + 1
        most = max(most, partial.size)
        if failures >= TRIES:
            raise DownloadError(f"{url}: {reason}. Run the same command again to go on from byte {partial.size:,}")
        time.sleep(pause * 2**failures)
    partial.publish(checksum)


class _Partial:
    """What has arrived of a file so far."""

    def __init__(self, url: str, target: Path, *, resumable_blindly: bool) -> None:
        self._url, self._target = url, target
        self._path = target.with_name(f"{target.name}.part")
        self._note = target.with_name(f"{target.name}.part.json")
        self._resumable_blindly = resumable_blindly  # without a validator: the checksum will tell
        self.complete = False
        target.parent.mkdir(parents=True, exist_ok=True)

    @property
    def size(self) -> int:
        return self._path.stat().st_size if self._path.exists() else 0

    def receive(self, progress: Progress) -> None:
        """Ask for what is missing and write what comes; returns when the server has sent all of it."""
        validator = self._validator()
        if validator is None or (not validator and not self._resumable_blindly):
            self.discard()
        have = self.size
        headers = {"Accept-Encoding": "identity", "User-Agent": "pullback"}
        if have:
            headers |= {"Range": f"bytes={have}-", **({"If-Range": validator} if validator else {})}
        try:
            response = _open(urllib.request.Request(self._url, headers=headers))
        except urllib.error.HTTPError as error:
            if error.code != 416 or not have:
                raise
            self.complete = error.headers.get("Content-Range", "") == f"bytes */{have}"
            if not self.complete:
                self.discard()
                raise ConnectionError(f"the server has no bytes from {have} on") from None
            return
        with response:
            have, total = self._place(response, have)
            self._check_space(have, total)
            with open(self._path, "r+b" if have else "wb") as file:
                file.seek(have)
                progress(self._target.name, have, total)
                while chunk := _read(response):
                    file.write(chunk)
                    have += len(chunk)
                    progress(self._target.name, have, total)
        if total is not None and have != total:
            raise ConnectionError(f"the connection broke after {have:,} of {total:,} bytes")
        self.complete = True

    def publish(self, checksum: str | None) -> None:
        """Check the whole and give it its name."""
        if checksum is not None and (found := sha256(self._path)) != checksum:
            self.discard()
            raise DownloadError(
                f"{self._url}: the file's SHA-256 is {found}, not {checksum}; it was deleted. Either it was damaged on"
                " the way (try again) or the publisher has changed it"
            )
        with open(self._path, "rb") as file:
            os.fsync(file.fileno())
        os.replace(self._path, self._target)
        self._note.unlink(missing_ok=True)

    def discard(self) -> None:
        self._path.unlink(missing_ok=True)
        self._note.unlink(missing_ok=True)

    def _place(self, response: Any, have: int) -> tuple[int, int | None]:
        """Where the bytes of this answer belong, and how many there are in all; notes the file's version."""
        if response.status == 206:
            match = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("Content-Range", ""))
            if match is None or int(match[1]) != have:
                self.discard()
                raise ConnectionError(f"asked for the bytes from {have}, the server sent others")
            return have, None if match[2] == "*" else int(match[2])
        tag = response.headers.get("ETag", "")
        strong = tag if tag and not tag.startswith("W/") else response.headers.get("Last-Modified", "")
        write_atomically(self._note, json.dumps({"url": self._url, "validator": strong}))
        length = response.headers.get("Content-Length")
        return 0, int(length) if length else None

    def _validator(self) -> str | None:
        """The version that the bytes so far belong to, "" where the server names none; None if they are of no use."""
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            note = json.loads(self._note.read_text())
            if note["url"] == self._url:
                return str(note["validator"])
        return None

    def _check_space(self, have: int, total: int | None) -> None:
        free = shutil.disk_usage(self._target.parent).free
        if total is not None and total - have > free:
            raise DownloadError(
                f"{self._url}: {(total - have) / 1e9:.1f} GB to come, but {self._target.parent} has {free / 1e9:.1f} GB free"
            )


def _open(request: urllib.request.Request) -> Any:
    try:
        return urllib.request.urlopen(request, timeout=TIMEOUT)
    except TimeoutError as error:
        raise ConnectionError(error) from None


def _read(response: Any) -> bytes:
    """Errors of the network, told apart from those of the disk that the bytes go to."""
    try:
        return response.read(CHUNK)
    except OSError as error:
        raise ConnectionError(error) from None
