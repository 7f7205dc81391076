"""A data folder's check as tables for people."""

from __future__ import annotations

from pathlib import Path

from pullback.viz.tables import Table
from pullback_study.corpora.check import DataCheck, FileCheck

_PUBLISHED = {True: "as published", False: "≠ published", None: "not known"}


def corpus_table(found: DataCheck, data: Path) -> Table:
    """The files of each corpus: rows against the official number, and what is left out."""
    table = Table(f"Corpora in {data}", ["file", "rows", "official", "used", "left out", "checksum"])
    for files in found.files.values():
        table.rows += [_row(each) for each in files]
    return table


def vector_table(found: DataCheck, data: Path) -> Table:
    """The files of word vectors, and the share of each corpus's tokens that they know."""
    titles = list(found.files)
    table = Table(f"Word vectors in {data / 'vectors'}", ["vectors", "words", "width", *titles])
    table.notes.append(f"{', '.join(titles)}: the share of the corpus's tokens that have a vector")
    for each in found.vectors:
        if each.problem:
            table.rows.append([each.name, "broken", "", *("" for _ in titles)])
            continue
        shares = [f"{each.coverage[title]:.1%}" if title in each.coverage else "" for title in titles]
        table.rows.append([each.name, f"{each.words:,}", str(each.width), *shares])
        table.notes += [f"{each.name}: {count:,} {reason} are skipped" for reason, count in each.skipped.items()]
    if not found.vectors:
        table.rows.append(["none", "missing", "", *("" for _ in titles)])
    return table


def _row(each: FileCheck) -> list[str]:
    official = f"{each.official:,}"
    if each.missing:
        return [each.name, "missing", official, "", "", ""]
    if each.problem and not each.rows:
        return [each.name, "broken", official, "", "", ""]
    share = "" if each.rows == each.official else f" ({each.rows / each.official:.1%})"
    left_out = ", ".join(f"{count:,} {rule}" for rule, count in each.dropped.items())
    return [each.name, f"{each.rows:,}{share}", official, f"{each.used:,}", left_out, _PUBLISHED[each.published]]
