"""The progress display: bars stay, whatever the width; everything goes to the console it was given."""

import io
import re

import pytest
from rich.console import Console

from pullback_study.runs.progress import Report
from pullback_study.runs.work import Reached

LABEL = "SST, SPIGOT-CE w/ a long name, rate 0.0001, 5 inner steps, seed 0"
AFTER_AN_EPOCH = [{"step": 217, "loss": 0.6931471, "accuracy": 81.234, "examples_per_second": 1234.5}]


def lines(width, *events):
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system="truecolor")
    report = Report(console)
    report.plan([(LABEL, 1), ("another", 1)])
    for event in events:
        report.at(0, event)
    console.print(report.progress.get_renderable())
    return re.sub(r"\x1b\[[0-9;]*m", "", console.file.getvalue()).splitlines()


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_the_bar_stays_after_the_first_epoch(width):
    shown = lines(width, Reached(0, 8680), Reached(300, 8680, AFTER_AN_EPOCH))
    assert len(shown) == 2  # one for all runs, one for the group: nothing wraps
    for line in shown:
        assert len(line) <= width
        assert len(re.findall("[━╸╺]", line)) == 12
    assert "300/8680" in shown[1]
    if width >= 100:
        assert "loss 0.693, accuracy 8" in shown[1]


def test_a_group_that_ends_or_whose_worker_dies_leaves_no_bar():
    report = Report(Console(file=io.StringIO(), force_terminal=True))
    report.plan([(LABEL, 1), ("another", 1)])
    for group in (0, 1):
        report.at(group, Reached(1, 10))
    report.end(0, "again", "its worker died (killed by SIGKILL); it resumes from its last checkpoint")
    report.end(1, "done", "done")
    assert [task.description for task in report.progress.tasks] == ["all runs"]
    assert (report.progress.tasks[0].completed, report.progress.tasks[0].total) == (1, 2)
    report.at(0, Reached(5, 10))
    assert len(report.progress.tasks) == 2


def test_without_a_terminal_there_is_a_line_for_each_group():
    console = Console(file=io.StringIO(), width=200)
    report = Report(console)
    report.plan([("first", 2), ("second", 1)])
    report.at(0, Reached(1, 10))
    report.end(0, "done", "done")
    report.end(1, "failed", "no space left")
    first, second, third = console.file.getvalue().splitlines()
    assert first == "Training 3 runs"
    assert re.fullmatch(r"\[1/2\] first: done after \d+\.\d s", second)
    assert third == "[2/2] second: no space left"
