"""The paper's surrogate gradients, and their frame: supervised learning from a pulled-back label."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from pullback.estimators.base import Downstream, Estimator, needs_objective
from pullback.estimators.checks import at_least, losses_of, positive
from pullback.estimators.decoder import Decoder
from pullback.estimators.forward import Gamma, Gammas, examples_of, forward_losses
from pullback.estimators.losses import CrossEntropy, FenchelYoungLoss, Perceptron
from pullback.estimators.starts import FromArgmax, FromMarginals, Inference, Start
from pullback.estimators.surrogate import Rule, attach, point_with
from pullback.estimators.updates import Mirror, Projected, Unconstrained, Update
from pullback.inference._torch.derivatives import may_be_differentiated
from pullback.structures import Structure


class PulledBack(Estimator):
    """Argmax forward; backward, the gradient of an intermediate loss between the scores and a pulled-back label.

        z = argmax(s),    gradient of loss(s, mu^(k)) with mu^(k) fixed  =  prediction(s) - mu^(k)

    The pulled-back label mu^(k) is a guess of what z should have been: k inner steps from mu^(0) on the loss of one
    example, min over mu of L(mu), with gamma its gradient at mu^(t):

        mu^(0) = start(s),    mu^(t+1) = update(mu^(t), gamma(mu^(t)))

    gamma is the gradient of one example's loss, independent of the weights that the caller puts on the losses: those
    are divided out before the inner steps, and put back on the surrogate gradient after them. If the decoder mixes
    examples (batch norm in training mode), gamma is the gradient of the sum of the losses.

    If the start is the z of the forward pass, its gamma comes with the ordinary backward pass. Then k steps call
    `downstream` k times, k - 1 of them in the backward pass: call `backward()` before variables of `downstream` change.
    Otherwise k steps call it k + 1 times, all within `objective`, the last time with z. A start with several samples
    multiplies the calls: each sample has its own inner steps, and the gradient is their mean.

    An inner call never adds to the decoder's `.grad`. It uses the same random numbers (dropout masks) as the forward
    pass, and the modules that `downstream` refers to get their buffers back (running statistics of batch norm).

    As a layer, with one step from the z of the forward pass, the incoming gradient is used as gamma. A layer cannot see
    the weights of the losses, so after a mean over B examples a step is 1/B of the stated one.

    Args:
        loss: the intermediate loss: `Perceptron()`, `CrossEntropy()`, `SparseMAPLoss()` or `PerturbedLoss(sigma)`.
        start: mu^(0): `FromArgmax()`, `FromMarginals()`, `FromZero()`, `FromSample()` or `FromPerturbedArgmax(T)`.
        update: the inner step: `Unconstrained(eta)`, `Projected(eta)`, `LocallyProjected(eta)`, `Proximal(eta, rho)`,
            `Mirror(eta)` or `MirrorAtZero(eta)`.
        steps: k, at least one.

    >>> from pullback import Categorical
    >>> from pullback.losses import CrossEntropy
    >>> from pullback.parts import FromMarginals, Mirror
    >>> estimator = PulledBack(CrossEntropy(), FromMarginals(), Mirror(step_size=1.0), steps=1)   # SPIGOT-EG
    >>> scores = torch.zeros(1, 2, requires_grad=True)
    >>> cost = torch.tensor([0.0, 1.0])
    >>> estimator.objective(Categorical(), scores, lambda z: z @ cost).sum().backward()
    >>> scores.grad                                          # softmax(0, 0) - softmax(0, -1)
    tensor([[-0.2311,  0.2311]])
    """

    per_step: ClassVar[bool] = False
    """Whether the gradient is divided by the step size."""

    def __init__(self, loss: FenchelYoungLoss, start: Start, update: Update, steps: int = 1) -> None:
        if not isinstance(loss, FenchelYoungLoss):
            raise TypeError(f"loss is {loss!r}; an intermediate loss must be a FenchelYoungLoss, such as CrossEntropy()")
        if getattr(loss, "cost", None) is not None:
            raise TypeError(f"{loss!r} has a cost, which needs the target; as an intermediate loss use {type(loss).__name__}()")
        if update.from_marginals and start.begins_at != "marginals":
            raise ValueError(f"{update!r} can only start from FromMarginals(), not from {start!r}")
        self.loss = loss
        self.start = start
        self.update = update
        self.steps = at_least(self, "steps", steps, 1)

    def objective(self, structure: Structure, scores: Tensor, downstream: Downstream) -> Tensor:
        if self.start.is_forward or not may_be_differentiated(scores):
            later: list[Decoder] | None = [] if self.steps > 1 and self.start.is_forward else None
            rule = self._rule(structure, later)
            return forward_losses(structure, scores, downstream, self.start, rule, later, owner=self)
        z = structure.argmax(scores)
        with torch.no_grad():
            inference = Inference(structure, scores.detach(), z)
            surrogate = self._surrogate(inference, Decoder(structure, scores, downstream, owner=self).gamma)
        return attach(structure, losses_of(structure, scores, downstream(z)), scores, surrogate)

    def __call__(self, structure: Structure, scores: Tensor) -> Tensor:
        if not self.start.is_forward or self.steps > 1:
            raise needs_objective(self, "its inner steps call the decoder again")
        if self.start.samples > 1:
            raise needs_objective(self, "the decoder sees several samples, one after the other")
        perturbed = self.start.perturbed(scores)
        return point_with(structure, perturbed, self.start.point, self._rule(structure, None), examples=None)[0]

    def noiseless(self, structure: Structure, scores: Tensor) -> Tensor:
        return structure.argmax(scores)

    def _rule(self, structure: Structure, later: list[Decoder] | None) -> Rule:
        def gamma(mu: Tensor) -> Tensor:
            assert later is not None
            if self.start.samples == 1:
                return later[0].gamma(mu)
            return torch.stack([decoder.gamma(each) for decoder, each in zip(later, mu, strict=True)])

        def rule(scores: Tensor, z: Tensor, first: Tensor) -> Tensor:
            inference = Inference(structure, scores, z, is_argmax=self.start.begins_at == "argmax")
            return self._surrogate(inference, gamma, first=first)

        return rule

    def _surrogate(self, inference: Inference, gamma: Gamma, first: Tensor | None = None) -> Tensor:
        """prediction(s) - mu^(k), with `first` the gamma at mu^(0) where it is known."""
        structure, scores = inference.structure, inference.scores
        start = self.start.mu(inference)
        from_marginals = self.start.begins_at == "marginals"
        state = self.update.init(structure, scores, start, vertex=inference.z, from_marginals=from_marginals)
        gammas = Gammas(state.allowed, examples_of(structure, scores, self.start))
        for step in range(self.steps):
            here = first if step == 0 and first is not None else gamma(state.mu)
            state = self.update.step(structure, state, gammas.read(here))
        # The difference by itself, where it is the surrogate: it may be far smaller than mu's rounding errors.
        same = self.loss.predicts == self.start.begins_at
        surrogate = state.moved if same else self.loss.prediction(inference) - state.mu
        return gammas.mark(surrogate / self.update.step_size if self.per_step else surrogate)


class STEIdentity(PulledBack):
    """STE-I, straight-through with the identity: a perceptron loss and gradient steps without constraint.

        gradient argmax(s) - mu^(k),    mu^(t+1) = mu^(t) - eta * gamma,    mu^(0) = argmax(s);

    with one step the gradient is eta * gamma.

    Args:
        step_size: eta > 0, on the gradient of one example's loss.
        steps: k; `downstream` is called k times in all.
    """

    def __init__(self, step_size: float | Tensor = 1.0, steps: int = 1) -> None:
        self.step_size = positive(self, "step_size", step_size)
        super().__init__(Perceptron(), FromArgmax(), Unconstrained(step_size), steps)


class SPIGOT(PulledBack):
    """SPIGOT: a perceptron loss and projected gradient steps from the argmax.

        gradient argmax(s) - mu^(k),    mu^(t+1) = SparseMAP(mu^(t) - eta * gamma),    mu^(0) = argmax(s)

    Args:
        step_size: eta > 0, on the gradient of one example's loss.
        steps: k; `downstream` is called k times in all.

    >>> import torch
    >>> from pullback import Categorical
    >>> scores = torch.tensor([[2.0, 1.0, 0.0]], requires_grad=True)
    >>> cost = torch.tensor([1.0, 0.0, 1.0])
    >>> SPIGOT(step_size=1.0).objective(Categorical(), scores, lambda z: z @ cost).sum().backward()
    >>> scores.grad
    tensor([[ 0.5000, -0.5000,  0.0000]])
    """

    def __init__(self, step_size: float | Tensor = 1.0, steps: int = 1) -> None:
        self.step_size = positive(self, "step_size", step_size)
        super().__init__(Perceptron(), FromArgmax(), Projected(step_size), steps)


class SPIGOTCE(PulledBack):
    """SPIGOT-CE: cross-entropy (the CRF loss) and projected gradient steps from the marginals.

        gradient Marg(s) - mu^(k),    mu^(t+1) = SparseMAP(mu^(t) - eta * gamma),    mu^(0) = Marg(s)

    Args:
        step_size: eta > 0, on the gradient of one example's loss.
        steps: k; `downstream` is called k + 1 times in all.
    """

    def __init__(self, step_size: float | Tensor = 1.0, steps: int = 1) -> None:
        self.step_size = positive(self, "step_size", step_size)
        super().__init__(CrossEntropy(), FromMarginals(), Projected(step_size), steps)


class SPIGOTEG(PulledBack):
    """SPIGOT-EG: cross-entropy (the CRF loss) and mirror steps from the marginals.

        gradient Marg(s) - mu^(k),    s^(t+1) = s^(t) - eta * gamma,    mu^(t) = Marg(s^(t)),    s^(0) = s

    Args:
        step_size: eta > 0, on the gradient of one example's loss.
        steps: k; `downstream` is called k + 1 times in all.
    """

    def __init__(self, step_size: float | Tensor = 1.0, steps: int = 1) -> None:
        self.step_size = positive(self, "step_size", step_size)
        super().__init__(CrossEntropy(), FromMarginals(), Mirror(step_size), steps)
