"""The report as a file: what is in it, and what must never get into it."""

import html
import json
import re
from html.parser import HTMLParser

import pytest
from typer.testing import CliRunner

from pullback_study.cli import app
from pullback_study.report.page import report
from pullback_study.results.choice import Runs
from pullback_study.results.paper.clusters import TASK, VARIANTS
from pullback_study.tasks import find_task
from pullback_study.tasks.schema import EstimatorConfig
from report.folders import publish, raw_run, text_run


class Text(HTMLParser):
    """The words of a page, and its elements."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.words, self.attributes = [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.words.append(data)


@pytest.fixture(scope="module")
def page(pages):
    return pages[0].read_text()


def rows(page, title):
    """The cells of each row of the tables with a caption."""
    found = []
    for table in re.findall(r"<table.*?</table>", page, re.DOTALL):
        if f"<caption>{html.escape(title)}</caption>" in table:
            lines = re.findall(r"<tr>(.*?)</tr>", re.sub(r"<pre>.*?</pre>", "", table, flags=re.DOTALL), re.DOTALL)[1:]
            cells = [re.findall(r"<t[hd].*?</t[hd]>", line, re.DOTALL) for line in lines]
            found += [["".join(Text(cell).words) for cell in line] for line in cells]
    return found


def test_every_run_is_listed_with_its_metrics(page, folder):
    for run in Runs(folder).all:
        assert run.id[:12] in page
    listed = [run for run in Runs(folder).all if run.task == "synthetic"]
    done = [row for row in rows(page, f"Every run ({len(listed)})") if row[0] == "Softmax"]
    assert len(done) == 8
    parity = rows(page, "Every run (3)")
    assert parity[0][:6] == ["imle", "0", "done", "70.00", "60.00", "0.50"]


def test_a_task_and_an_estimator_that_nobody_knows_have_a_table(page):
    assert ["imle", "3", "71.00±0.58", "60.00±0.00", "0.50±0.00"] in rows(page, "Configurations, by validation accuracy")


def test_three_runs_of_the_user_are_in_table_2(tmp_path):
    for seed in range(3):
        text_run(tmp_path, "spigot", seed=seed)
    page = report(Runs(tmp_path))
    table = next(row for row in rows(page, "SST, 40 epochs, 3 seeds. data not recorded") if row[0].startswith("SPIGOT "))
    assert table[1:4] == ["80.00±0.00≠", "84.51±0.80", "81.00±0.00≠"]
    assert table[-1] == "3 of 3"


def test_a_report_looks_at_the_runs_that_exist_and_not_for_all_that_could(tmp_path, monkeypatch):
    for seed in range(3):
        text_run(tmp_path, "spigot", seed=seed)
        publish(tmp_path, TASK.configure(estimator=("gold", "marginals", "spigot")[seed], clusters=3), 80.0, 50.0)
    made = []
    check = EstimatorConfig.__post_init__
    monkeypatch.setattr(EstimatorConfig, "__post_init__", lambda config: (made.append(config), check(config)))
    report(Runs(tmp_path))
    assert len(made) < 5000


def test_the_paper_stands_beside_and_what_is_missing_has_its_command(page, folder):
    best = {row[0]: row[1:] for row in rows(page, "10 clusters")}
    assert best["Softmax learning rate 0.002"] == ["90.50±0.65≠", "86.45±0.33", "70.00±0.00≠", "75.07±1.18", "4 of 48"]
    assert best["STE-S"] == ["not run", "75.95±1.10", "not run", "82.83±2.75"]
    assert "pullback reproduce table1 --grid" in page
    assert "seed 3: 92.00, run " in page


def test_a_quick_tab_has_its_warning_and_does_not_say_four_seeds(tmp_path):
    for name in ("linear", "spigot"):
        for config in VARIANTS["quick"].plan(name, 3).configs:
            publish(tmp_path, config, 60.0, 0.0)
    page = report(Runs(tmp_path))
    quick = page.split('id="synthetic"')[1].split('class="group"')[3]
    assert "not comparable" in quick
    assert "over 2 seeds" in quick
    assert "4 seeds" not in quick.replace("2 of 4 seeds", "")


def test_claims_open_and_say_what_they_rest_on(page):
    assert page.count('<details class="claim"') == 24
    first = page.split('id="claim-1"')[1].split("</details>")[0]
    assert "<summary>" in first
    assert "by more than 10 points" in first
    assert "not enough comparable runs" in first
    assert "24.35 [24.01, 24.69]: holds" in first  # the same rule on the paper's own table


def test_data_is_text_and_never_markup(page):
    found = Text(page)
    assert found.tags.count("script") == 1
    assert found.tags.count("html") == 1
    assert not any(name.startswith("on") or name == "style" for name, _ in found.attributes)
    assert all(value.startswith("data:image/svg+xml;base64,") for name, value in found.attributes if name == "src")
    words = "".join(found.words)
    assert "<script>alert('x')</script>" in words
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert "\\x1b[31m" in words


def test_no_network(page):
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert not re.findall(r'(?:src|href)="(?!#|explorer\.html|data:image/svg)', page)


@pytest.mark.parametrize(
    "content",
    ["{", "[]", "[" * 200_000, "null", '{"task": 7}', '{"task": "sst", "version": "1", "config": {}}',
     '{"task": "synthetic", "version": 1, "config": {"estimator": {"a": []}, "seed": "x", "steps": null}}'],
    ids=lambda text: text[:30],
)  # fmt: skip
def test_one_bad_directory_is_listed_and_takes_nothing_down(tmp_path, content):
    publish(tmp_path, TASK.configure(estimator="gold", clusters=3), 90.0, 100.0)
    raw_run(tmp_path, "b" * 16, content)
    raw_run(tmp_path, "c" * 16, content, result='{"test_accuracy": "\\ud800", "validation_accuracy": [1], "device": {}}')
    page = report(Runs(tmp_path))
    page.encode()
    for name in ("b" * 12, "c" * 12):
        assert name in page
    assert "Gold cluster labels" in page


SYNTHETIC, SST = ({"task": task.name, "version": task.version} for task in (TASK, find_task("sst")))


@pytest.mark.parametrize(
    ("config", "result"),
    [
        (SYNTHETIC | {"config": {"estimator": ["spigot", "ste-i"], "seed": 0}}, {}),
        (SYNTHETIC | {"config": {"estimator": "spigot", "learning_rate": [1], "seed": 0}}, {}),
        (SST | {"config": {"estimator": "spigot", "vectors": {"a": 1}, "seed": 0}}, {}),
        *((each | {"config": {"estimator": "spigot", "seed": 0}}, result) for each in (SYNTHETIC, SST) for result in (
            {}, {"validation_accuracy": 80.0}, {"test_accuracy": 81.0},
            {"validation_accuracy": None, "test_accuracy": None}, {"validation_accuracy": 80.0, "test_accuracy": None},
            {"validation_accuracy": [80.0], "test_accuracy": 81.0}, {"validation_accuracy": 80.0, "test_accuracy": [81.0]},
        )),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("done", [True, False], ids=["done", "stopped"])
def test_a_value_of_the_wrong_kind_is_listed_and_takes_nothing_down(tmp_path, config, result, done):
    publish(tmp_path, TASK.configure(estimator="gold", clusters=3), 90.0, 100.0)
    raw_run(tmp_path, "d" * 16, json.dumps(config), **({"result": json.dumps(result)} if done else {}))
    page = report(Runs(tmp_path))
    page.encode()
    assert "d" * 12 in page
    assert "Gold cluster labels" in page


def test_broken_results_of_a_row_do_not_take_the_page_down(tmp_path):
    for i, config in enumerate(VARIANTS["best"].plan("linear", 3).configs):
        run = TASK.run(config, tmp_path)
        run.start()
        (run.path / "metrics.jsonl").write_text(['{"step": "x"}\n', "[]\n", "{\n", '{"step": 1, "accuracy": NaN}\n'][i % 4])
        numbers = [
            '{"validation_accuracy": 1, "test_accuracy": null}',
            '{"validation_accuracy": null}',
            '{"validation_accuracy": 1, "test_accuracy": 1e999}',
            '{"validation_accuracy": 1, "test_accuracy": 3}',
        ]
        (run.path / "result.json").write_text(numbers[i % 4])
    page = report(Runs(tmp_path))
    assert "(36 of 48 diverged)" in page
    (run.path / "result.json").write_text('{"validation_accuracy": 1, "test_accuracy": "x"}')
    page = report(Runs(tmp_path))
    assert "test_accuracy is &#39;x&#39;, and no number" in page
    assert "(36 of 47 diverged)" in page  # a damaged run is listed and skipped
    assert "47 of 48" in page


def test_an_empty_folder_says_how_to_start(tmp_path):
    page = report(Runs(tmp_path / "none"))
    assert "pullback reproduce table1 --quick" in page
    assert page.count("<section") == 1  # of all runs: no section and no claim is about a task without runs


def test_sections_are_those_of_tasks_with_runs_under_their_names(tmp_path):
    text_run(tmp_path, "spigot")
    headings = re.findall(r"<section id=\"(.*?)\"><h2>(.*?)</h2>", report(Runs(tmp_path)))
    assert headings == [("runs", "All runs"), ("text", "SST"), ("recovery", "Recovery"), ("claims", "Claims")]
    publish(tmp_path, TASK.configure(estimator="gold", clusters=3), 90.0, 100.0)
    headings = re.findall(r"<section id=\"(.*?)\"><h2>(.*?)</h2>", report(Runs(tmp_path)))
    assert headings[1:3] == [("synthetic", "Synthetic clusters"), ("text", "SST")]


def test_the_command_writes_two_files_and_says_so(folder, tmp_path):
    out = tmp_path / "deep" / "report.html"
    done = CliRunner().invoke(app, ["report", "--runs", str(folder), "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert out.stat().st_size > 100_000
    assert (tmp_path / "deep" / "explorer.html").exists()
    assert not done.stdout
    wrong = CliRunner().invoke(app, ["report", "--runs", str(folder), "--out", str(tmp_path)])
    assert wrong.exit_code == 2
    assert "Is a directory" in wrong.stderr
    assert CliRunner().invoke(app, ["report", "--runs", str(out)]).exit_code == 2
