"""Supervised losses: they compare scores with a gold structure, one value per example.

Those that are Fenchel-Young losses also are the intermediate losses of the pulled-back family: for a regulariser R over the
marginal polytope M,

    loss(s, mu) = R*(s) + R(mu) - <s, mu>,    gradient prediction(s) - mu,

where R* is the conjugate of R, and prediction(s) its gradient.
"""

from __future__ import annotations

import abc
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor

from pullback.estimators.checks import arguments_error, event_dims
from pullback.estimators.config import Configured
from pullback.estimators.starts import Inference
from pullback.inference.front.layout import working
from pullback.structures import Structure
from pullback.structures.members import check, why_no_target

Cost = Tensor | Callable[[Tensor], Tensor]
"""The cost of each part, `[..., *parts]`, or a function from the target to it. A structure costs the sum over its parts."""


class Loss(Configured, abc.ABC):
    """A loss between scores and a gold structure, which learns by gradients of the scores.

    >>> from pullback import Categorical
    >>> scores = torch.tensor([[1.0, 3.0]], requires_grad=True)
    >>> loss = Perceptron()(Categorical(), scores, target=torch.tensor([[1.0, 0.0]]))
    >>> loss.backward()
    >>> loss, scores.grad
    (tensor([2.], grad_fn=<...>), tensor([[-1.,  1.]]))
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in {"__call__"} & cls.__dict__.keys():
            setattr(cls, name, _checking(cls.__dict__[name]))

    @abc.abstractmethod
    def __call__(self, structure: Structure, scores: Tensor, target: Tensor) -> Tensor:
        """One loss for each structure, `[...]`, the leading dimensions of the scores; differentiable in the scores.

        A target that is not a structure is an error that names the example, on a CPU or with `validate=True`. Of an average of
        structures only a condition is checked that few other tensors meet.

        Args:
            structure: the structure.
            scores: `[..., *parts]`.
            target: structures or averages of structures, of the shape of the scores.
        """


class FenchelYoungLoss(Loss):
    """A loss whose gradient is prediction(s) - target, so that it can be the intermediate loss of `PulledBack`."""

    predicts: ClassVar[str] = "another"
    """The kind of the prediction: `argmax` or `marginals`, which a start may share; `another` for anything else."""

    @abc.abstractmethod
    def prediction(self, inference: Inference) -> Tensor:
        """The prediction that the gradient of the loss compares with the target: `[..., *parts]`."""


Method = TypeVar("Method", bound=Callable[..., Tensor])


def _checking(method: Method) -> Method:
    """The method, after a look at its arguments, on scores of at least float32."""
    needed = inspect.signature(method).parameters["target"].default is inspect.Parameter.empty

    @functools.wraps(method)
    def checked(self: Loss, structure: Structure, scores: Tensor, target: Tensor | None = None, **given: Any) -> Tensor:
        if not isinstance(scores, Tensor) or not isinstance(structure, Structure):
            raise arguments_error(self, structure, scores)
        if target is None and needed:
            raise TypeError(f"{self!r} was given no target; pass target=z, gold structures of the shape of the scores")
        if target is not None:
            structure._check_same_shape(scores, target, "target")
            target = target if target.is_floating_point() else target.to(working(scores).dtype)
            why_not = functools.partial(why_no_target, structure)
            check(structure, structure._expanded(target, scores), "target", structure._are_targets, why_not)
        return method(self, structure, working(scores), target, **given).to(structure._result_dtype(scores))

    return checked  # type: ignore[return-value]


def checked_cost(owner: Loss, cost: Cost | None) -> Cost | None:
    """The option `cost`, if it can be one."""
    if cost is None or isinstance(cost, Tensor) or callable(cost):
        return cost
    raise TypeError(
        f"{type(owner).__name__}: cost is {cost!r}; it must be a tensor of costs [..., *parts], or a function from the target "
        f"to one, such as lambda z: {cost!r} * (1 - z)"
    )


def costs_of(structure: Structure, cost: Cost, target: Tensor) -> Tensor:
    """The costs of the parts, `[..., *parts]`, given the target."""
    found = cost if isinstance(cost, Tensor) else cost(target)
    if not isinstance(found, Tensor):
        raise TypeError(f"the cost is a {type(found).__name__}; it must be a tensor [..., *parts], or a function to one")
    structure._check_same_shape(target, found, "cost")
    return found


class Perceptron(FenchelYoungLoss):
    """The perceptron loss (R = 0).

        max over z of <s, z> - <s, mu>,    gradient argmax(s) - mu

    It is zero where the target is a best structure, however close the second.
    """

    predicts: ClassVar[str] = "argmax"

    def __call__(self, structure: Structure, scores: Tensor, target: Tensor) -> Tensor:
        return structure._gain(scores, structure.argmax(scores), target)

    def prediction(self, inference: Inference) -> Tensor:
        return inference.argmax


class CrossEntropy(FenchelYoungLoss):
    """Cross-entropy, the CRF loss when structured (R = -H; without the target's own entropy, a constant).

        log Z(s) - <s, mu>,    gradient Marg(s) - mu

    For a structure, rather than an average of structures, it is -log p(z). With costs c of the parts it is the softmax-margin
    loss (Gimpel and Smith, 2010), an upper bound of the hinge loss,

        log Z(s + c) - <s, mu>,    gradient Marg(s + c) - mu.

    Args:
        cost: None, costs `[..., *parts]`, or a function from the target to costs, such as `pullback.losses.hamming`.
    """

    predicts: ClassVar[str] = "marginals"
    _unlisted: ClassVar[Mapping[str, Any]] = {"cost": None}

    def __init__(self, cost: Cost | None = None) -> None:
        self.cost = checked_cost(self, cost)

    def __call__(self, structure: Structure, scores: Tensor, target: Tensor) -> Tensor:
        if self.cost is None:
            return -structure._log_prob(scores, target)
        cost = costs_of(structure, self.cost, target)
        return -structure._log_prob(scores + cost, target) + structure._product(cost, target)

    def prediction(self, inference: Inference) -> Tensor:
        return inference.marginals()


class SparseMAPLoss(FenchelYoungLoss):
    """The SparseMAP loss, the Euclidean counterpart (R = ||mu||^2 / 2).

        max over m in M of (<s, m> - ||m||^2 / 2) + ||mu||^2 / 2 - <s, mu>,    gradient SparseMAP(s) - mu

    It is zero where the target is the SparseMAP prediction: it has a margin.
    """

    def __call__(self, structure: Structure, scores: Tensor, target: Tensor) -> Tensor:
        with torch.no_grad():
            best = structure.sparsemap(scores)
        apart = torch.where(structure.allowed(scores), target.square() - best.square(), 0.0)
        return structure._gain(scores, best, target) + apart.sum(event_dims(structure)) / 2

    def prediction(self, inference: Inference) -> Tensor:
        return inference.structure.sparsemap(inference.scores, warm_start=inference.argmax)
