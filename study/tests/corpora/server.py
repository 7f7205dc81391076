"""A small HTTP server for tests of downloads: ranges, broken connections, and wrong headers and bodies."""

from __future__ import annotations

import contextlib
import hashlib
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CONTENT = random.Random(0).randbytes(50_000)


@dataclass
class Site:
    """What is served, how, and what was asked for.

    Args:
        files: content by path.
        ranges: whether the server can resume.
        length: the Content-Length that it claims; the true one by default, none for "".
        shift: how far the server misses the first byte that was asked for.
        breaks: how many further answers break off, after `broken_after` bytes.
        failures: statuses of the next answers.
        requests: the `Range` of each request so far, None where it had none.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    ranges: bool = True
    length: str | None = None
    shift: int = 0
    breaks: int = 0
    broken_after: int = 1000
    failures: list[int] = field(default_factory=list)
    requests: list[str | None] = field(default_factory=list)
    address: str = ""


@contextmanager
def serve() -> Iterator[Site]:
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            site.requests.append(wanted)
            content = site.files.get(self.path)
            if site.failures or content is None:
                self.send_error(site.failures.pop(0) if site.failures else 404)
                return
            start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and site.ranges else 0
            if start:
                start, site.shift = start + site.shift, 0
            if start >= len(content) > 0:
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(content)}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
            if site.length != "":
                self.send_header("Content-Length", site.length or str(len(content) - start))
            self.end_headers()
            if site.breaks:
                site.breaks -= 1
                content = content[: start + site.broken_after]
                self.close_connection = True
            with contextlib.suppress(ConnectionError):  # the client may have seen enough
                self.wfile.write(content[start:])

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    site.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def digest(content):
    return hashlib.sha256(content).hexdigest()


def everything(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
