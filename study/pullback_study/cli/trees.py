"""`pullback parse` and `pullback trees`: draw and evaluate the latent trees of trained models."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from pullback_study.cli.options import uses
from pullback_study.cli.terminal import count, err, print_table, show, user_errors
from pullback_study.trees.drawing import Format, drawn, format_for

FormatOption = Annotated[Format | None, typer.Option("--format", help="The format of the trees. [default: text]")]
Tokens = tuple[str, ...]


@uses("data")
def parse(
    run: Annotated[Path, typer.Option("--run", help="The directory of a trained run, or the beginning of its name.")],
    sentences: Annotated[list[str] | None, typer.Argument(metavar="SENTENCE", help="Words with spaces between.")] = None,
    file: Annotated[Path | None, typer.Option("--file", help="A file with one sentence per line.")] = None,
    form: FormatOption = None,
    out: Annotated[Path | None, typer.Option("--out", help="Write to this file; its ending decides the format.")] = None,
    *,
    data: Path | None,
) -> None:
    r"""Print the latent tree that a trained model gives a sentence.

    A heat map shows the input of the decoder: marginals or SparseMAP's mean for relaxed estimators, the tree for the others.
    It is a drawing if --out ends in .svg.

    \b
    pullback parse --run 5c08 "A taut , intelligent psychological drama ."
    pullback parse --run 5c08 --file reviews.txt --out trees.conllu
    pullback parse --run 5c08 --format heatmap --out drama.svg "A taut , intelligent psychological drama ."
    """
    from pullback_study.trees.parser import load_parser

    with user_errors("parse"):
        chosen = format_for(form, out)
        words = _sentences(sentences or [], file)
        parser = load_parser(find_run(run), data)
        _show(parser.parse(words), chosen, out, parser.estimator)
        if unknown := sorted(parser.unknown):
            some = " ".join(unknown[:10] + ["..."] * (len(unknown) > 10))
            err.print(f"words without a vector, all alike to the model: {some}")


@uses("data", "markdown")
def trees(
    run: Annotated[list[Path], typer.Option("--run", metavar="RUN", help="A trained run; repeatable.")],
    size: Annotated[int, typer.Option("--sample", min=1, help="The number of test sentences.")] = 20,
    paper: Annotated[bool, typer.Option("--paper", help="Use the paper's three example sentences.")] = False,
    gold: Annotated[Path | None, typer.Option("--gold", help="Compare with the trees of this CoNLL-U file.")] = None,
    max_length: Annotated[int | None, typer.Option(help="With --gold: leave out longer sentences.")] = None,
    form: FormatOption = None,
    out: Annotated[Path | None, typer.Option("--out", help="Write to this file; its ending decides the format.")] = None,
    seed: Annotated[int, typer.Option(help="The seed of the sample, random trees and intervals.")] = 0,
    *,
    data: Path | None,
    markdown: bool,
) -> None:
    r"""Show or evaluate the latent trees of trained models.

    By default it shows the trees of some test sentences. The paper's sentences are shown with the paper's own trees. With
    --gold it prints attachment scores, the agreement with left-branching, right-branching and random trees, and the shape.

    \b
    pullback trees --run 5c08 --sample 5
    pullback trees --run 5c08 --out trees.svg
    pullback trees --run 5c08 --run a41f --gold en_ewt-ud-dev.conllu.gz --max-length 40
    """
    with user_errors("show trees" if gold is None else f"compare trees with {gold}"):
        paths = [find_run(each) for each in run]
        if gold is not None:
            if form is not None or paper or out is not None:
                raise ValueError("--gold compares trees and draws none: leave out --format, --out and --paper")
            _measure(paths, gold, data, max_length, seed, markdown)
            return
        if max_length is not None:
            raise ValueError("--max-length needs --gold")
        chosen = format_for(form, out)
        if len(paths) > 1 and (out is not None or chosen is Format.svg):
            raise ValueError("a drawing, or a file, has the trees of one run: pass one --run")
        for path in paths:
            _draw(path, data, size, seed, paper, chosen, out)


def _draw(path: Path, data: Path | None, size: int, seed: int, paper: bool, form: Format, out: Path | None) -> None:
    """The trees of one run: printed, or written to a file."""
    from pullback_study.corpora import find_data
    from pullback_study.published import SENTENCES, printed_for
    from pullback_study.trees.measures import shape, shape_table
    from pullback_study.trees.parser import load_parser, sample, task_sentences

    parser, theirs = load_parser(path, data), {}
    name, chosen, which = f"{parser.estimator} {path.name[:8]}", list(SENTENCES), "the paper's sentences"
    if not paper:
        everything = task_sentences(parser.task, find_data(data))
        chosen = sample(everything, size, seed, first=SENTENCES)
        which = f"{len(chosen)} of {len(everything)} test sentences"
    elif form is Format.text:
        theirs = {tree.tokens: tree for tree in printed_for(parser.estimator)}
    analyses = parser.parse(chosen)
    err.print(f"{name}: {which}")
    _show([each for ours in analyses for each in (ours, theirs.get(ours.tokens)) if each], form, out, name)
    print_table(err, shape_table({name: shape([each.heads for each in analyses])}))


def _measure(paths: Sequence[Path], gold: Path, data: Path | None, max_length: int | None, seed: int, markdown: bool) -> None:
    """The tables of all runs on a treebank."""
    from pullback.viz import visible
    from pullback_study.corpora import read_conllu
    from pullback_study.trees.measures import compare, tables
    from pullback_study.trees.parser import load_parser

    everything = read_conllu(gold)
    parses = [each for each in everything if max_length is None or len(each.tokens) <= max_length]
    if not parses:
        short = f"none of its {count(len(everything), 'sentence')} has at most {count(max_length or 0, 'word')}"
        few = short if everything else "it has no sentences"
        raise ValueError(f"--gold {gold}: {few}")
    words = Counter(word for each in parses for word in each.tokens)
    systems, notes = {}, {}
    for path in paths:
        parser = load_parser(path, data)
        trees = parser.parse([each.tokens for each in parses])
        known = 1 - sum(words[word] for word in parser.unknown) / max(words.total(), 1)
        notes[parser.config.vectors] = f"{parser.config.vectors} has vectors for {100 * known:.1f}% of the words"
        systems[f"{parser.estimator} {path.name[:8]}"] = [each.heads for each in trees]
    left_out = len(everything) - len(parses)
    note = f"; {count(left_out, 'sentence')} of more than {count(max_length or 0, 'word')} left out" if left_out else ""
    title = visible(f"{gold.name}: {count(len(parses), 'sentence')}, {count(words.total(), 'word')}{note}")
    show(*tables(compare(parses, systems, seed=seed), title, list(notes.values())), markdown=markdown)


def find_run(given: Path) -> Path:
    """The directory of a run: the one given, or the only one whose path begins like this (also in `runs/`)."""
    if given.is_dir():
        return given
    folders = [given.parent] + ([Path("runs")] if given.parent == Path() else [])
    found = [path for folder in folders for path in sorted(folder.glob(f"{given.name}*/config.json"))]
    if not found:
        raise ValueError(f"there is no run {given}; `pullback runs` lists them")
    if len(found) > 1:
        raise ValueError(f"{len(found)} runs begin with {given}: {', '.join(str(path.parent) for path in found)}")
    return found[0].parent


def _sentences(given: Sequence[str], file: Path | None) -> list[Tokens]:
    """From the command line and the lines of a file, split at white space; empty lines are left out."""
    from pullback_study.corpora.files import read_lines

    lines = [*given, *(line for _, line in (read_lines(file) if file else ()))]
    if not (sentences := [tuple(line.split()) for line in lines if line.split()]):
        raise ValueError('there is no sentence to parse; pass one in quotes ("A fun film .") or a --file')
    return sentences


def _show(analyses: Sequence[Any], form: Format, out: Path | None, source: str) -> None:
    """Print the trees, or write them to a file."""
    from pullback_study.runs import write_atomically

    text = drawn(analyses, form, out, width=shutil.get_terminal_size((100, 24)).columns, source=source)
    if out is None:
        typer.echo(text, nl=False)
        return
    write_atomically(out, text)
    err.print(f"{count(len(analyses), 'tree')} in {out}")
