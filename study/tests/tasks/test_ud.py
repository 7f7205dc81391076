"""UD-EWT: reading, the decoder's formula, supervision, given trees, and training on a small treebank."""

import pytest
import torch

from pullback import DependencyTree
from pullback_study.results import ud
from pullback_study.results.choice import Runs
from pullback_study.tasks import find_task
from pullback_study.tasks.ud.problem import TAGS, read

SENTENCES = (
    [("the", "DET", 2), ("cat", "NOUN", 3), ("sat", "VERB", 0), (".", "PUNCT", 3)],
    [("go", "VERB", 0), ("there", "ADV", 1)],
    [("a", "DET", 3), ("very", "ADV", 4), ("old", "NOUN", 0), ("cat", "ADJ", 3)],  # crossing arcs
    [("so", "ADV", 0)],
)


@pytest.fixture
def task(tmp_path):
    (tmp_path / "ud-ewt").mkdir()
    for split in ("train", "dev", "test"):
        text = "".join(
            "".join(f"{i}\t{word}\t_\t{tag}\t_\t_\t{head}\t_\t_\t_\n" for i, (word, tag, head) in enumerate(each, 1)) + "\n"
            for each in SENTENCES
        )
        (tmp_path / "ud-ewt" / f"en_ewt-ud-{split}.conllu").write_text(text)
    return find_task("ud", tmp_path)


def problem(task, **fields):
    return task.problem(task.configure(**{"estimator": "marginals", "size": 6, "dtype": "float64", **fields}))


def test_treebanks_are_read(task):
    found = read(task.sources(None)["train"], 4)
    assert found["lengths"].tolist() == [4, 2, 4, 1]
    assert found["heads"][1].tolist() == [0, 1, -100, -100]
    assert found["single"].tolist() == [True, True, False, True]
    assert len(read(task.sources(None)["train"], 2)) == 2
    with pytest.raises(ValueError, match="no sentence of at most 0 words"):
        read(task.sources(None)["train"], 0)


def test_the_decoder_reads_the_tag_and_the_side_of_the_head(task):
    made = problem(task)
    made.to(torch.device("cpu"), torch.float64)
    torch.nn.init.normal_(made.model.table)
    batch = made.gather(made.splits[0], torch.tensor([0]), 0)
    gold = DependencyTree(batch["lengths"]).from_heads(batch["heads"]).double()
    found, table = made.logits(batch, gold)[0], made.model.table
    noun, verb = TAGS.index("NOUN"), TAGS.index("VERB")
    for word, expected in enumerate((table[1, noun], table[1, verb], table[2, 0], table[0, verb])):
        torch.testing.assert_close(found[word], expected)
    loss = -found.log_softmax(-1)[range(4), batch["tags"][0]].mean()
    torch.testing.assert_close(made.losses(batch, None, gold), loss[None])


def test_only_the_share_of_gold_trees_is_supervised(task):
    made = problem(task, gold_share=0.5)
    assert made.splits[0]["shown"].tolist() == [True, True, False, False]
    assert problem(task, gold_share=0.5, train_examples=2).splits[0]["shown"].tolist() == [True, False, False, False]
    made.to(torch.device("cpu"), torch.float64)
    batch = made.gather(made.splits[0], torch.arange(4), 0)
    scores, structure = made.scores(batch, None), made.structure(batch)
    found = made.supervision(batch, structure, scores)
    first = DependencyTree(projective=True, multiroot=False)
    gold = first.from_heads(batch["heads"][:1]).double()
    torch.testing.assert_close(found[0], -first.log_prob(scores[:1], gold)[0] / 4)
    assert found[1] > 0
    assert found[2:].tolist() == [0.0, 0.0]
    assert problem(task).supervision(batch, structure, scores) is None
    assert not made.splits[1]["shown"].any()
    with pytest.raises(ValueError, match="gold_share is 2; it must be at most 1"):
        task.configure(estimator="marginals", gold_share=2)


@pytest.mark.parametrize(("name", "attachment"), [("gold", 100.0), ("left-branching", 30.0), ("right-branching", 40.0)])
def test_given_trees(task, name, attachment):
    made = problem(task, estimator=name)
    made.to(torch.device("cpu"), torch.float64)
    batch = made.gather(made.splits[0], torch.arange(4), 0)
    assert made.measures(batch, None, None, None)["attachment"].mean().item() == pytest.approx(attachment)


@pytest.mark.parametrize(
    "fields", [{}, {"gold_share": 1.0}, {"estimator": "sfe-leave-one-out"}, {"estimator": "gold"}], ids=str
)
def test_it_trains(task, fields):
    config = task.configure(**{"estimator": "marginals", "size": 6, "epochs": 2, "batch_size": 2, **fields})
    trainer = task.trainer([config], "cpu")
    trainer.advance(trainer.steps, lambda: False)
    (result,) = trainer.results()
    assert 0 <= result["test_attachment"] <= 100
    assert 0 <= result["validation_accuracy"] <= 100


def test_more_gold_trees_are_found_when_they_are_shown(task):
    config = task.configure(estimator="marginals", size=6, epochs=60, learning_rate=0.03, gold_share=0.75)
    trainer = task.trainer([config], "cpu")
    trainer.advance(trainer.steps, lambda: False)
    assert trainer.history()[0][-1]["attachment"] > 60


def test_rows_without_runs_are_in_every_table(tmp_path):
    tables = [table for group in ud.groups(Runs(tmp_path)) for table in group.tables]
    assert [len(table.rows) for table in tables] == [len(ud.ROWS), *[len(ud.ROWS) - len(ud.GIVEN)] * 3]
    assert all("not run" in table.markdown() for table in tables)
    assert len(ud.plan("spigot", 0.1).candidates) == len(ud.FULL.rates)
    assert len(ud.FULL.seeds) >= 5


def test_gold_trees_are_never_shown_in_evaluation(task):
    made = problem(task, gold_share=1.0)
    assert [bool(split["shown"].any()) for split in made.splits] == [True, False, False]
