"""The command: `python -m benchmarks`."""

from __future__ import annotations

import argparse
import inspect
import re
import shlex
import sys
import time
from dataclasses import replace
from pathlib import Path

import torch

from benchmarks import report
from benchmarks.comparison import Row, Run
from benchmarks.environment import environment
from benchmarks.suite import SUITE
from benchmarks.timing import Effort


def main() -> None:
    options = _options()
    run = _run(options)
    facts = environment(options.device)
    if options.busy:
        facts["clock"] = "the processor's time: the machine was busy"
    command = shlex.join(["python", "-m", "benchmarks", *sys.argv[1:]])
    print("\n".join(f"{name}: {value}" for name, value in facts.items()))
    sections: dict[str, tuple[str, list[Row]]] = {}
    for name in options.only or SUITE:
        about = _about(name)
        print(f"\n{name} ...", file=sys.stderr, flush=True)
        rows = []
        for row in SUITE[name](run):
            if not run.wants(row.case):
                continue
            rows.append(row)
            print(f"  {report.line(row)}", file=sys.stderr, flush=True)
        if not rows:
            continue
        report.show(name, about, rows)
        sections[name] = (about, rows)
        if options.json:  # after each, so that what is measured is kept when the rest is not waited for
            report.write_json(options.json, facts, command, [row for _, rows in sections.values() for row in rows])
        if options.markdown:
            report.update_markdown(options.markdown, report.markdown(facts, command, sections), options.device)


def _run(options: argparse.Namespace) -> Run:
    quick = options.quick
    rounds, budget = (5, 0.5) if quick else (15, 3.0)
    effort = Effort(rounds, sample=0.02, budget=budget, warm_up=0.02)
    if options.busy:
        effort = replace(effort, clock=time.process_time)
    return Run(
        device=options.device,
        threads=tuple(options.threads) if options.device == "cpu" else (1,),
        sizes=(10, 30) if quick else (10, 20, 30, 50),
        growth=(10, 20, 50) if quick else (10, 20, 30, 50, 75, 100, 150, 200),
        batches=(1, 16, 256) if quick else (1, 4, 16, 64, 256, 1024),
        batch=64,
        effort=effort,
        rows=tuple(options.rows),
    )


def _options() -> argparse.Namespace:
    listing = "\n".join(f"  {name:24}{_headline(name)}" for name in SUITE)
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Times pullback against torch-struct, supar, lp-sparsemap and entmax in the same run and compares "
        "their results. Peers that are not installed are named and skipped (benchmarks/README.md says how to "
        "install them). Times are medians in ms, ± half of the interquartile range.",
        epilog=f"benchmarks:\n{listing}\n\nexamples:\n"
        "  python -m benchmarks --quick\n"
        "  python -m benchmarks --only argmax marginals --threads 1\n"
        "  python -m benchmarks --only chain --rows argmax log-likelihood\n"
        "  python -m benchmarks --device cuda --markdown docs/performance.md\n"
        "  python -m benchmarks --json results.json --markdown docs/performance.md",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=SUITE, help="these benchmarks, of those below")
    parser.add_argument("--rows", nargs="+", default=[], metavar="TEXT", help="rows whose name contains one of these")
    parser.add_argument("--quick", action="store_true", help="fewer sizes and fewer samples")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2], metavar="T", help="default: 1 2")
    parser.add_argument("--device", default="cpu", metavar="cpu|cuda", help="where the scores live; default: cpu")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write hardware, versions, commit and rows")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables between the file's markers")
    parser.add_argument("--busy", action="store_true", help="count processor time, for a busy machine; one thread only")
    options = parser.parse_args()
    if torch.device(options.device).type == "cuda" and not torch.cuda.is_available():
        parser.error(f"--device {options.device}: PyTorch {torch.__version__} sees no GPU")
    if options.busy and (options.threads != [1] or options.device != "cpu"):
        parser.error("--busy adds up the time of all threads; use it with --threads 1 and --device cpu")
    return options


def _about(name: str) -> str:
    return " ".join((inspect.getdoc(SUITE[name]) or "").split())


def _headline(name: str) -> str:
    return re.split(r"[.:;(] ?", _about(name), maxsplit=1)[0].strip()


if __name__ == "__main__":
    main()
