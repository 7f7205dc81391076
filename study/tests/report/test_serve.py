"""The report on loopback: the page and its data, to this machine alone."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading

import pytest

from pullback_study.report import serve
from pullback_study.report.serve import Reporter, ReportServer, fingerprint
from pullback_study.synthetic.plans import table_cell
from report.folders import publish


@pytest.fixture(scope="module")
def server(folder):
    reporter = Reporter(folder)
    with ReportServer(reporter, 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def ask(server, path="/", method="GET", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


def test_it_listens_on_loopback_alone(server):
    assert server.socket.getsockname()[0] == "127.0.0.1"
    assert server.address == f"http://127.0.0.1:{server.server_port}/"


def test_the_page_and_its_data_are_served(server):
    answer, page = ask(server)
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert b'data-live="true"' in page
    answer, data = ask(server, "/data.json")
    assert answer.status == 200
    assert json.loads(data)["live"]["tag"] == answer.headers["ETag"]
    assert not set(data.decode()) & set("<>&")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"


@pytest.mark.parametrize(
    "path",
    ["/runs", "/../etc/passwd", "/%2e%2e/etc/passwd", "//etc/passwd", "/data.json/", "/index.html", "/favicon.ico",
     "/aaaaaaaaaaaaaaaa/result.json"],
)  # fmt: skip
def test_nothing_else_is_served(server, path):
    answer, body = ask(server, path)
    assert answer.status == 404
    assert body == b"only the report is served here\n"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_only_reading(server, method):
    assert ask(server, method=method)[0].status == 501


def test_a_head_has_no_body(server):
    answer, body = ask(server, method="HEAD")
    assert (answer.status, body) == (200, b"")
    assert int(answer.headers["Content-Length"]) > 10_000


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost.evil:{port}", ""]
)
def test_another_hosts_name_is_refused(server, host):
    answer, body = ask(server, Host=host.format(port=server.server_port))
    assert answer.status == 421
    assert b"<" not in body


def test_localhost_is_this_machine(server):
    assert ask(server, Host=f"localhost:{server.server_port}")[0].status == 200


def test_what_has_not_changed_is_not_sent_again(server):
    tag = ask(server, "/data.json")[0].headers["ETag"]
    answer, body = ask(server, "/data.json", **{"If-None-Match": tag})
    assert (answer.status, body) == (304, b"")
    assert ask(server, "/data.json", **{"If-None-Match": '"another"'})[0].status == 200


def test_garbage_does_not_stop_it(server):
    with socket.create_connection(("127.0.0.1", server.server_port)) as connection:
        connection.sendall(b"\x00\xff garbage\r\n\r\n")
        connection.recv(1000)
    assert ask(server)[0].status == 200


def test_the_report_follows_the_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(serve, "_REST", 0.0)
    reporter = Reporter(tmp_path)
    reporter._took = 0.0
    before = reporter.snapshot
    assert not reporter.refresh()
    assert reporter.snapshot is before
    publish(tmp_path, table_cell("linear", 3, grid=False).configs[0], 60.0, 0.0)
    assert reporter.refresh()
    assert reporter.snapshot.tag != before.tag
    assert json.loads(reporter.snapshot.data)["runs"]["counts"]["synthetic"]["done"] == 1


def test_a_report_is_not_made_twice_in_a_row(tmp_path):
    reporter = Reporter(tmp_path)
    publish(tmp_path, table_cell("linear", 3, grid=False).configs[0], 60.0, 0.0)
    assert not reporter.refresh()


def test_every_write_into_a_run_directory_is_seen(tmp_path):
    seen = [fingerprint(tmp_path / "none"), fingerprint(tmp_path)]
    publish(tmp_path, table_cell("linear", 3, grid=False).configs[0], 60.0, 0.0)
    seen.append(fingerprint(tmp_path))
    (path,) = tmp_path.iterdir()
    (path / ".new").write_text("x")
    os.replace(path / ".new", path / "metrics.jsonl")
    seen.append(fingerprint(tmp_path))
    assert len(set(seen)) == 3
    assert fingerprint(tmp_path) == seen[-1]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "kill"])
def test_the_command_serves_until_it_is_stopped(tmp_path, number):
    command = [sys.executable, "-m", "pullback_study", "report", "--serve", "--port", "0"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines = [process.stdout.readline(), process.stdout.readline()]
    port = int(re.search(r"http://127\.0\.0\.1:(\d+)/", lines[1])[1])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", "/")
    assert connection.getresponse().status == 200
    connection.close()
    process.send_signal(number)
    rest, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert rest == "stopped\n"


def test_a_port_that_is_taken_gets_a_hint(server):
    with pytest.raises(ValueError, match="--port 0 takes a free one"):
        serve.serve(server.reporter._root, [], port=server.server_port, say=lambda text: None)
