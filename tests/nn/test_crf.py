"""The CRF against pytorch-crf on prefix masks, and against brute force on masks with holes."""

from __future__ import annotations

import copy
import itertools
import pickle

import pytest
import torch
from torch import Tensor

from pullback import FactoredChain
from pullback.nn import CRF, allowed_transitions

torchcrf = pytest.importorskip("torchcrf")


def _pair(batch_first: bool, tags: int = 4, dtype: torch.dtype = torch.float64) -> tuple[CRF, torch.nn.Module]:
    torch.manual_seed(0)
    theirs = torchcrf.CRF(tags, batch_first=batch_first).to(dtype)
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter)
    ours = CRF(tags, batch_first=batch_first).to(dtype)
    ours.load_state_dict(theirs.state_dict())
    return ours, theirs


def _batch(batch_first: bool, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    emissions = torch.randn(5, 7, 4, generator=generator, dtype=dtype)
    tags = torch.randint(4, (5, 7), generator=generator)
    mask = torch.arange(7) < torch.tensor([7, 1, 3, 6, 2])[:, None]
    return (emissions, tags, mask) if batch_first else (emissions.transpose(0, 1), tags.T, mask.T)


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("reduction", ["none", "sum", "mean", "token_mean"])
def test_log_likelihoods_are_those_of_pytorch_crf(batch_first: bool, masked: bool, reduction: str) -> None:
    ours, theirs = _pair(batch_first)
    emissions, tags, mask = _batch(batch_first)
    given = [tags, mask] if masked else [tags]
    leaves = [emissions.clone().requires_grad_() for _ in range(2)]
    found, expected = (crf(leaf, *given, reduction=reduction) for crf, leaf in zip((ours, theirs), leaves, strict=True))
    torch.testing.assert_close(found, expected, atol=1e-9, rtol=1e-9)
    found.sum().backward()
    expected.sum().backward()
    torch.testing.assert_close(leaves[0].grad, leaves[1].grad)
    for name, parameter in ours.named_parameters():
        torch.testing.assert_close(parameter.grad, theirs.get_parameter(name).grad)


@pytest.mark.parametrize("batch_first", [False, True])
def test_decoding_is_that_of_pytorch_crf(batch_first: bool) -> None:
    ours, theirs = _pair(batch_first)
    emissions, _, mask = _batch(batch_first)
    assert ours.decode(emissions, mask) == theirs.decode(emissions, mask)
    assert ours.decode(emissions) == theirs.decode(emissions)
    assert ours.decode(emissions, mask.byte()) == theirs.decode(emissions, mask.byte())


def test_the_defaults_are_those_of_pytorch_crf() -> None:
    ours, theirs = CRF(6), torchcrf.CRF(6)
    assert ours.batch_first is theirs.batch_first is False
    shapes = [{name: p.shape for name, p in crf.named_parameters()} for crf in (ours, theirs)]
    assert shapes[0] == shapes[1]
    assert ours.state_dict().keys() == theirs.state_dict().keys()
    theirs.load_state_dict(ours.state_dict())
    assert all(p.abs().max() <= 0.1 for p in ours.parameters())


def _score(crf: CRF, emissions: Tensor, tags: tuple[int, ...]) -> Tensor:
    if not tags:
        return emissions.new_zeros(())
    total = crf.start_transitions[tags[0]] + crf.end_transitions[tags[-1]]
    total = total + sum(emissions[i, tag] for i, tag in enumerate(tags))
    return total + sum(crf.transitions[a, b] for a, b in itertools.pairwise(tags))


HOLES = torch.tensor([[1, 0, 1, 1, 0], [0, 1, 0, 0, 1], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1], [0, 0, 0, 1, 0]]).bool()


def _holes() -> tuple[CRF, Tensor, Tensor]:
    torch.manual_seed(0)
    crf = CRF(3, batch_first=True).double()
    for parameter in crf.parameters():
        torch.nn.init.normal_(parameter)
    emissions = torch.randn(5, 5, 3, dtype=torch.float64)
    return crf, torch.where(HOLES[..., None], emissions, torch.nan), torch.randint(3, (5, 5))


def _all_of(crf: CRF, emissions: Tensor, b: int) -> tuple[list[tuple[int, ...]], Tensor]:
    kept = emissions[b][HOLES[b]]
    sequences = list(itertools.product(range(3), repeat=len(kept)))
    return sequences, torch.stack([_score(crf, kept, sequence) for sequence in sequences])


@pytest.mark.parametrize("by", ["mask", "labels", "both"])
def test_log_likelihoods_with_holes(by: str) -> None:
    crf, emissions, tags = _holes()
    gold = torch.where(HOLES, tags, -100) if by != "mask" else torch.where(HOLES, tags, 77)
    leaf = emissions.requires_grad_()
    found = crf(leaf, gold, None if by == "labels" else HOLES, reduction="none")
    expected = []
    for b in range(5):
        sequences, scores = _all_of(crf, leaf, b)
        expected.append(scores[sequences.index(tuple(tags[b][HOLES[b]].tolist()))] - scores.logsumexp(0))
    torch.testing.assert_close(found, torch.stack(expected))
    wanted = torch.autograd.grad(torch.stack(expected).sum(), [leaf, *crf.parameters()], retain_graph=True)
    got = torch.autograd.grad(found.sum(), [leaf, *crf.parameters()])
    for one, other in zip(got, wanted, strict=True):
        torch.testing.assert_close(one, other)
    assert not got[0][~HOLES].any()


def test_decoding_and_marginals_with_holes() -> None:
    crf, emissions, _ = _holes()
    found, best, top = crf.marginals(emissions, HOLES), crf.decode(emissions, HOLES), crf.decode(emissions, HOLES, top=4)
    assert not found[~HOLES].any()
    for b in range(5):
        sequences, scores = _all_of(crf, emissions, b)
        p = scores.softmax(0)
        ranked = [list(sequences[i]) for i in scores.argsort(descending=True).tolist()]
        assert best[b] == ranked[0]
        assert top[b] == ranked[:4]
        for place, position in enumerate(HOLES[b].nonzero().squeeze(1).tolist()):
            expected = torch.stack([p[[s[place] == tag for s in sequences]].sum() for tag in range(3)])
            torch.testing.assert_close(found[b, position], expected)
    sequence_first = copy.deepcopy(crf)
    sequence_first.batch_first = False
    torch.testing.assert_close(sequence_first.marginals(emissions.transpose(0, 1), HOLES.T), found.transpose(0, 1))


def test_confidence_of_spans_with_holes() -> None:
    crf, emissions, _ = _holes()
    spans = [[(0, 3, 1), (2, 4, [0, 2])], [(1, 5, 2)], [], [(1, 2, 0), (0, 5, [0, 1, 2, 0, 1])], [(2, 5, 1)]]
    places = [[[0, 1], [1, 2]], [[0, 1]], [], [[1], [0, 1, 2, 3, 4]], [[0]]]
    found = crf.confidence(emissions, spans, HOLES)
    for b, own in enumerate(spans):
        sequences, scores = _all_of(crf, emissions, b)
        for (_, _, tags), where, value in zip(own, places[b], found[b], strict=True):
            wanted = [tags] * len(where) if isinstance(tags, int) else tags
            there = [all(s[i] == tag for i, tag in zip(where, wanted, strict=True)) for s in sequences]
            torch.testing.assert_close(value, scores.softmax(0)[there].sum())


def _spans(tags: tuple[int, ...], labels: list[str]) -> set[tuple[int, int, str]]:
    """The spans of a valid BIO sequence."""
    found, start = set(), None
    for i, tag in enumerate([*(labels[t] for t in tags), "O"]):
        if start is not None and not tag.startswith("I-"):
            found.add((start, i, labels[tags[start]][2:]))
            start = None
        if tag.startswith("B-"):
            start = i
    return found


def test_confidence_of_labels_is_that_of_whole_spans() -> None:
    labels = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
    constraints = allowed_transitions("BIO", labels)
    torch.manual_seed(0)
    crf, emissions = CRF(5, True, constraints).double(), torch.randn(1, 4, 5, dtype=torch.float64)
    sequences = [s for s in itertools.product(range(5), repeat=4) if _valid(constraints, s)]
    p = torch.stack([_score(crf, emissions[0], s) for s in sequences]).softmax(0)
    spans = [(0, 2, "PER"), (1, 2, "LOC"), (3, 4, "PER"), (0, 4, "LOC")]
    (found,) = crf.confidence(emissions, [spans])
    for span, value in zip(spans, found, strict=True):
        torch.testing.assert_close(value, p[[span in _spans(s, labels) for s in sequences]].sum())
    assert _valid(constraints, tuple(crf.decode(emissions)[0]))


def _valid(constraints, tags: tuple[int, ...]) -> bool:
    between = all(constraints.transitions[a, b] for a, b in itertools.pairwise(tags))
    return bool(constraints.start[tags[0]] and constraints.end[tags[-1]] and between)


WRITE = {
    "BIO": lambda width: "B" + "I" * (width - 1),
    "BIOES": lambda width: "S" if width == 1 else "B" + "I" * (width - 2) + "E",
    "BIOUL": lambda width: "U" if width == 1 else "B" + "I" * (width - 2) + "L",
    "BMES": lambda width: "S" if width == 1 else "B" + "M" * (width - 2) + "E",
}


@pytest.mark.parametrize("scheme", list(WRITE))
@pytest.mark.parametrize("kinds", [[""], ["-X", "-Y"]], ids=["one kind", "two kinds"])
def test_constraints_allow_what_spans_write(scheme: str, kinds: list[str]) -> None:
    """All tag sequences of length 4 that the constraints allow are those that some spans write, and no others."""
    letters = sorted(set("".join(WRITE[scheme](width) for width in (1, 2, 3))))
    labels = ["O", *(letter + kind for letter in letters for kind in kinds)]
    constraints = allowed_transitions(scheme, dict(enumerate(labels)))

    def written(n: int) -> set[tuple[str, ...]]:
        if n == 0:
            return {()}
        found = {("O", *rest) for rest in written(n - 1)}
        for width in range(1, n + 1):
            for kind in kinds:
                span = tuple(letter + kind for letter in WRITE[scheme](width))
                found |= {span + rest for rest in written(n - width)}
        return found

    allowed = {s for s in itertools.product(range(len(labels)), repeat=4) if _valid(constraints, s)}
    assert {tuple(labels[i] for i in s) for s in allowed} == written(4)


def test_constraints_hold_in_every_operation() -> None:
    constraints = allowed_transitions("BIOES", ["O", "B", "I", "E", "S"])
    crf, emissions = CRF(5, batch_first=True, constraints=constraints), 20 * torch.randn(6, 8, 5)
    mask = torch.rand(6, 8) > 0.3
    for tags in crf.decode(emissions, mask):
        assert not tags or _valid(constraints, tuple(tags))
    gold = crf.decode(emissions, mask)
    padded = torch.full((6, 8), -100)
    for b, tags in enumerate(gold):
        padded[b][mask[b]] = torch.tensor(tags)
    loss = -crf(emissions, padded, mask)
    loss.backward()
    assert loss.isfinite()
    assert all(p.grad.isfinite().all() for p in crf.parameters())
    with pytest.raises(ValueError, match="the tags of sentence 0 have I after O, which the constraints forbid"):
        crf(torch.zeros(1, 2, 5), torch.tensor([[0, 2]]))
    assert crf.state_dict().keys() == torchcrf.CRF(5).state_dict().keys()


@pytest.mark.parametrize("autocast", [False, True])
def test_half_precision_is_computed_in_float32(autocast: bool) -> None:
    torch.manual_seed(0)
    crf = CRF(20, batch_first=True)
    emissions, tags = (5 * torch.randn(8, 100, 20)).bfloat16(), torch.randint(20, (8, 100))
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        found = crf(emissions, tags, reduction="none")
        assert crf.marginals(emissions).dtype == torch.float32
    assert found.dtype == torch.float32
    exact = copy.deepcopy(crf).double()(emissions.double(), tags, reduction="none")
    torch.testing.assert_close(found.double(), exact, atol=1e-4, rtol=1e-6)


def test_modules_are_copied_and_saved() -> None:
    crf, emissions = CRF(4, True, allowed_transitions("BMES", ["B", "M", "E", "S"])), torch.randn(2, 5, 4)
    for other in (copy.deepcopy(crf), pickle.loads(pickle.dumps(crf))):
        assert other.decode(emissions) == crf.decode(emissions)
        assert repr(other) == "CRF(num_tags=4, batch_first=True, constraints=BMES)"


def test_distributed_data_parallel(tmp_path) -> None:
    """One process is enough to see that all parameters take part, with buffers that are no part of the state."""
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path / 'store'}", rank=0, world_size=1)
    try:
        crf = CRF(5, True, allowed_transitions("BIO", ["O", "B-X", "I-X", "B-Y", "I-Y"]))
        emissions, tags = torch.randn(2, 4, 5), torch.tensor([[0, 1, 2, 0], [3, 4, 0, -100]])
        parallel = torch.nn.parallel.DistributedDataParallel(crf)
        loss = -parallel(emissions, tags)
        loss.backward()
        torch.testing.assert_close(loss, -crf(emissions, tags))
        assert all(parameter.grad is not None for parameter in crf.parameters())
    finally:
        torch.distributed.destroy_process_group()


@pytest.mark.parametrize("masked", [False, True])
def test_compiles(masked: bool) -> None:
    crf, emissions, tags = CRF(4, batch_first=True), torch.randn(3, 6, 4), torch.randint(4, (3, 6))
    mask = torch.tensor([[1, 1, 1, 1, 1, 1], [0, 1, 0, 1, 1, 0], [0, 0, 0, 0, 0, 0]]).bool() if masked else None
    compiled = torch.compile(crf, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(emissions, tags, mask), crf(emissions, tags, mask))


@pytest.mark.parametrize("tags", [1, 3, 40])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_decoding_is_the_argmax_of_the_structure(tags: int, dtype: torch.dtype) -> None:
    """With and without padding, in the order that ties have, and where a transition is forbidden."""
    torch.manual_seed(0)
    crf, emissions, lengths = (
        CRF(tags, batch_first=True),
        torch.randn(5, 6, tags).round().to(dtype),
        torch.tensor([6, 0, 1, 5, 6]),
    )
    with torch.no_grad():
        crf.transitions.round_()
        if tags > 1:
            crf.transitions[0, 1] = -torch.inf
    chain = FactoredChain(crf.transitions.detach(), crf.start_transitions.detach(), crf.end_transitions.detach())
    assert crf.decode(emissions) == chain.tags(chain.argmax(emissions)).tolist()
    chain.lengths = lengths
    emissions[torch.arange(6) >= lengths[:, None]] = torch.nan
    expected = [row[row >= 0].tolist() for row in chain.tags(chain.argmax(emissions))]
    assert crf.decode(emissions, torch.arange(6) < lengths[:, None]) == expected


def test_empty_batches_and_sentences() -> None:
    crf = CRF(3, batch_first=True)
    assert crf(torch.zeros(0, 4, 3), torch.zeros(0, 4, dtype=torch.long)) == 0
    assert crf.decode(torch.zeros(0, 4, 3)) == []
    assert crf.decode(torch.zeros(2, 0, 3)) == [[], []]
    assert crf(torch.zeros(2, 0, 3), torch.zeros(2, 0, dtype=torch.long), reduction="none").tolist() == [0, 0]
    assert crf.decode(torch.zeros(1, 2, 3), torch.zeros(1, 2).bool(), top=3) == [[[]]]


ONE = torch.zeros(1, 2, 3)


def test_lists_are_no_tensors() -> None:
    crf = CRF(3, batch_first=True)
    for name, given in {
        "emissions": (ONE.tolist(),),
        "tags": (ONE, [[0, 1]]),
        "mask": (ONE, torch.zeros(1, 2).long(), [[1, 1]]),
    }.items():
        with pytest.raises(TypeError, match=rf"{name} is a list; a CRF needs a torch.Tensor: pass torch.as_tensor\({name}\)"):
            crf(*given) if len(given) > 1 else crf.decode(*given)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: CRF(0), "num_tags is 0"),
        (lambda: CRF(3)(torch.zeros(2, 3), torch.zeros(2)), r"emissions has shape \[2, 3\]; this CRF needs \[n, B, 3\]"),
        (lambda: CRF(3, True)(torch.zeros(2, 4, 5), torch.zeros(2, 4)), r"this CRF needs \[B, n, 3\]"),
        (lambda: CRF(3, True)(torch.zeros(2, 4, 3), torch.zeros(4, 2).long()), r"tags has shape \[4, 2\]"),
        (lambda: CRF(3, True).decode(torch.zeros(2, 4, 3), torch.ones(2, 5).bool()), r"mask has shape \[2, 5\]"),
        (lambda: CRF(3, True)(ONE, torch.tensor([[0, 3]])), r"tags\[0, 1\] is 3; tags are from 0 to 2, or -100"),
        (lambda: CRF(3)(torch.zeros(2, 1, 3), torch.tensor([[0], [-1]])), r"tags\[1, 0\] is -1"),
        (lambda: CRF(3, True)(ONE, torch.zeros(1, 2).long(), reduction="all"), "reduction is 'all'; .* 'token_mean'"),
        (lambda: CRF(3, constraints=allowed_transitions("BIO", ["O", "B"])), "num_tags is 3, .* have 2 labels"),
        (lambda: allowed_transitions("IOB1", ["O"]), "scheme is 'IOB1'; it must be one of 'BIO'"),
        (lambda: allowed_transitions("BIO", ["O", "E-PER"]), "the label 'E-PER' is no tag of BIO"),
        (lambda: allowed_transitions("BIO", {0: "O", 2: "B"}), r"keys \[0, 2\]; they must be the indices"),
        (lambda: CRF(3, True).confidence(ONE, [[(0, 1, "PER")]]), "has a label; that needs a CRF with constraints"),
        (lambda: CRF(3, True).confidence(ONE, [[(1, 1, 0)]]), "span from 1 to 1 of sentence 0 is none of 2"),
        (lambda: CRF(3, True).confidence(ONE, []), "spans has 0 lists for 1 sentences"),
    ],
)  # fmt: skip
def test_mistakes_are_named(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
