"""Ways in: tensors from heads, tags, segments and so on, as inverses of the readers, and boolean masks for lengths."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch

import pullback as pb
from cases import ENTRIES
from oracles import mask_of


def _shape_of(structure, parts):
    """What `from_path` needs to know: nothing of structures that know their graph."""
    return () if isinstance(structure, pb.ShortestPath) else parts


READERS = {
    "heads": lambda structure, read, parts: structure.from_heads(read),
    "tags": lambda structure, read, parts: structure.from_tags(read, parts[-1]),
    "indices": lambda structure, read, parts: structure.from_indices(read, *parts),
    "segments": lambda structure, read, parts: structure.from_segments(read, *parts),
    "brackets": lambda structure, read, parts: structure.from_brackets(read, parts[-1]),
    "path": lambda structure, read, parts: structure.from_path(read, *_shape_of(structure, parts)),
    "columns": lambda structure, read, parts: structure.from_columns(read, parts[-1]),
    "symbols": lambda structure, read, parts: structure.from_symbols(read, parts[-1]),
}


def _reader(structure):
    return next(name for name in READERS if hasattr(structure, name))


@pytest.fixture(params=[entry for entry in ENTRIES if entry.converts], ids=lambda entry: entry.name)
def entry(request):
    return request.param


def test_reading_and_writing_are_inverse(entry):
    """For every structure of every example, with the padding that the readers write."""
    for example in range(len(entry.sizes)):
        structure = entry.make(*[torch.tensor(size) for size in entry.sizes[example]])
        z = entry.all_of(example)
        name = _reader(structure)
        found = READERS[name](structure, getattr(structure, name)(z), entry.parts)
        assert torch.equal(found.double(), torch.where(mask_of(entry)[example], z, 0.0))
        assert structure.contains(found).all()


def test_padding_of_what_is_written_may_be_anything(entry):
    """-1 and -100 with lengths, and numbers out of range where a tensor has a position for each."""
    structure = entry.structure()
    z = torch.stack([entry.all_of(example)[0] for example in range(len(entry.sizes))])
    name = _reader(structure)
    read = getattr(structure, name)(z)
    if not isinstance(read, torch.Tensor):
        pytest.skip("lists have no padding")
    for filler in (-100, *([] if name == "indices" else [99])):
        found = READERS[name](structure, torch.where(read == -1, filler, read), entry.parts)
        assert torch.equal(found.double(), z)


def test_written_structures_compile(entry):
    structure = entry.structure()
    z = torch.stack([entry.all_of(example)[0] for example in range(len(entry.sizes))])
    name = _reader(structure)
    read = getattr(structure, name)(z)
    torch._dynamo.reset()  # which counts compilations of this test for all of its values
    write = torch.compile(lambda r: READERS[name](structure, r, entry.parts), fullgraph=True, backend="aot_eager")
    assert torch.equal(write(read).double(), z)


def _all(*values):
    return torch.tensor(values)


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda: pb.DependencyTree().from_heads(_all(0, 3)), r"heads\[1\] is 3; heads are from 0 \(the root\)"),
        (lambda: pb.DependencyTree().from_heads(_all([0, 1], [0, 2])), r"heads\[1, 1\] is 2: a word cannot be its own head"),
        (lambda: pb.DependencyTree([2]).from_heads(_all([0, -1, -1])), r"heads\[0, 1\] is -1"),
        (lambda: pb.DependencyTree([2]).from_heads(_all([0, 3, -1])), r"heads\[0, 1\] is 3"),
        (lambda: pb.DependencyTree().from_heads(_all(0, -1, 1)), "in between: position 2 counts .*; where only some heads"),
        (lambda: pb.DependencyTree([4]).from_heads(_all([0, 1])), r"lengths\[0\] is 4; 2 positions need lengths from 0 to 2"),
        (lambda: pb.LinearChain().from_tags(_all([1, -100, 1]), 2), r"tags has padding .*of example \[0\].*pullback.nn.CRF"),
        (lambda: pb.LinearChain([3]).from_tags(_all([1, -100, 1]), 2), r"tags\[0, 1\] is -100; with C = 2"),
        (lambda: pb.Subset(2).from_indices(_all([0, 3]), 3), r"indices\[0, 1\] is 3; items are from 0 to 2"),
        (lambda: pb.Subset(2).from_indices(_all([0, 1], [1, 1]), 3), r"indices\[1\] has an item twice"),
        (lambda: pb.Segmentation().from_segments([(0, 3, 0)], 3, 2, 1), "width of segments.* is 3; it must be from 1 to W = 2"),
        (lambda: pb.Segmentation().from_segments([(1, 1, 0)], 3, 2, 1), "width of segments.* is 0"),
        (lambda: pb.Segmentation().from_segments([(0, 1, 5)], 3, 2, 2), "with C = 2 labels are from 0 to 1"),
        (lambda: pb.Segmentation([2]).from_segments([[(0, 3, 0)]], 3, 3, 1), "end of segments.* is 3"),
        (lambda: pb.Segmentation().from_segments([(0, 1)], 3, 2, 1), r"segments has the entry \(0, 1\); .* tuples of 3"),
        (lambda: pb.BinaryTree().from_brackets([(0, 5)], 3), "last word of brackets.* is 5"),
        (lambda: pb.BinaryTree().from_brackets([(2, 1)], 3), "first word stands before the last"),
        (lambda: pb.Alignment().from_path([(0, 0), (3, 1)], 3, 2), "row of path.* is 3"),
        (lambda: pb.Alignment([3], [1]).from_path([[(0, 0), (2, 1)]], 3, 2), "column of path.* is 1"),
        (lambda: pb.Matching().from_columns(_all([0, 2]), 2), r"columns\[0, 1\] is 2"),
        (lambda: pb.CTC([1]).from_symbols(_all([0, 3]), 3), r"symbols\[0, 1\] is 3; with V = 3"),
    ],
)
def test_what_cannot_be_is_named(write, message):
    with pytest.raises(ValueError, match=message):
        write()


def test_what_is_no_integer_is_named():
    for write in (pb.DependencyTree().from_heads, lambda x: pb.Subset(1).from_indices(x, 3)):
        with pytest.raises(TypeError, match="they must be integers"):
            write(torch.tensor([0.5]))
    with pytest.raises(TypeError, match=r"segments is a int; it must be a list of tuples"):
        pb.Segmentation().from_segments(3, 1, 1, 1)
    with pytest.raises(ValueError, match=r"brackets has shape \[4\]; a BinaryTree needs \[\.\.\., S, 2\]"):
        pb.BinaryTree().from_brackets(torch.zeros(4, dtype=torch.long), 3)


def test_tensors_of_tuples_have_padding():
    segments = torch.tensor([[[0, 2, 1], [2, 3, 0]], [[0, 1, 1], [-1, -1, -1]]])
    z = pb.Segmentation([3, 1]).from_segments(segments, 3, 2, 2)
    assert pb.Segmentation([3, 1]).segments(z) == [[(0, 2, 1), (2, 3, 0)], [(0, 1, 1)]]
    assert torch.equal(z, pb.Segmentation([3, 1]).from_segments([[[0, 2, 1], [2, 3, 0]], [(0, 1, 1)]], 3, 2, 2))


def test_brackets_need_no_single_words():
    z = pb.BinaryTree([3, 1]).from_brackets([[(0, 2), (1, 2)], []], 3)
    assert pb.BinaryTree([3, 1]).contains(z).all()


def test_members_are_told_from_treebanks():
    """What a reader of CoNLL-U does with non-projective sentences."""
    tree = pb.DependencyTree()
    z = tree.from_heads(torch.tensor([[3, 4, 0, 3], [0, 1, 2, 3], [2, 1, 4, 3]]))
    assert tree.contains(z).tolist() == [False, True, False]
    assert pb.DependencyTree(projective=False).contains(z).tolist() == [True, True, False]


MASKED = [entry for entry in ENTRIES if entry.sizes[0] and entry.name not in ("subset", "at most", "knapsack")]


@pytest.mark.parametrize("entry", MASKED, ids=lambda entry: entry.name)
def test_prefix_masks_are_lengths(entry):
    scores = torch.where(mask_of(entry), entry.scores(), torch.nan)
    columns = torch.tensor(entry.sizes).unbind(1)
    sizes = [entry.parts[0], entry.parts[1]] if len(columns) == 2 else [entry.parts[0]]
    masks = [torch.arange(n) < size[:, None] for n, size in zip(sizes, columns, strict=True)]
    assert torch.equal(entry.make(*masks).argmax(scores), entry.structure().argmax(scores))
    for others in ([mask.tolist() for mask in masks], [mask.numpy() for mask in masks]):
        assert torch.equal(entry.make(*others).argmax(scores), entry.structure().argmax(scores))
    holes = masks[0].clone()
    holes[0, 1] = False
    with pytest.raises(ValueError, match=r"mask with a hole: position 2 of example \[0\] counts .*pullback.nn.CRF"):
        entry.make(holes, *masks[1:])


@pytest.mark.parametrize("more", [-1, 1])
@pytest.mark.parametrize("entry", MASKED, ids=lambda entry: entry.name)
def test_masks_of_another_width_are_errors(entry, more):
    """Where the lengths themselves would be possible, too."""
    columns = torch.tensor(entry.sizes).unbind(1)
    scores, z = torch.where(mask_of(entry), entry.scores(), torch.nan), entry.structure().argmax(entry.scores())
    reader = _reader(entry.structure()) if entry.converts else None
    names = [size.name for size in entry.structure()._layout.sizes if size.bounds is not None]
    for which, name in enumerate(names):
        n = entry.parts[which]
        masks = [torch.arange(n + more) < size[:, None] if i == which else size for i, size in enumerate(columns)]
        structure = entry.make(*masks)
        calls = [lambda s=structure: s.argmax(scores), lambda s=structure: s.contains(z)]
        if reader is not None:
            calls.append(lambda s=structure: getattr(s, reader)(z))
            read = getattr(entry.structure(), reader)(z)
            calls.append(lambda s=structure, read=read: READERS[reader](s, read, entry.parts))
        for call in calls:
            with pytest.raises(ValueError, match=rf"^{name} is a mask \[\.\.\., {n + more}\], and there are {n} positions"):
                call()


def test_masks_of_another_width_than_what_a_structure_holds():
    long = torch.ones(1, 4, dtype=torch.bool)
    with pytest.raises(ValueError, match=r"target_lengths is a mask \[\.\.\., 4\], and there are 3 positions"):
        pb.CTC([[1, 2, 1]], long)
    with pytest.raises(ValueError, match=r"lengths is a mask \[\.\.\., 4\], and there are 3 positions"):
        pb.FactoredChain.hmm(torch.ones(2) / 2, torch.ones(2, 2) / 2, torch.eye(2), torch.zeros(1, 3).long(), long)
    for structure in (pb.Subset(1, long), pb.Knapsack([1, 1, 1, 1], 2, long)):
        for call in (
            lambda s=structure: s.argmax(torch.zeros(1, 3)),
            lambda s=structure: s.from_indices(torch.tensor([[1]]), 3),
        ):
            with pytest.raises(ValueError, match=r"lengths is a mask \[\.\.\., 4\], and there are 3 positions"):
                call()


def test_masks_under_transforms_and_in_copies():
    mask, scores = torch.tensor([[True, True, False], [True, False, False]]), torch.randn(2, 3, 2, 2)
    expected = pb.LinearChain([2, 1]).marginals(scores)
    torch._dynamo.reset()
    compiled = torch.compile(lambda m, s: pb.LinearChain(m).marginals(s), fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(mask, scores), expected)
    torch.testing.assert_close(torch.vmap(lambda m, s: pb.LinearChain(m).marginals(s))(mask, scores), expected)
    for chain in (copy.deepcopy(pb.LinearChain(mask)), pickle.loads(pickle.dumps(pb.LinearChain(mask)))):
        assert chain == pb.LinearChain([2, 1])
        with pytest.raises(ValueError, match=r"lengths is a mask \[\.\.\., 3\], and there are 2 positions"):
            chain.argmax(scores[:, :2])


def test_prefix_masks_of_subsets():
    mask = torch.tensor([[True, True, False], [True, True, True]])
    for given in (mask, mask.tolist(), mask.numpy()):
        assert torch.equal(pb.Subset(2, given).lengths, torch.tensor([2, 3]))
    with pytest.raises(ValueError, match="lengths is a mask with a hole"):
        pb.Subset(2, ~mask)


def test_holes_name_what_takes_them():
    with pytest.raises(ValueError, match="heads has padding") as heads:
        pb.DependencyTree().from_heads(torch.tensor([[2, -1, 0]]))
    assert "log_prob_within" in str(heads.value)
    assert "CRF" not in str(heads.value)
    with pytest.raises(ValueError, match=r"pullback\.nn\.CRF skips"):
        pb.LinearChain().from_tags(torch.tensor([[2, -100, 0]]), 3)


def test_masks_of_integers():
    """As tokenizers make them; integers are lengths."""
    chain, mask = pb.LinearChain(torch.tensor([[1, 1, 0], [1, 0, 0]])), "pass mask.bool"
    for call in (lambda: chain.argmax(torch.zeros(2, 3, 2, 2)), lambda: chain.from_tags(torch.zeros(2, 3).long(), 2)):
        with pytest.raises(ValueError, match=mask):
            call()
