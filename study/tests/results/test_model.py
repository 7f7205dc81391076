"""Cells, tables and figures: what is computed from seeds, and how it is rendered."""

import io
import json
import math
import statistics
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from rich.console import Console
from rich.text import Text

from pullback.viz import Table as TextTable
from pullback_study.cli.terminal import print_table
from pullback_study.results.cells import MEAN, MEAN_ERROR, MEDIAN, Cell, Reference, bootstrap, interval, share
from pullback_study.results.figures import Curve, Figure, Panel, over_seeds
from pullback_study.results.recovery.boards import leaderboard
from pullback_study.results.tables import Column, Row, Table, at_least, quarters
from pullback_study.results.tables import interval as intervals

NASTY = "</svg><script>\x1b&"


def cell(*values, **more):
    return Cell(values, tuple(f"run{i}" for i in range(len(values))), tuple(range(len(values))), **more)


def test_value_and_spread_are_the_named_statistics():
    values = (1.0, 4.0, 2.0, 9.0)
    assert cell(*values).value == statistics.fmean(values)
    assert cell(*values).spread == statistics.stdev(values)
    assert cell(*values, summary=MEDIAN).value == statistics.median(values)
    for summary in (MEDIAN, MEAN_ERROR):
        assert cell(*values, summary=summary).spread == pytest.approx(statistics.stdev(values) / 2)


def test_a_difference_counts_where_it_exceeds_both_spreads():
    reference = Reference(10.0, 1.0)
    assert not cell(8.0, 9.5, summary=MEAN, reference=reference).differs
    assert cell(8.0, 8.1, reference=reference).differs
    assert not cell(1.0, reference=reference).differs  # one seed has no spread
    assert not cell(1.0, math.nan, reference=reference).differs
    assert not cell(1.0, 1.1).differs


@pytest.mark.parametrize(
    ("values", "shown"),
    [((), "not run"), ((80.0,), "80.00"), ((80.0, 82.0), "81.00±1.41"), ((math.nan,), "diverged"),
     ((80.0, math.nan), "80.00 (1 of 2 diverged)")],
)  # fmt: skip
def test_a_cell_in_words(values, shown):
    assert cell(*values).show() == shown


def test_the_bootstrap_covers_the_median_about_as_often_as_it_says():
    draws = np.random.default_rng(1).normal(5.0, 1.0, (200, 40))
    inside = [found.low <= 5.0 <= found.high for found in map(bootstrap, draws)]
    assert 0.88 <= np.mean(inside) <= 0.99
    assert bootstrap([3.0]).low == -math.inf


def test_a_share_and_its_interval():
    assert share([100.0] * 48, 99.5)[::2] == pytest.approx((1.0, 1.0))
    assert share([0.0] * 48, 99.5)[:2] == (0.0, 0.0)
    assert 0.07 < share([0.0] * 48, 99.5).high < 0.08  # Wilson: z^2 / (n + z^2)
    assert math.isnan(interval([math.nan, 1.0]).mean)


@pytest.fixture
def table():
    rows = [
        Row("Softmax", {"a": cell(90.0, 91.0, summary=MEDIAN, reference=Reference(80.0, 1.0))}, {"n": "2"}, "Relaxed"),
        Row("*SFE", {"a": Cell(reference=Reference(70.0, 2.0))}, {"n": "0"}, "Argmax"),
    ]
    return Table("Accuracy", [Column("a", "Test", reference=True), Column("n", "Seeds")], rows, ["A note."], "t", "Few seeds.")


def test_a_table_as_markdown(table):
    assert table.markdown().splitlines() == [
        "**Accuracy**", "", "| Model | Test | paper | Seeds |", "|---|---:|---:|---:|", "| *Relaxed* |  |  |  |",
        "| Softmax | 90.50±0.50≠ | 80.00±1.00 | 2 |", "| *Argmax* |  |  |  |", "| \\*SFE | not run | 70.00±2.00 | 0 |", "",
        "±: median ± standard error over 2 seeds.",
        "≠: ours and the published number differ by more than both spreads together.", "A note.", "Few seeds.",
    ]  # fmt: skip


@pytest.mark.parametrize("width", [20, 50, 60, 80, None])
def test_a_narrow_terminal_cuts_nothing_off(width):
    cells = ["05211446", "sparsemap learning_rate=0.0005 vectors=googlenews_mapped.300d", "stopped", "50.92", "63.80±1.25"]
    table = TextTable("Some runs", ["run", "what", "state", "Validation accuracy", "Test accuracy"], [cells], ["A note."])
    console = Console(width=width, file=io.StringIO(), force_terminal=width is not None)
    print_table(console, table)
    text = Text.from_ansi(console.file.getvalue()).plain
    assert max(map(len, text.splitlines())) <= max(width or 200, 50)
    assert not {"Some", "A", *(word for cell in cells for word in cell.split())} - set(text.split())
    assert (" ".join(cells[1:3]) in " ".join(text.split())) == (width is None)


def test_a_table_as_json_has_the_runs_behind_each_number(table):
    found = json.loads(table.json())
    first = found["rows"][0]["cells"]["a"]
    assert first["value"] == 90.5
    assert first["runs"] == ["run0", "run1"]
    assert first["reference"] == {"value": 80.0, "spread": 1.0, "source": "paper"}
    assert first["differs"] is True
    assert found["rows"][1]["cells"]["a"]["count"] == 0
    assert "NaN" not in Table("t", [], [Row("r", {"a": cell(math.nan)})]).json()


def test_columns_of_many_seeds(table):
    row = Row("r", {"a": cell(*[100.0] * 30, *[60.0] * 10, summary=MEDIAN)})
    columns = [Column("a", "shown", show=show) for show in (quarters, intervals, at_least(99))]
    words = Table("t", columns, [row]).text().rows[0][1:]
    assert words == ["90.00 to 100.00", "[100.00, 100.00]", "75% [60%, 86%]"]


def test_figures_are_xml_and_data_cannot_break_them(table):
    curve = Curve(NASTY, [1, 2], [1.0, math.nan], [0.5, math.nan], [2.0, math.nan])
    figure = Figure(NASTY, [Panel("a", NASTY, NASTY, [curve])], "f")
    drawn = ElementTree.fromstring(figure.svg())
    assert NASTY.replace("\x1b", "\\x1b") in [text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert figure.svg() == figure.svg()  # without a date
    ElementTree.fromstring(table.distribution("a").svg())
    ElementTree.fromstring(Figure("empty", [Panel("a", "x", "y", [])], "f").svg())
    assert figure.csv().splitlines()[1] == f"a,{NASTY},1,1,0.5,2"
    assert len(table.distribution("a").csv().splitlines()) == 3


def test_a_curve_over_seeds():
    found = over_seeds("a", [{1: 1.0, 2: 5.0}, {1: 3.0}, {1: 2.0, 3: math.nan}])
    assert (list(found.x), found.y[:2], found.low[:2], found.high[:2]) == ([1, 2, 3], [2.0, 5.0], [1.0, 5.0], [3.0, 5.0])
    assert math.isnan(found.y[2])
    long = over_seeds("a", [dict.fromkeys(range(1000), 1.0)], most=100)
    assert long.x[-1] == 999
    assert len(long.x) == 100


def test_a_leaderboard_ranks_and_says_how_sure_it_is():
    beds = {
        "clear": {"a": cell(90.0, 91.0, 90.5), "b": cell(80.0, 81.0, 80.5), "c": cell(70.0, 71.0)},
        "tied": {"a": cell(50.0, 60.0, 55.0), "b": cell(51.0, 59.0, 56.0), "c": Cell()},
        "diverged": {"a": cell(5.0, 6.0), "b": cell(9.0, math.nan)},
    }
    table = leaderboard("Recovery", beds)
    assert [row.label for row in table.rows] == ["a", "b", "c"]
    ranks = {row.label: row.texts["rank"] for row in table.rows}
    assert ranks["c"] == "3.0 [3.0, 3.0]"
    assert ranks["a"] == "1.3 [1.0, 2.0]"  # three times a bed where it is first, or the one where it is second
    assert table.text().rows[2][4] == "not run"
