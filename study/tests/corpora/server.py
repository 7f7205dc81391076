"""A small HTTP server for tests of downloads."""

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
    """What is served, how, and how often it was asked for."""

    files: dict[str, bytes] = field(default_factory=dict)  # content by path
    length: str | None = None  # the Content-Length that it claims; the true one by default, none for ""
    breaks: int = 0  # how many further answers break off
    failures: list[int] = field(default_factory=list)  # statuses of the next answers
    requests: int = 0
    address: str = ""


@contextmanager
def serve() -> Iterator[Site]:
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.requests += 1
            content = site.files.get(self.path)
            if site.failures or content is None:
                self.send_error(site.failures.pop(0) if site.failures else 404)
                return
            self.send_response(200)
            if site.length != "":
                self.send_header("Content-Length", site.length or str(len(content)))
            self.end_headers()
            if site.breaks:
                site.breaks -= 1
                content, self.close_connection = content[:1000], True
            with contextlib.suppress(ConnectionError):  # the client may have seen enough
                self.wfile.write(content)

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
