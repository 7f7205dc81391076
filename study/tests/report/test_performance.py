"""Benchmark files in the report."""

import json

import pytest

from pullback_study.report.performance import find, performance

MEASURED = {
    "environment": {"date": "today", "processor": "<b>fast</b>"},
    "command": "python -m benchmarks --quick",
    "rows": [
        {
            "benchmark": "argmax", "case": "n = 10", "threads": 1, "ours": {"samples": [1e-4, 2e-4, 3e-4]},
            "peers": {"peer": {"samples": [0.02]}}, "difference": 1e-7, "figures": {"GFLOP/s": 12.5, "kind": "dense"},
            "note": " slow ", "fastest": "peer", "ratio": 100.0,
        },
        {
            "benchmark": "argmax", "case": "n = 20", "threads": 2, "ours": None, "peers": {}, "difference": None,
            "figures": {}, "note": "", "fastest": None, "ratio": None,
        },
    ],
}  # fmt: skip


def test_a_file_becomes_tables(tmp_path):
    path = tmp_path / "benchmarks.json"
    path.write_text(json.dumps(MEASURED))
    (found,) = performance([path])
    (table,) = found["tables"]
    first = dict(zip(table["columns"], table["rows"][0], strict=True))
    assert first["pullback, ms"] == ["0.200 ± 0.050", 0.2]
    assert first["peer, ms"] == ["20 ± 0.000", 20.0]
    assert first["times faster than the fastest peer"] == ["100×", 100.0]
    assert first["largest difference"] == ["1.0e-07", 1e-7]
    assert first["GFLOP/s"] == ["12.5", 12.5]
    assert table["columns"][-1] == "note"
    second = dict(zip(table["columns"], table["rows"][1], strict=True))
    assert second["pullback, ms"] is None


def test_real_rows_can_be_read(tmp_path):
    report = pytest.importorskip("benchmarks.report", reason="the benchmarks are not in an installed package")
    from benchmarks.comparison import Row
    from benchmarks.timing import Timing

    path = tmp_path / "real.json"
    row = Row("marginals", "n = 30", 1, Timing((1e-3, 2e-3)), {"peer": Timing((0.1,))}, 1e-6, {"floor": Timing((1e-4,))})
    report.write_json(path, {"date": "today"}, "python -m benchmarks", [row])
    (found,) = performance([path])
    assert found["tables"][0]["rows"][0][2] == ["1.5 ± 0.250", 1.5]


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"rows": 3}', '{"rows": [{}], "environment": {}}', '{"rows": []}'])
def test_another_file_is_a_message_and_not_a_stack_trace(tmp_path, content):
    path = tmp_path / "other.json"
    path.write_text(content)
    (found,) = performance([path])
    assert "python -m benchmarks --json" in found["problem"]


def test_files_are_found_in_the_usual_places(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("docs/performance.json", "runs/benchmarks-gpu.json", "docs/other.json", "runs/other.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}" if "other" in name else json.dumps(MEASURED))
    assert [path.name for path in find(tmp_path / "runs")] == ["performance.json", "benchmarks-gpu.json"]
