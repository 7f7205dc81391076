"""The leaderboard: ranks, ties and verdicts from made-up results, and the command on tiny runs."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from pullback_study.cli import app
from pullback_study.results.cells import Cell
from pullback_study.results.choice import Runs
from pullback_study.results.recovery import bias, page, plans
from pullback_study.results.recovery.beds import Bed, all_beds, best_and_tied, missing
from pullback_study.results.recovery.boards import combined, grid_tables, leaderboard, mean_ranks, summary, times
from pullback_study.results.registry import BEGIN, END, Group, markdown, update_page
from pullback_study.results.tables import Column, Row, Table
from pullback_study.runs.store import Stored
from pullback_study.tasks import find_task


def cell(*values):
    return Cell(values, seeds=tuple(range(len(values))))


def publish(folder, task, config, **numbers):
    run = task.run(config, folder)
    run.start()
    run.publish({"validation_accuracy": 80.0, "test_accuracy": 80.0, **numbers})


def test_ties_need_a_paired_interval_with_zero_or_a_small_difference():
    base = (80.0, 60.0, 90.0, 70.0, 85.0)
    cells = {
        "best": cell(*base),
        "by 2 points on each seed": cell(*(value - 2 for value in base)),
        "by half a point": cell(*(value - 0.5 for value in base)),
        "now and then": cell(80.0, 60.0, 70.0, 70.0, 85.0),
        "two seeds": cell(10.0, 20.0),
    }
    assert best_and_tied(cells) == ["best", "by half a point", "now and then", "two seeds"]
    assert best_and_tied({"diverged": cell(float("nan"))}) == []


def test_intervals_resample_the_beds():
    beds = {f"bed {i}": {"a": cell(9.0, 9.1) if i < 4 else cell(1.0, 1.1), "b": cell(5.0, 5.1)} for i in range(8)}
    (first, second) = mean_ranks(beds).values()
    assert first.mean == second.mean == 1.5
    assert first.low < 1.3 < 1.7 < first.high  # on each bed, every resample of the seeds has the same order
    assert {each: tuple(found) for each, found in mean_ranks({"one": beds["bed 0"]}).items()} == {
        "a": (1, 1, 1),
        "b": (2, 2, 2),
    }


def test_cells_of_one_seed_have_no_rank_and_win_nothing():
    beds = {"one": {"lucky": cell(99.0), "a": cell(80.0, 81.0), "b": cell(60.0, 61.0)}}
    assert {name: found.mean for name, found in mean_ranks(beds).items()} == {"a": 1.0, "b": 2.0}
    assert best_and_tied(beds["one"])[0] == "a"
    *_, row = leaderboard("Recovery", beds).rows
    assert (row.name, row.texts, row.cells["one"].value) == ("lucky", {"rank": "", "beds": "0 of 1"}, 99.0)


def test_beds_that_do_not_identify_their_structure_are_shown_and_not_ranked(tmp_path):
    protocol = plans.QUICK
    for structure, recovery in (("tree", {"ste-s": 90.0, "ste-i": 50.0}), ("subset", {"ste-s": 10.0, "ste-i": 99.0})):
        for name, value in recovery.items():
            for config in plans.search(name, structure, protocol):
                publish(tmp_path, plans.TASK, config)
            for config in plans.chosen(Runs(tmp_path), name, plans.BASES[structure], protocol).configs:
                publish(tmp_path, plans.TASK, config, test_recovery=value)
    beds = all_beds(Runs(tmp_path), protocol)
    assert {bed.title: bed.identified for bed in beds} == {"tree, n = 6": True, "subset, n = 12": False}
    recovery, accuracy = page.boards(beds)
    assert [column.label for column in recovery.columns][1:] == ["Beds", "tree, n = 6", "subset, n = 12 (not ranked)"]
    assert {row.name: row.texts["rank"] for row in recovery.rows} == {"ste-s": "1.0 [1.0, 1.0]", "ste-i": "2.0 [2.0, 2.0]"}
    assert "(not ranked)" not in accuracy.markdown()
    assert "- subset, n = 12: not ranked" in page.verdict(beds)
    assert "Best or tied on every bed: `ste-s`, `ste-i`." in page.verdict(beds)  # two seeds decide nothing, on either bed
    line = summary(beds, {}).markdown()
    assert "subset, n = 12 (not ranked)" in line
    assert "| ste-i | 2.0 [2.0, 2.0] | 1 of 1 | 1 of 1 | 50.0 [50.0, 50.0] |" in line
    heads = [find_task("listops").configure(estimator="ste-s", heads=heads) for heads in ("all", "operators")]
    for config in heads:
        publish(tmp_path / "listops", find_task("listops"), config, test_attachment=50.0)
    found = all_beds(Runs(tmp_path / "listops"), protocol)
    assert [bed.identified for bed in found] == [False, True]


@pytest.mark.parametrize("name", plans.WIDE_ROWS)
def test_a_wide_search_has_as_many_settings_and_decoder_calls_for_every_estimator(name):
    row = plans.wide(name, plans.BASES["tree"])
    assert len(row.settings) == 16
    assert not set(row.deciders) & set(row.seeds)
    for config in (candidate[0] for candidate in row.candidates):
        k = config.samples or 1
        twice = ("spigot-eg", "blended", "sfe-self-critical")
        calls = 2 if name in twice else 1 if plans.METHODS[name].kind == "Relaxed" else k
        assert config.steps == 4000 // calls
        assert 1e-3 <= config.learning_rate <= 1
    for each in {"step_size", "temperature", "samples"} & plans.METHODS[name].accepted.keys():
        assert len({setting[each] for setting in row.settings}) > 2
    same = plans.wide("marginals", plans.BASES["tree"]).settings
    assert [each["learning_rate"] for each in row.settings] == [each["learning_rate"] for each in same]


def test_other_tasks_use_the_most_common_setting_and_the_most_seeds(tmp_path):
    task = find_task("synthetic")
    for rate, seeds, measure in ((0.001, 3, 50.0), (0.002, 2, 99.0)):
        for seed in range(seeds):
            config = task.configure(estimator="ste-s", clusters=3, seed=seed, learning_rate=rate)
            publish(tmp_path, task, config, test_v_measure=measure)
    for rate in range(1, 8):  # a search, with fewer steps, of one seed
        config = task.configure(estimator="ste-s", clusters=3, steps=7, learning_rate=rate / 100)
        publish(tmp_path, task, config, test_v_measure=1.0)
    runs = Runs(tmp_path)
    (bed,) = all_beds(runs)
    assert bed.title == "Synthetic clusters, 3 clusters"
    assert bed.recovery["ste-s"].values == (50.0, 50.0, 50.0)
    assert missing(runs)[:2] == ["sst", "snli"]
    assert "Beds without runs" in markdown(page.groups(runs))
    assert "best `ste-s`" in page.verdict([bed])


def test_the_projection_of_spigot_ce_is_a_setting_of_its_own(tmp_path):
    task = find_task("listops")
    for name, more in (("ste-s", {}), ("ste-i", {}), ("spigot-ce", {"projection": "local"})):
        publish(tmp_path, task, task.configure(estimator=name, **more), test_attachment=50.0)
    (bed,) = all_beds(Runs(tmp_path))
    assert set(bed.rows) == {"ste-s", "ste-i", "spigot-ce"}


def test_planted_rows_are_what_the_search_chose(tmp_path):
    setting, protocol = plans.BASES["tree"], plans.QUICK
    assert not set(plans.FULL.seeds) & set(plans.FULL.deciding)
    assert plans.search("gold", "tree") == []
    assert len(plans.search("spigot", "tree")) == 3 * 3 * 4
    assert len(plans.search("ste-i", "tree")) == 3 * 4
    accuracy = {0.01: 60.0, 0.03: 90.0, 0.1: 70.0}
    for config in plans.search("ste-s", "tree", protocol)[1:]:
        publish(tmp_path, plans.TASK, config, validation_accuracy=accuracy[config.learning_rate])
    assert not plans.chosen(Runs(tmp_path), "ste-s", setting, protocol)  # a choice among fewer would be another rule
    config = plans.search("ste-s", "tree", protocol)[0]
    publish(tmp_path, plans.TASK, config, validation_accuracy=accuracy[config.learning_rate])
    row = plans.chosen(Runs(tmp_path), "ste-s", setting, protocol)
    assert {config.learning_rate for config in row.configs} == {0.03}
    assert [config.seed for config in row.configs] == list(protocol.seeds)


def test_the_summary_ranks_on_planted_beds_and_shows_times_that_were_measured_alone(tmp_path):
    numbers = {"marginals": (90.0, 0.5), "ste-i": (40.0, 0.25)}
    for name, (recovery, time) in numbers.items():
        for config in plans.search(name, "tree", plans.QUICK):
            publish(tmp_path, plans.TASK, config)
        row = plans.chosen(Runs(tmp_path), name, plans.BASES["tree"], plans.QUICK)
        for config in row.configs:
            publish(tmp_path, plans.TASK, config, test_recovery=recovery, step_ms=99.0)
        alone = plans.timed(Runs(tmp_path), name, plans.QUICK)
        assert not {config.seed for config in alone.configs} & {*plans.FULL.seeds, *plans.FULL.deciding}
        for config in alone.configs:
            publish(tmp_path, plans.TASK, config, step_ms=time, device="NVIDIA H200")
    runs = Runs(tmp_path)
    lines = summary(all_beds(runs, plans.QUICK), times(runs, plans.QUICK)).markdown().splitlines()
    assert [line for line in lines if line.startswith("| marginals | 1.0 [1.0, 1.0] | 1 of 1 | 1 of 1 | 90.0 [90.0, 90.0] |")]
    assert [line for line in lines if line.startswith("| ste-i | 2.0 [2.0, 2.0] |") and line.endswith("| 0.25 |")]
    recovery, accuracy, *by_step = grid_tables(runs, plans.QUICK)
    assert "| marginals | 1.0 [1.0, 1.0] | 1 of 1 | 90.0±0.0 |" in recovery.markdown()
    assert "| ste-i | 1.5 [1.5, 1.5] | 1 of 1 | 80.0±0.0 |" in accuracy.markdown()
    assert [table.title.split()[-3] for table in by_step] == ["recovery", "accuracy"]


def test_expensive_estimators_skip_only_the_largest_trees():
    grid = [setting for setting in plans.GRID if plans.runs_on("spigot-ce", setting)]
    assert grid == [setting for setting in plans.GRID if setting.n == 6]
    assert all(plans.runs_on("spigot-ce", setting) for setting in plans.BASES.values())
    assert all(plans.runs_on("spigot", setting) for setting in plans.GRID)


def test_a_page_with_two_pairs_of_marks_has_its_first_group_in_the_first(tmp_path):
    marks = f"{BEGIN}\nold\n{END}"
    (tmp_path / "page.md").write_text(f"Before.\n{marks}\nBetween.\n{marks}\nAfter.\n")
    groups = [Group("One", prose="1"), Group("Lost", warning="no runs"), Group("Two"), Group("Three")]
    for _ in range(2):
        update_page(tmp_path / "page.md", groups)
    text = (tmp_path / "page.md").read_text()
    places = [text.index(word) for word in ("Before.", "## One", "Between.", "## Two", "## Three", "After.")]
    assert places == sorted(places)
    assert "old" not in text
    assert "Lost" not in text
    assert text.count(END) == 2
    (tmp_path / "page.md").write_text(BEGIN)
    with pytest.raises(ValueError, match="has no lines"):
        update_page(tmp_path / "page.md", [])


def test_a_page_of_more_seeds_stays(tmp_path):
    def group(words, *values):
        columns = [Column("accuracy", "Accuracy"), Column("seeds", "Seeds")]
        return Group("One", [Table("Table", columns, [Row("SPIGOT", {"accuracy": cell(*values)}, words)])])

    path = tmp_path / "page.md"
    path.write_text(f"{BEGIN}\n{END}\n")
    update_page(path, [group({"seeds": "4"}, 1.0, 2.0, 3.0)])
    for fewer in (group({"seeds": "4"}, 1.0, 2.0), group({"seeds": "3"}, 1.0, 2.0, 3.0)):
        with pytest.raises(ValueError, match=r"has numbers that these runs do not give \(seeds\)"):
            update_page(path, [fewer])
    update_page(path, [group({"seeds": "5"}, 4.0, 5.0, 6.0)])
    assert "5.00±1.00" in path.read_text()


def test_gradients_are_related_to_recovery():
    found = bias.gradients({"marginals": None, "ste-i": 1.0, "sampled-ste": None}, examples=2, draws=20)
    assert found["marginals"]["variance"] == pytest.approx(0, abs=1e-20)
    assert found["sampled-ste"]["variance"] > 0
    made_up = {"marginals": 90.0, "sampled-ste": 80.0, "ste-i": 30.0}
    text = bias.relation(found, {"recovery": made_up, "all": {"ste-i": 1.0}}, "Title").markdown()
    assert "| rank correlation with recovery |  |  | +" in text
    assert "rank correlation with all" not in text
    assert text.index("`marginals`") < text.index("`ste-i`")


def test_the_command_trains_resumes_and_writes_its_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.fsync", lambda descriptor: None)
    tiny = plans.QUICK.having(steps=4, evaluate_every=2)
    monkeypatch.setattr(plans, "QUICK", tiny)
    published = Path("docs/results/recovery.md")
    published.parent.mkdir(parents=True)
    published.write_text(f"{BEGIN}\nof many runs\n{END}\n")
    words = ["reproduce", "recovery", "--quick", "--structure", "subset", "--device", "cpu"]
    only = [word for name in ("bag", "gold", "planted-scorer", "ste-i") for word in ("--only", name)]
    done = CliRunner().invoke(app, [*words, *only, "--markdown"], env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    assert "Bag of parts" in done.stdout
    again = CliRunner().invoke(app, [*words, *only, "--page", "here/page.md", "--force"], env={"COLUMNS": "200"})
    assert "0 trained" in again.stderr
    text = Path("here/page.md").read_text()
    assert "Beds without runs, which are missing from everything below: synthetic; sst" in text
    assert "| best | 1 [1, 1] |" in text
    for words, message in [
        (["--structure", "forest"], "there is no structure 'forest'"),
        (["--no-train", "--structure", "forest"], "there is no structure 'forest'"),
        (["--no-train", "--runs", "empty"], "empty has no runs to show"),
    ]:
        wrong = CliRunner().invoke(app, ["reproduce", "recovery", *words])
        assert wrong.exit_code == 2
        assert message in wrong.output
    assert "of many runs" in published.read_text()  # a page that nobody named is for the whole of the runs


def test_the_combination_is_paired_over_the_seeds():
    found = {"blended": {1: 50.0, 2: 90.0, 3: 70.0}, "marginals": {2: 80.0, 1: 40.0}, "sampled-ste": {3: 60.0}}
    rows = {
        name: [Stored(Path("run"), config={"seed": seed}, metrics={"test_recovery": value}) for seed, value in values.items()]
        for name, values in found.items()
    }
    (row,) = combined([Bed("tree", "test_recovery", rows)]).rows
    assert row.texts == {"seeds": "3", "sampled-ste": "+10.0 (1 seed)", "marginals": "+10.0 [10.0, 10.0]"}
