"""Training steps of the text models, and how much of them is inference over trees: `python -m benchmarks.text`.

For every row of the paper's table: the time of an epoch (from the mean step of some batches, after a warm-up), the
share of it that is inference, forward and backward, and the paper's minutes. Beside it the same model with
torch-struct's inference in the place of ours, where the estimator needs no more than argmax and marginals; both make
the same steps, in turns, in the same process.

    python -m benchmarks.text --data DATA                     SST, batch 32, 2 threads
    python -m benchmarks.text --data DATA --steps 210         most of an epoch of each
    python -m benchmarks.text --data DATA --task snli --only marginals spigot
    python -m benchmarks.text --data DATA --device cuda       ours replayed from CUDA graphs, torch-struct's as it is
"""

from __future__ import annotations

import argparse
import copy
import importlib.util
import time
import warnings
from typing import Any

import torch
from torch import Tensor

from benchmarks.options import text_parser
from pullback.estimators import registry
from pullback.structures import Structure
from pullback_study.published import settings
from pullback_study.results.paper import reported
from pullback_study.tasks import find_task
from pullback_study.tasks.latent.trainer import LatentTrainer

TASKS = {name: find_task(name) for name in ("sst", "snli")}
METHODS = TASKS["sst"].methods
ROWS = [name for name in METHODS if name in settings("sst")]
_WARM_UP = {"cpu": 3, "cuda": 434}  # on a GPU two epochs of SST, in which the steps of all shapes are captured


class TorchStructTrees(Structure):
    """torch-struct's projective trees with several roots; its layout is ours."""

    event_dims = 2

    def __init__(self, lengths: Tensor) -> None:
        self._lengths = lengths

    def argmax(self, scores: Tensor) -> Tensor:
        with torch.enable_grad():
            return self._crf(scores.detach().requires_grad_()).argmax.detach()

    def marginals(self, scores: Tensor) -> Tensor:
        if torch.is_grad_enabled() and scores.requires_grad:
            return self._crf(scores).marginals
        with torch.enable_grad():
            return self._crf(scores.detach().requires_grad_()).marginals.detach()

    def allowed(self, scores: Tensor) -> Tensor:
        inside = torch.arange(scores.shape[-1], device=scores.device) < self._lengths[:, None]
        return inside[:, None, :] & inside[:, :, None]

    def _crf(self, scores: Tensor) -> Any:
        import torch_struct

        masked = torch.where(self.allowed(scores), scores, -1e5)  # it reads padding, and has no -inf
        return torch_struct.DependencyCRF(masked, lengths=self._lengths)


def main() -> None:
    options = _options()
    torch.set_num_threads(options.threads)
    peer = importlib.util.find_spec("torch_struct") is not None
    size = options.batch_size or TASKS[options.task].batch_size
    print(f"torch {torch.__version__}, {options.device}, {options.threads} threads, batch {size}")
    if not peer:
        print("torch-struct is not installed; benchmarks/README.md says how to install it")
    headings = f"{'estimator':18}{'ms per step':>12}{'s per epoch':>12}{'paper, min':>12}{'latent':>8}"
    print(f"{headings}{'torch-struct, s per epoch':>27}{'ratio':>7}" if peer else headings)
    task: Any = find_task(options.task, options.data)
    for name in options.only or ROWS:
        config = task.configure(
            estimator=name, batch_size=options.batch_size, seed=options.seed,
            projective=None if name == "baseline" else options.projective,
        )  # fmt: skip
        contenders: dict[str, Any] = {"ours": task.trainer([config], options.device)}
        if options.eager:
            _without_graphs(contenders["ours"])
        needed = {"no trees"} if name == "baseline" else set(registry.lookup(name).inference)
        if peer and config.projective and task.sides == 1 and needed <= {"argmax", "marginals"}:
            contenders["torch-struct"] = _with_peer(task.trainer([config], options.device))
        warm_up = _WARM_UP["cpu" if options.eager else options.device]
        found = time_in_turns(contenders, options.steps, warm_up, options.device)
        _show(name, options.task, contenders["ours"], found)


def time_in_turns(
    contenders: dict[str, LatentTrainer], steps: int, warm_up: int, device: str
) -> dict[str, tuple[float, float]]:
    """The mean seconds of a step, and the share of it that is inference, of each; all make the same steps."""
    spent = dict.fromkeys(contenders, 0.0)
    first, *others = contenders.values()
    per_epoch = first.steps // first.config.epochs
    steps = min(steps, per_epoch - 1 - warm_up % per_epoch)  # the end of an epoch is not training
    first.advance(warm_up - 1, lambda: False)
    for other in others:
        other.restore(copy.deepcopy(first.state()))
    for trainer in contenders.values():
        trainer.advance(warm_up, lambda: False)
        trainer.stopwatch.take()
    for step in range(warm_up + 1, warm_up + steps + 1):
        for which, trainer in contenders.items():
            began = time.perf_counter()
            trainer.advance(step, lambda: False)
            if device == "cuda":
                torch.cuda.synchronize()
            spent[which] += time.perf_counter() - began
    return {which: (spent[which] / steps, trainer.stopwatch.take() / spent[which]) for which, trainer in contenders.items()}


def _with_peer(trainer: Any) -> Any:
    warnings.filterwarnings("ignore", message=".*does not define `arg_constraints`.*")
    trainer.problem.structure = lambda batch: TorchStructTrees(batch.lengths)
    return _without_graphs(trainer)  # torch-struct waits for the device


def _without_graphs(trainer: Any) -> Any:
    trainer.graphs = None
    return trainer


def _show(name: str, task: str, trainer: LatentTrainer, found: dict[str, tuple[float, float]]) -> None:
    step, share = found["ours"]
    per_epoch = trainer.steps // trainer.config.epochs
    paper = reported("structured", METHODS[name].label, task.upper(), "minutes")
    minutes = f"{paper.value:g}" if paper else ""
    theirs = f"{per_epoch * found['torch-struct'][0]:27.1f}{found['torch-struct'][0] / step:7.1f}" if len(found) > 1 else ""
    print(f"{METHODS[name].label:18}{1e3 * step:12.1f}{per_epoch * step:12.1f}{minutes:>12}{share:8.1%}{theirs}", flush=True)


def _options() -> argparse.Namespace:
    parser = text_parser("benchmarks.text", __doc__ or "")
    parser.add_argument("--task", choices=TASKS, default="sst")
    parser.add_argument("--only", nargs="+", metavar="ROW", choices=ROWS, help="these rows")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=40, help="timed steps of each; default: 40")
    parser.add_argument("--batch-size", type=int, help="default: the paper's")
    parser.add_argument("--non-projective", dest="projective", action="store_false", default=None)
    parser.add_argument("--projective", dest="projective", action="store_true", default=None)
    parser.add_argument("--device", default="cpu", metavar="cpu|cuda")
    parser.add_argument("--eager", action="store_true", help="without CUDA graphs")
    return parser.parse_args()


if __name__ == "__main__":
    main()
