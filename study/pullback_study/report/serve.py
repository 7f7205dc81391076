"""The report on loopback, made anew as runs progress.

Only two things are served, the page and its data, and only to this machine: the server listens on 127.0.0.1, and refuses
requests under another host's name, with which a page from elsewhere could reach it (DNS rebinding).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import socketserver
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pullback_study.report.collect import collect
from pullback_study.report.page import embedded, render
from pullback_study.report.write import now

_LOOK_EVERY = 2.0  # seconds between two looks at the run directories
_ASK_EVERY = 5.0  # seconds between two questions of a page
_REST = 5.0  # seconds between two reports, at least; and five times as long as making one takes
_AT_LEAST_EVERY = 60.0  # seconds: a run that stops changes no file


@dataclass(frozen=True)
class Snapshot:
    """A report as it is sent."""

    tag: str
    page: bytes
    data: bytes


class Reporter:
    """Keeps the newest report, and makes it anew in a thread of its own when run directories change.

    Args:
        root: the folder of runs.
        benchmarks: files of `python -m benchmarks --json`.
    """

    def __init__(self, root: Path, benchmarks: Sequence[Path] = ()) -> None:
        self._root = root
        self._benchmarks = benchmarks
        self._stop = threading.Event()
        self._seen = fingerprint(root)
        self._made_at = time.monotonic()
        self.snapshot = self._make()
        self._took = time.monotonic() - self._made_at

    def watch(self, say: Callable[[str], None]) -> None:
        """Look at the runs until `stop`; a report that cannot be made is said, and the last one stays."""
        while not self._stop.wait(_LOOK_EVERY):
            try:
                self.refresh()
            except Exception as error:
                say(f"the report could not be made, and will be tried again: {error!r}")

    def refresh(self) -> bool:
        """Make the report anew if something has changed and the last one is not too recent; whether it did."""
        age = time.monotonic() - self._made_at
        if age < max(_REST, 5 * self._took):
            return False
        seen = fingerprint(self._root)
        if seen == self._seen and age < _AT_LEAST_EVERY:
            return False
        self._seen, self._made_at = seen, time.monotonic()
        self.snapshot = self._make()
        self._took = time.monotonic() - self._made_at
        return True

    def stop(self) -> None:
        self._stop.set()

    def _make(self) -> Snapshot:
        data = collect(self._root, self._benchmarks)
        tag = f'"{hashlib.sha256(embedded(data).encode()).hexdigest()[:16]}"'
        whole = {**data, "live": {"tag": tag, "every": _ASK_EVERY}, "made": now()}
        return Snapshot(tag, render(whole, live=True).encode(), embedded(whole).encode())


def fingerprint(root: Path) -> int:
    """Changes when a run directory does: files there appear by renaming, which touches the directory."""
    found = []
    for folder in (root, root / "groups"):
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    if entry.is_dir():
                        found.append((entry.name, entry.stat().st_mtime_ns))
    return hash(tuple(sorted(found)))


class _Handler(BaseHTTPRequestHandler):
    server: ReportServer
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_GET(self) -> None:
        name = (self.headers.get("Host") or "").rpartition(":")
        if name[0] not in ("127.0.0.1", "localhost") or name[2] != str(self.server.server_port):
            self._send(421, b"this server answers to 127.0.0.1 and localhost alone\n")
            return
        snapshot = self.server.reporter.snapshot
        path = urlsplit(self.path).path
        if path not in ("/", "/data.json"):
            self._send(404, b"only the report is served here\n")
        elif self.headers.get("If-None-Match") == snapshot.tag:
            self._send(304, b"", tag=snapshot.tag)
        elif path == "/":
            self._send(200, snapshot.page, "text/html; charset=utf-8", snapshot.tag)
        else:
            self._send(200, snapshot.data, "application/json", snapshot.tag)

    def do_HEAD(self) -> None:
        self.do_GET()

    def _send(self, status: int, body: bytes, kind: str = "text/plain; charset=utf-8", tag: str = "") -> None:
        self.send_response(status)
        if tag:
            self.send_header("ETag", tag)
        if status != 304:
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD" and status != 304:
            self.wfile.write(body)

    def version_string(self) -> str:
        return "pullback"

    def log_message(self, *_: Any) -> None:
        """Nothing: the terminal belongs to the command."""


_HEADERS = {
    "Cache-Control": "no-cache",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class ReportServer(ThreadingHTTPServer):
    """Serves a reporter's newest report on 127.0.0.1; `port` 0 takes a free one."""

    daemon_threads = True

    def __init__(self, reporter: Reporter, port: int) -> None:
        self.reporter = reporter
        super().__init__(("127.0.0.1", port), _Handler)

    def server_bind(self) -> None:
        """Without asking for the host's name, which may take seconds."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]

    def handle_error(self, *_: Any) -> None:
        """A reader that goes away in the middle of an answer is no error."""

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/"


def serve(root: Path, benchmarks: Sequence[Path], *, port: int, say: Callable[[str], None]) -> None:
    """Serve the report until Ctrl-C, or until it is told to end."""
    say(f"reading the runs in {root}/")
    reporter = Reporter(root, benchmarks)
    try:
        server = ReportServer(reporter, port)
    except OSError as error:
        raise ValueError(f"--port {port} cannot be used: {error.strerror}; --port 0 takes a free one") from error
    threading.Thread(target=reporter.watch, args=(say,), daemon=True).start()
    say(f"{server.address} (this machine alone; Ctrl-C stops)")
    with server, contextlib.suppress(KeyboardInterrupt), _stoppable():
        server.serve_forever()
    reporter.stop()
    say("stopped")


@contextlib.contextmanager
def _stoppable() -> Iterator[None]:
    """SIGINT and SIGTERM raise KeyboardInterrupt, also in a process that a script started with SIGINT ignored."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, signal.default_int_handler) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
