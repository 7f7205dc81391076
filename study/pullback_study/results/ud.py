"""UD-EWT: latent dependency trees over real sentences, beside gold trees, and with some gold trees shown.

Fixed before the runs: the learning rate of a row is that with the best validation accuracy of tags over seed 0 (of 0.001,
0.003 and 0.01); results are from seeds 0 to 4, of the epoch with the best validation accuracy. Gold heads choose nothing.
"""

from __future__ import annotations

from dataclasses import replace

from pullback_study.results.choice import Plan, Protocol, Runs, measured, seeds_of, table_of
from pullback_study.results.registry import Group, Section
from pullback_study.results.tables import Table
from pullback_study.tasks import find_task
from pullback_study.tasks.ud.task import GIVEN

TASK = find_task("ud")
ROWS = (
    *GIVEN, "marginals", "perturbed-marginals", "sampled-ste", "perturb-and-map", "ste-s", "spigot", "spigot-eg",
    "sfe-leave-one-out", "sfe-control-variate",
)  # fmt: skip
SHARES = (0.0, 0.01, 0.05, 0.1)
FULL = Protocol(TASK.name, (0, 1, 2, 3, 4), rates=(0.001, 0.003, 0.01))
QUICK = replace(FULL.on((0,)).having(epochs=1, train_examples=200, longest=10), rates=FULL.rates[1:2])
COLUMNS = {
    "validation_attachment": "Dev: attachment", "test_attachment": "Test: attachment", "validation_accuracy": "Dev: tags",
    "test_accuracy": "Test: tags",
}  # fmt: skip


def plan(name: str, share: float, protocol: Protocol = FULL) -> Plan:
    """A row; given trees see no others."""
    return protocol.plan(name, protocol.rates, gold_share=share)


def rows(share: float) -> tuple[str, ...]:
    """Those of a table: given trees are the same for every share."""
    return ROWS if share == 0 else ROWS[len(GIVEN) :]


def table(runs: Runs, share: float, protocol: Protocol = FULL) -> Table:
    found = [plan(name, share, protocol).choose(runs) for name in rows(share)]
    columns = [*measured(COLUMNS, digits=1), seeds_of(protocol)]
    notes = ["Percent. Attachment: of the best trees, punctuation not counted. Tags: reconstructed from the head's tag."]
    title = f"Gold trees for {share:.0%} of the training sentences" if share else "No gold trees shown"
    about = {"name": f"ud-{share:g}", "warning": protocol.warning, "command": runs.command("ud")}
    return table_of(title, found, columns, notes, **about)


def groups(runs: Runs) -> list[Group]:
    tables = [table(runs, share) for share in SHARES]
    return [Group("Latent", tables[:1]), Group("Semi-supervised", tables[1:])]


SECTION = Section("Latent dependency trees over real sentences, and their attachment to the treebank's.", groups, tasks=("ud",))
