"""Table 2 of the paper: latent trees on SST and SNLI."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pullback.experiments.paper import reported
from pullback.experiments.report.numbers import command, shown
from pullback.experiments.status import Listed

MEASURES = {"validation": "Validation", "test": "Test"}
_ROWS = {
    "baseline": ("Baseline", "Baselines"), "marginals": ("Marginals", "Relaxed"), "sparsemap": ("SparseMAP", "Relaxed"),
    "perturb-and-map": ("Perturb-and-MAP", "Argmax"), "ste-s": ("STE-S", "Argmax"), "ste-i": ("STE-I", "Argmax"),
    "spigot": ("SPIGOT", "Argmax"), "spigot-ce": ("SPIGOT-CE", "Argmax"), "spigot-eg": ("SPIGOT-EG", "Argmax"),
}  # fmt: skip


def tables(root: Path, listed: Mapping[str, Listed]) -> list[dict[str, Any]]:
    """The paper's numbers, and the commands that would put ours beside them."""
    parts = []
    for task in ("SST", "SNLI"):
        making = command("reproduce", "table2", "--task", task.lower(), root=root)
        rows = [
            {
                "name": name, "label": label, "kind": kind, "stochastic": name == "perturb-and-map", "runs": {"total": 0},
                "cells": {key: {"paper": shown(reported("structured", label, task, key))} for key in MEASURES},
                "command": making,
            }
            for name, (label, kind) in _ROWS.items()
        ]  # fmt: skip
        parts.append({"title": task, "rows": rows})
    return [
        {
            "name": "best", "title": "The paper's best settings", "runs": 0, "parts": parts,
            "measures": [{"name": name, "label": f"{label} accuracy"} for name, label in MEASURES.items()],
            "command": command("reproduce", "table2", root=root),
        }
    ]  # fmt: skip
