"""Small changes of kernels and estimators that make them wrong: each must be noticed by the test that is named with it.

    python -m tests.mutate                  every edit, about half a minute each
    python -m tests.mutate alignment masks  those whose file, or test, contains one of these words

An edit is made in a copy of the repository. Its test must pass without the edit and fail with it. An edit of what writes
generated kernels writes them again.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
COPIED = ("src", "study", "tests", "pyproject.toml")


@dataclass(frozen=True)
class Edit:
    """A change of one place in a file of the library or of the study, and the test that notices it.

    Attributes:
        file: in `src/pullback`; one that begins with "study/" in the repository.
        old: text that occurs once.
        new: what replaces it.
        test: arguments of pytest; those of a test of a GPU's kernels run in Triton's interpreter.
    """

    file: str
    old: str
    new: str
    test: str

    @property
    def path(self) -> str:
        return self.file if self.file.startswith("study/") else f"src/pullback/{self.file}"

    @property
    def generates(self) -> bool:
        """Whether kernels are generated from the file."""
        return self.file.startswith("inference/engine/rules/") or self.file.endswith("/rules.py")

    @property
    def interpreted(self) -> bool:
        return self.test.startswith("tests/cuda/")


_BANDS = "tests/inference/test_alignment_bands.py -k best_path"
_STANDARDIZED = "tests/estimators/test_standardized.py -k"
_MASKS, _SERVES = (f"tests/cuda/test_masks_cuda.py -k {name}" for name in ("forbidden_arcs", "which_kernel"))
_STRUCTURES, _MATCHINGS = "tests/cuda/test_structures_cuda.py -k", "tests/inference/test_assignment.py -k"
_PATHS = "tests/structures/test_shortest_path.py -k"
_FUZZ, _EVERY_MASK = "tests/test_fuzz.py -k 'random_batches", "tests/test_fuzz.py -k 'every_mask"
EDITS = [
    Edit("inference/alignment/kernels.py", "(t - ready + lanes) * lanes", "(ready - 1 - t) * lanes",
         "tests/inference/test_alignment_bands.py -k as_the_reference"),
    Edit("inference/alignment/maximum.py", "best = larger(above, corner) if lag else above", "best = corner if lag else above",
         _BANDS),
    Edit("inference/alignment/maximum.py", "edge[t - (ROWS - 1) * lag] = last_row(here)", "edge[t] = last_row(here)", _BANDS),
    Edit("inference/_numba/bands.py", "builder.sub(before, builder.mul(row, self._lag))", "before", _BANDS),
    Edit("inference/factored/members.py", "            fine[b] &= tag >= 0\n", "",
         "tests/structures/test_factored_chain.py -k log_prob_of_sequences"),
    Edit("inference/_numba/ways.py", "where_larger(splat_wide(DIGITS, like), k, m, one), one)", "m, m)",
         "tests/inference/test_fast_sums.py -k 'all_scales and alignment'"),
    Edit("inference/factored/kernels.py", "if length > 1:  # else there may be no weights yet", "if True:",
         "tests/structures/test_factored_chain.py -k single_positions"),
    Edit("inference/alignment/kernels.py", "normal = t % 8 < 2", "normal = t % 8 < 1",
         "tests/inference/test_alignment_bands.py -k odd_steps"),
    Edit("inference/ctc/kernels.py", "if i > 0 and symbol != targets[i - 1]:", "if i > 0:",
         "tests/structures/test_ctc.py -k pytorch"),
    Edit("inference/factored/kernels.py", "value[b] = state[2] + math.log(total[row - room + b]) + most[b]",
         "value[b] = state[0] + math.log(alpha[row + b])", "tests/structures/test_factored_chain.py -k all_but_forbid"),
    Edit("inference/factored/kernels.py", "(known >= 0 and are_equal(flat, base, known, cells))", "(known >= 0)",
         "tests/structures/test_factored_chain.py -k some_examples"),
    Edit("inference/ctc/reference.py", "step *= 2", "step *= 3", "tests/structures/test_ctc.py -k sum_over_states"),
    Edit("inference/knapsack/reference.py", "room - costs[:, i, None]", "room - costs[:, i, None] - 1",
         "tests/structures/test_knapsack.py -k enumeration"),
    Edit("inference/knapsack/reference.py", "(costs < 1) &", "(costs < 0) &",
         "tests/structures/test_knapsack.py -k only_a_call"),
    Edit("inference/at_most/reference.py", "(ordered.values > 0)", "(ordered.values > -9)",
         "tests/structures/test_promises.py -k 'argmax and most'"),
    Edit("inference/at_most/reference.py", "k.double() - rounding", "k.double() + rounding",
         "tests/structures/test_knapsack.py -k at_most_k_items"),
    Edit("inference/shortest_path/network.py", "leads[v] = leads[v] or any", "leads[v] = any", f"{_PATHS} no_parts"),
    Edit("inference/shortest_path/network.py", "- down * m - right", "- down * m", f"{_PATHS} against"),
    Edit("inference/shortest_path/family.py", "flat.scores, 0.0)", "flat.scores, flat.scores)", f"{_PATHS} no_parts"),
    Edit("inference/front/plan.py", "if not ctx.validate:", "if ctx.validate:",
         "tests/structures/test_ctc.py -k leaves_the_weights"),
    Edit("inference/front/plan.py", "if derivatives.function_modes():  # such", "if False:  # such",
         "tests/structures/test_promised_inputs.py -k 'default_device and chain'"),
    Edit("structures/own_scores.py", "flat.dtype = self._dtype(flat.dtype)", "pass",
         "tests/structures/test_factored_chain.py -k half_precision_and"),
    Edit("structures/within.py", "feasible | total.isnan()", "feasible", "tests/structures/test_within.py -k bad_example"),
    Edit("inference/_torch/derivatives.py", " or args[0].is_neg()", "",
         "tests/structures/test_promised_inputs.py -k 'negative_views and projective'"),
    Edit("estimators/standardized.py", "8 * torch.finfo", "8e4 * torch.finfo", f"{_STANDARDIZED} nearly_equal"),
    Edit("estimators/standardized.py", "8 * torch.finfo", "8e-4 * torch.finfo", f"{_STANDARDIZED} equal_scores"),
    Edit("estimators/adaptive_imle.py", "1 - self.decay)", "self.decay)", "tests/estimators/test_state.py -k decays"),
    Edit("estimators/adaptive_imle.py", "torch.sign(1 - self.nonzeros)", "torch.sign(self.nonzeros - 1)",
         "tests/estimators/test_mistakes.py"),
    Edit("estimators/updates.py", "moved = torch.where(state.allowed, state.moved + self._by(gamma), 0.0)",
         "moved = state.moved + self._by(gamma)", "tests/estimators/test_updates.py"),
    Edit("structures/base.py", "(apart < -1e6) & (mu.abs() < 16", "(apart < -1e6) & (mu.abs() < 0",
         "tests/inference/test_large_scores.py -k divergences"),
    Edit("inference/eisner/cuda_charts.py", "_within(gap_at - start, width), _within(right_at, width)",
         "gap_at - start, right_at", "tests/cuda/test_masks_cuda.py -k 'forbidden_arcs and unproven'"),
    Edit("inference/eisner/cuda.py", "if unproven() and scores", "if scores", _SERVES),
    Edit("inference/sparsemap/cuda.py", "if unproven() and n <= min(", "if n <= min(", _SERVES),
    Edit("inference/eisner/cuda_maximum.py", "used = (split < width - 1) & real", "used = (split < width - 2) & real", _MASKS),
    Edit("inference/eisner/cuda_maximum.py", "new = tl.where(left, arc >= best, arc > best)", "new = arc > best",
         "tests/cuda/test_eisner_cuda.py -k 'test_every_operation and integers'"),
    Edit("inference/sparsemap/cuda_projective.py", "tl.where(left > up, left_at + 1, 0)", "tl.where(left > up, left_at, 0)",
         _MASKS),
    Edit("inference/eisner/cuda_charts.py", "_within(gap_at - start, width), _within(right_at, width), _within(left_at, width)",
         "gap_at - start, right_at, left_at", f"{_EVERY_MASK} and unproven and not early'"),
    Edit("inference/engine/hypergraph/cuda_kernels.py", "for offset in range(0, degree, EDGES):\n                x = _terms",
         "for offset in range(0, degree - 1, EDGES):\n                x = _terms", f"{_EVERY_MASK} and early and sums'"),
    Edit("inference/engine/hypergraph/sweeps.py", "w = exp(narrow(load_wide(terms, i * lanes, scores) - finite, scores))",
         "w = exp(narrow(load_wide(terms, i * lanes, scores), scores))", f"{_FUZZ} and segmentation'"),
    Edit("inference/segmentation/reference.py", "scores[:, i, j - 1 - i]", "scores[:, i, 0]",
         f"{_FUZZ} and segmentation'"),
    Edit("inference/cky/rules.py", '"split(i, j)", part="i, j"', '"split(i, j)", part="j, i"', f"{_FUZZ} and binary'"),
    Edit("inference/engine/rules/lanewise.py", "where_larger(load(weights, at_), zero, mean, zero)", "mean",
         "tests/inference/test_rules.py -k same_bits"),
    Edit("inference/engine/rules/inside.py", "abreast - 2)}, -1, -1):", "abreast - 2)}, 0, -1):",
         f"{_FUZZ} and projective-single and not non'"),
    Edit("inference/engine/rules/inside.py", "in range(max({first}, {begun}), {stop}):", "in range({begun}, {stop}):",
         f"{_FUZZ} and binary'"),
    Edit("inference/engine/rules/numbers.py", "gap = _near(builder, _subtracted(builder, a, b))",
         "gap = builder.sub(a[0], b[0])", "tests/inference/test_rules.py -k no_rounding"),
    Edit("inference/engine/hypergraph/scaled.py", "where_positive(out, times(out, at(weights, part[e] * lanes)), zero)",
         "times(out, at(weights, part[e] * lanes))",
         "tests/structures/test_promised_inputs.py -k 'outside_of_the_parts and segmentation'"),
    Edit("inference/engine/rules/outside.py", "for j in range(n - 1, {last}, -1):", "for j in range(i + 1, n):",
         f"{_FUZZ} and projective-single and not non'"),
    Edit("inference/engine/rules/outside.py", "between(same.stop, use.stop)", "between(use.first, use.stop)",
         f"{_FUZZ} and binary'"),
    Edit("inference/engine/rules/descent.py", '= {rule.first} + {chosen}"', '= {rule.first} + 0 * {chosen}"',
         "tests/structures/test_sampling.py -k frequencies"),
    Edit("inference/matrix_tree/elimination.py", "if h < k or multiroot or k == 0:", "if True:",
         f"{_FUZZ} and nonprojective-single'"),
    Edit("inference/matrix_tree/elimination.py", "own_share = zero\n",
         "own_share = lowered(zero, added(at(weights[1], slot), through[1]), rate)\n",
         "tests/inference/test_large_scores.py -k root_far"),
    Edit("inference/engine/rules/numbers.py", "builder.fsub(g, most)", "builder.fsub(g, g)",
         "tests/inference/test_large_scores.py -k other_sizes"),
    Edit("inference/front/plan.py", "or torch.is_grad_enabled() ", "",
         "tests/structures/test_gradients.py -k constant_direction"),
    Edit("inference/matrix_tree/elimination.py", "added(added(share[1], other[1]), ", "added(share[1], ",
         "tests/inference/test_matrix_tree.py -k exponents"),
    Edit("inference/matrix_tree/numbers.py", "fma(move, m[0], m[1]) * factor", "m[1] * factor",
         "tests/inference/test_matrix_tree.py -k exponents"),
    Edit("inference/matrix_tree/kernels.py", "if _first_without(exponents, size, lane) >= 0:", "if False:",
         "tests/inference/test_large_scores.py -k single_root_leads_to"),
    Edit("inference/simplex/kernels.py", "if s > -1.0:", "if s > -0.5:", "tests/inference/test_simplex.py"),
    Edit("inference/simplex/kernels.py", "mean = total / count", "mean = total / classes", "tests/inference/test_simplex.py"),
    Edit("inference/sparsemap/starts.py", "return -1 if total == -np.inf else count", "return count",
         "tests/inference/test_sparsemap.py -k leaves_the_range"),
    Edit("study/pullback_study/runs/files.py", " and os.path.samestat(os.fstat(descriptor), os.stat(path))", "",
         "study/tests/runs/test_lock.py -k holder_has_removed"),
    Edit("study/pullback_study/results/configurations.py", "-math.inf if cell.diverged else cell.value", "cell.value",
         "study/tests/results/test_configurations.py -k one_run_diverged"),
    Edit("study/pullback_study/results/choice.py", "worst if math.isnan(value) else value", "value",
         "study/tests/results/test_clusters.py -k wins_no_search"),
    Edit("inference/engine/hypergraph/traced.py", "if operands.shape[-1] == 0:", "if False:",
         "tests/structures/test_dynamic_program.py -k of_nothing"),
    Edit("study/pullback_study/runs/provenance.py", "if len(code) > 1 else None", "if len(code) > 2 else None",
         "study/tests/results/test_reproduce.py -k clean_commit"),
    Edit("inference/chu_liu_edmonds/cuda_contraction.py", "reduced += tl.where(inside", "reduced -= tl.where(inside",
         "tests/cuda/test_nonprojective_cuda.py"),
    Edit("inference/chain/cuda_paths.py", "tl.minimum(i + 1, length - 1) * cells", "tl.minimum(i + 2, length - 1) * cells",
         f"{_STRUCTURES} chain"),
    Edit("inference/subset/sums.py", "u < coins.chances[0][at] * coins.heads[0][i * LANES + lane] / whole", "u < 1",
         f"{_FUZZ} and subset'"),
    Edit("inference/subset/sums.py", "(p, slope), (rest, (p - p) - slope)", "(p, slope), (rest, p - p)",
         f"{_FUZZ} and subset'"),
    Edit("inference/subset/cuda_picks.py", "tl.cumsum(level, 0) <= k", "tl.cumsum(level, 0) < k", f"{_STRUCTURES} subset"),
    Edit("inference/alignment/cuda_sweeps.py", "column = place + (t - 2 * (LANES - 1))", "column = place + (t - 2 * LANES + 1)",
         f"{_STRUCTURES} alignment"),
    Edit("inference/assignment/search.py", "p.price[j] += gain", "p.price[j] += 2 * gain", f"{_MATCHINGS} exchange"),
    Edit("inference/assignment/search.py", "(_row(p, i, j) - top) -", "_row(p, i, j) -", f"{_MATCHINGS} masks"),
]  # fmt: skip


def main() -> int:
    words = sys.argv[1:]
    chosen = [edit for edit in EDITS if not words or any(word in edit.file + edit.test for word in words)]
    alive = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in COPIED:
            (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, Path(folder, name))
        for edit in chosen:
            verdict = _verdict(edit, Path(folder))
            alive += verdict != "killed"
            print(f"{verdict:12} {edit.file}: {' '.join(edit.new.split())[:70]}  ({edit.test})", flush=True)
    print(f"{len(chosen)} edits, {alive} not killed")
    return bool(alive)


def _verdict(edit: Edit, folder: Path) -> str:
    """Whether the test notices the edit: "killed", "alive", or why that is not known."""
    file = folder / edit.path
    if not file.exists() or file.read_text().count(edit.old) != 1:
        return "out of date"
    text = file.read_text()
    if _fails(edit, folder):
        return "red before"
    try:
        file.write_text(text.replace(edit.old, edit.new))
        _generate(edit, folder)
        return "killed" if _fails(edit, folder) else "alive"
    finally:
        file.write_text(text)
        _generate(edit, folder)


def _generate(edit: Edit, folder: Path) -> None:
    """Write the generated kernels, if they follow from the file of the edit."""
    if edit.generates:
        environment = os.environ | {"PYTHONPATH": str(folder / "src")}
        subprocess.run(
            [sys.executable, "-m", "pullback.inference.engine.rules"],
            cwd=folder,
            env=environment,
            check=True,
            stdout=subprocess.DEVNULL,
        )


def _fails(edit: Edit, folder: Path) -> bool:
    """Whether pytest runs the test and fails, or ends before its time."""
    environment = os.environ | {"PYTHONPATH": f"{folder / 'src'}:{folder / 'study'}", "PULLBACK_QUIET": "1"}
    environment |= {"TRITON_INTERPRET": "1", "PULLBACK_TEST_BACKENDS": "cuda"} if edit.interpreted else {}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-W", "ignore", "-p", "no:cacheprovider", *shlex.split(edit.test)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode in (2, 4, 5):  # interrupted, wrong arguments, no tests: nothing is known
        sys.exit(f"{edit.test}: pytest ended with {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.returncode != 0


if __name__ == "__main__":
    sys.exit(main())
