"""What is wrong with the answers for a batch: every operation and gradient, by public names only."""

from __future__ import annotations

import math
import re

import numpy as np
import torch
from torch import Tensor

import pullback as pb
from pullback.inference.front.family import backend

from . import exact
from .compare import TOLERANCE, Check, Problem, slope_of
from .inputs import Batch
from .membership import check_members

SUMS = ("log_partition", "marginals", "entropy")


def check(batch: Batch, device: torch.device, name: str, oracle: str, part: str = "all") -> tuple[int, list[Problem]]:
    """How many answers of a batch were checked, and what is wrong with them.

    Args:
        batch: the input.
        device: of the tensors.
        name: the backend that is checked.
        oracle: another backend, for sizes whose members are too many to enumerate.
        part: "maxima" for the argmax and SparseMAP, "sums" for what is not SparseMAP, or "all".
    """
    this = Check(batch, device, name)
    with backend(name):
        if batch.validate and any(this.infeasible):
            _errors(this)
        else:
            gold, right = _right(this, oracle)
            _best(this, right)
            if this.subject.gibbs and right and part != "maxima":
                _sums(this, gold, right)
                _samples(this)
            if this.subject.projects and part != "sums":
                _projection(this, oracle)
            if part != "maxima":
                _alone(this)
            if not this.is_large and part == "all" and not this.is_interpreted:
                check_members(this)
    return this.count, this.problems


def _errors(this: Check) -> None:
    """An example without a structure is an error that names it."""
    first = this.infeasible.index(True)
    names = ("argmax", *["sparsemap"] * this.subject.projects, *(SUMS if this.subject.gibbs else ()))
    for operation in names:
        this.count += 1
        try:
            getattr(this.structure, operation)(this.scores)
        except ValueError as error:
            if not re.search(rf"\b{first}\b", str(error)):
                this.wrong(operation, first, f"has no structure, and the error does not name it: {error}")
        else:
            this.wrong(operation, first, "has no structure, and there is no error")


def _right(this: Check, oracle: str) -> tuple[Tensor, dict[str, np.ndarray]]:
    """A member for each example, and the right answers, `[B, ...]`, NaN for examples without a structure."""
    batch = this.batch
    if this.is_large:
        with backend(oracle):
            noise = torch.where(batch.masked, -torch.inf, torch.sin(3.0 + torch.arange(float(batch.scores.numel()))).reshape(
                batch.scores.shape))  # fmt: skip
            gold = exact.without_checks(batch).argmax(noise.double()).nan_to_num(0.0)
        found = exact.by_another_backend(batch, oracle, this.direction.double(), gold)
        return gold, {operation: x.flatten(1).numpy() if x.dim() > 1 else x.numpy() for operation, x in found.items()}
    rows, members = [], []
    other = exact.other_scores(batch)
    for i in range(len(batch.sizes)):
        known = exact.enumerated(batch, i)
        unmasked = exact.members_of(batch, i).numpy()
        members.append(unmasked[(7 * i) % len(unmasked)] if len(unmasked) else np.zeros(math.prod(batch.parts)))
        if len(known.z):
            those = np.where((known.z > 0).any(0), other[i].double().reshape(-1).numpy(), 0)
            direction = this.direction[i].double().reshape(-1).numpy()
            rows.append(exact.by_enumeration(known, direction, members[-1], those))
        else:
            rows.append(None)
    some = next((row for row in rows if row is not None), {})
    nothing = {operation: np.full(np.shape(x), np.nan) for operation, x in some.items()}
    right = {operation: np.stack([(row or nothing)[operation] for row in rows]) for operation in some}
    gold = torch.from_numpy(np.stack(members).astype(float)).reshape(batch.scores.shape)
    return gold, right


def _best(this: Check, right: dict[str, np.ndarray]) -> None:
    """The argmax is a member, of the largest score; of equal ones that of the reference."""
    batch, z = this.batch, this.structure.argmax(this.scores)
    if not right:
        return
    inside = torch.where((z != 0).cpu(), batch.scores, 0.0).double()  # NaN if z has something in the padding
    value = (inside * z.cpu().double()).flatten(1).sum(1) + this.subject.own(z.cpu())
    this.compare("argmax's score", value + 0.0 * z.cpu().flatten(1).sum(1), right["argmax"])
    _members(this, "argmax", z)
    exactly = batch.kind.startswith(("ties", "zeros")) and this.subject.one_rule
    if exactly and this.dtype.itemsize > 2 and this.name != "reference":
        this.count += len(z)
        with backend("reference"):
            same = exact.without_checks(batch).argmax(batch.scores)
        for i in range(len(z)):
            if not this.infeasible[i] and not torch.equal(same[i], z[i].cpu()):
                this.wrong("argmax", i, "is not the structure that the reference takes of equal ones")


def _members(this: Check, operation: str, z: Tensor) -> None:
    """Structures `[B, *parts]` have no forbidden part, and are members."""
    batch, z = this.batch, z.detach().cpu().double().flatten(1)
    this.count += len(z)
    for i in range(len(z)):
        if this.infeasible[i]:
            continue
        if this.is_large:
            bad = bool(((z[i] != 0) & (z[i] != 1)).any() or ((z[i] > 0) & batch.masked[i].flatten()).any())
        else:
            bad = not (exact.members_of(batch, i) == z[i]).all(1).any()
        if bad:
            this.wrong(operation, i, "is not a structure without masked parts")


def _sums(this: Check, gold: Tensor, right: dict[str, np.ndarray]) -> None:
    """Log-partition, marginals, entropy, log-probability and divergence, with their gradients."""
    structure, weights = this.structure, this.weights.double().numpy()[:, None]
    for operation in SUMS:
        along = this.direction if operation == "marginals" else this.weights
        value, gradient = this.differentiated(getattr(structure, operation), along.to(this.device))
        rounding = 1.0 if operation == "log_partition" or this.is_large else 0.0
        this.compare(operation, value, right[operation], rounding=rounding)
        slope = slope_of(operation)
        expected = right[slope] if operation == "marginals" else weights * right[slope]
        this.compare(slope, gradient, expected, 10.0, rounding=float(this.is_large))
    inside = gold.to(this.device, this.dtype)
    value, gradient = this.differentiated(lambda s: structure.log_prob(s, inside), this.weights.to(this.device))
    this.compare("log_prob", value, right["log_prob"], rounding=2.0)
    this.compare("log_prob's gradient", gradient, weights * right["log_prob's gradient"], 2.0, rounding=float(this.is_large))
    if this.is_brief:
        return
    if "kl" in right:
        other = exact.other_scores(this.batch).to(this.device).requires_grad_()
        value, gradient = this.differentiated(lambda s: structure.kl(s, other.detach()), this.weights.to(this.device))
        finite = bool((this.batch.masked & this.batch.scores.isfinite()).any())  # masks that are multiplied by rounded zeros
        this.compare("kl", value, right["kl"], 100.0 if finite else 4.0, rounding=4.0)
        this.compare("kl's gradient", gradient, weights * right["kl's gradient"], 20.0, rounding=4.0)
        (gradient,) = torch.autograd.grad(structure.kl(this.scores, other), other, this.weights.to(this.device))
        expected = weights * right["kl's gradient in the other scores"]
        this.compare("kl's gradient in the other scores", gradient, expected, 4.0)
    if this.batch.seed % 3 == 0 and this.dtype.itemsize > 2:
        _forward_mode(this, right)


def _forward_mode(this: Check, right: dict[str, np.ndarray]) -> None:
    direction = this.direction.to(this.device)
    flat = direction.double().flatten(1).cpu().numpy()
    for operation in SUMS:
        _, tangent = torch.func.jvp(getattr(this.structure, operation), (this.scores,), (direction,))
        slope = slope_of(operation)
        expected = right[slope] if operation == "marginals" else (right[slope].reshape(flat.shape) * flat).sum(1)
        expected = expected.astype(float)
        expected[this.infeasible] = np.nan  # whatever the oracle's gradient is there: 0 where a loss leaves the result out
        factor = 10.0 * math.prod(this.batch.parts)
        this.compare(f"{operation}, forward mode", tangent, expected, factor, rounding=float(this.is_large))


def _samples(this: Check) -> None:
    """Samples are members, and the same for the same generator."""
    first, again = (this.structure.sample(this.scores, torch.Generator(this.device).manual_seed(3)) for _ in range(2))
    _members(this, "sample", first)
    if not torch.equal(first.nan_to_num(2.0), again.nan_to_num(2.0)):
        this.wrong("sample", 0, "is another one for the same generator")


def _projection(this: Check, oracle: str) -> None:
    """SparseMAP is a mean of members, and optimal: no member gains on it; its gradient is that of differences."""
    batch, most = this.batch, max(this.size)
    if most > 1e4 or (this.is_large and not batch.kind.startswith("normal")):  # ties of thousands of structures take minutes
        return
    leaf = this.scores.detach().requires_grad_(this.is_interpreted)
    solution = this.structure.sparsemap_solution(leaf)
    mu = solution.mu.detach().cpu().double()
    structures, weights = solution.structures.cpu().double(), solution.weights.cpu().double()
    mean = (weights.reshape(*weights.shape, *[1] * (mu.dim() - 1)) * structures).sum(1)
    tolerance = 10 * TOLERANCE[this.dtype]
    for i in range(len(mu)):
        this.count += 1
        if this.infeasible[i]:
            continue
        apart = float((mean[i] - mu[i]).abs().max()) if mu[i].numel() else 0.0
        if not apart <= tolerance or float(weights[i].min()) < -1e-9 or (mu[i].flatten() * batch.masked[i].flatten()).any():
            this.wrong("sparsemap", i, f"is {apart:.2g} from the mean of its structures, or on masked parts")
    gains = exact.gains(batch, mu, oracle, this.is_large)
    for i, gain in enumerate(gains):
        if not this.infeasible[i] and not gain <= tolerance * (1 + most) * (1 + this.is_large * math.sqrt(max(batch.parts))):
            this.wrong("sparsemap", i, f"can be improved along a structure, by {gain:.2g}")
    if this.is_brief:
        return
    if not this.is_large:
        _warm(this, solution)
        if hasattr(this.structure, "local_projection"):
            _local(this)
    if this.is_interpreted:
        _slope_as_on_the_cpu(this, torch.autograd.grad(solution.mu, leaf, this.direction.to(solution.mu))[0])
    elif this.dtype == torch.float64 and not this.is_large and not any(this.infeasible):
        _slope_of_projection(this)


def _slope_as_on_the_cpu(this: Check, found: Tensor) -> None:
    """SparseMAP's gradient, where it takes too long to find differences."""
    none = torch.tensor(this.infeasible).reshape(-1, *[1] * (this.direction.dim() - 1))
    with backend("cpu"):
        expected = this.differentiated(exact.without_checks(this.batch).sparsemap, this.direction)[1].double()
    this.compare("sparsemap's gradient", found, expected.masked_fill(none, torch.nan).flatten(1).numpy(), 10.0)


def _warm(this: Check, solution: pb.SparseMAPSolution) -> None:
    """SparseMAP finds the same from its own structures, and from those that have forbidden parts."""
    free = this.structure.argmax(torch.where(this.batch.masked.to(this.device), 0.0, this.scores)).detach()
    expected = solution.mu.detach().cpu().double().flatten(1).numpy()
    for start in (free,) if this.is_interpreted else (solution, free):
        this.compare("sparsemap, warm", this.structure.sparsemap(this.scores, warm_start=start), expected, 20.0)


def _local(this: Check) -> None:
    """The projection onto the local polytope of trees, by PyTorch's operations alone."""
    with backend("reference"):
        expected = exact.without_checks(this.batch).local_projection(this.batch.scores).double().flatten(1)
    none = torch.tensor(this.infeasible)[:, None]
    found = this.structure.local_projection(this.scores).cpu().flatten(1).masked_fill(none, torch.nan)
    this.compare("local_projection", found, expected.masked_fill(none, torch.nan).numpy())


def _slope_of_projection(this: Check, h: float = 1e-4) -> None:
    """SparseMAP's gradient where it is differentiable along a line, where the differences from both sides agree."""
    line = torch.where(this.batch.masked | this.batch.scores.isnan(), 0.0, this.direction).to(this.device)
    mu, gradient = this.differentiated(this.structure.sparsemap, line)  # its Jacobian is symmetric
    before, after = ((this.structure.sparsemap(this.scores + step * line) - mu.detach()) / step for step in (-h, h))
    if not mu.numel():
        return
    smooth = (before - after).abs().flatten(1).amax(1) < 1e-6
    expected = torch.where(smooth.reshape(-1, *[1] * (mu.dim() - 1)), after, torch.nan).cpu().flatten(1).numpy()
    this.compare("sparsemap's gradient", gradient, expected, 1e3)


def _alone(this: Check) -> None:
    """An example has the same bits alone as in its batch, in its gradients too."""
    batch, last = this.batch, len(this.batch.sizes) - 1
    if last == 0 or this.infeasible[last]:
        return
    alone = batch.only(last).structure_on(this.device)
    this.count += 1
    if not torch.equal(alone.argmax(this.scores[last:]), this.structure.argmax(this.scores)[last:]):
        this.wrong("argmax", last, "is another one alone than in its batch")
    for operation in SUMS if this.subject.gibbs and not this.is_brief else ():
        this.count += 1
        direction = (this.direction if operation == "marginals" else this.weights).to(this.device)
        together = this.differentiated(getattr(this.structure, operation), direction)
        leaf = this.scores[last:].detach().requires_grad_()
        value = getattr(alone, operation)(leaf)
        (gradient,) = torch.autograd.grad(value, leaf, direction[last:])
        for what, own, its in zip((operation, slope_of(operation)), (value, gradient), together, strict=True):
            if what not in this.subject.varies and not torch.equal(own, its[last:]):
                this.wrong(what, last, "has other bits alone than in its batch")
