"""What can be said of the kernels without running them: they compile, and what they need stays within bounds."""

from __future__ import annotations

import pytest
import torch

import pullback as pb
from launches import call_everything, record
from pullback.inference._triton import support as triton_support
from pullback.inference.front.family import backend
from pullback.inference.sparsemap.solution import NotConverged

pytestmark = pytest.mark.skipif(
    triton_support.triton is None or triton_support.interpreting(), reason="needs Triton, and not its interpreter"
)
POINTERS = {
    torch.float32: "*fp32",
    torch.float64: "*fp64",
    torch.int64: "*i64",
    torch.int32: "*i32",
    torch.int16: "*i16",
    torch.int8: "*i8",
}


def type_of(x):
    if isinstance(x, tuple):
        return type(x)(*map(type_of, x))
    return POINTERS[x.dtype] if isinstance(x, torch.Tensor) else "i32"


def compile_for_a_gpu(launch):
    """The kernel in Triton's language of tensors, as its compiler reads it for a GPU that need not be here."""
    from triton._C.libtriton import ir
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource, make_backend

    constants = {name: value for name, value in launch.options.items() if name not in ("num_warps", "num_stages")}
    types = {name: type_of(x) for name, x in launch.arguments.items()}
    signature = {name: types.get(name, "constexpr") for name in launch.kernel.arg_names}
    source = ASTSource(launch.kernel, signature, constants)
    target = GPUTarget("cuda", 80, 32)
    backend = make_backend(target)
    options = backend.parse_options({"num_warps": launch.options.get("num_warps", 4)})
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    functions = backend.get_codegen_implementation(options)
    return source.make_ir(target, options, functions, backend.get_module_map(), context)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
def test_every_kernel_is_what_the_compiler_accepts(monkeypatch, dtype):
    """The interpreter is Python, and lets pass what the compiler does not: types that change in a loop, for one."""
    launches = record(monkeypatch)
    for unproven, sizes in (("0", (8, 40, 70)), ("1", (8, 40, 55))):
        monkeypatch.setenv("PULLBACK_UNPROVEN_KERNELS", unproven)
        for n in sizes:
            call_everything(n, 2, dtype)
    different = {(x.name, tuple(x.options.items())): x for x in launches}
    assert len({name for name, _ in different}) == (12 if dtype == torch.float32 else 11)
    for launch in different.values():
        assert "tt.func" in str(compile_for_a_gpu(launch)), launch.name


def test_the_kernels_of_other_structures_are_what_the_compiler_accepts(monkeypatch):
    launches = record(monkeypatch)
    cases = (
        (pb.LinearChain(), (3, 2, 2)), (pb.LinearChain(), (3, 70, 70)), (pb.Segmentation(), (70, 70, 70)),
        (pb.BinaryTree(), (3, 3)), (pb.Subset(2), (3,)),
        (pb.Alignment(), (3, 5)), (pb.Alignment(), (70, 40)), (pb.Alignment(moves="forward"), (3, 5)),
    )  # fmt: skip
    with backend("cuda"):
        with pytest.warns(NotConverged):
            pb.LinearChain().sparsemap(torch.zeros(2, 3, 2, 2), max_iterations=1)
        for structure, parts in cases:
            structure.validate = False
            leaf = torch.zeros(2, *parts, requires_grad=True)
            mu, nats = structure.marginals(leaf), structure.entropy(leaf)
            torch.autograd.grad(mu.sum() + nats.sum() + structure.log_prob(leaf, structure.sample(leaf)).sum(), leaf)
            structure.log_partition(leaf.detach())
            structure.argmax(leaf)
        pb.Subset(2, validate=False).sparsemap(torch.zeros(2, 3))
    different = {(x.name, *x.options.items()): x for x in launches}
    names = {"engine.hypergraph.cuda_maximum.argmax", "engine.hypergraph.cuda_likelihood._likelihood"}
    names |= {f"engine.hypergraph.cuda_narrow.{name}" for name in ("through", "upward")}
    names |= {f"engine.hypergraph.cuda_kernels.{name}" for name in ("upward", "downward", "gather", "read_goal")}
    names |= {f"chain.cuda_{name}" for name in ("sums.sums", "paths.path", "slopes.slopes", "wide.sums", "wide.path")}
    names |= {"alignment.cuda_sweeps.sweep"}
    names |= {"sparsemap.cuda_step.step", "sparsemap.cuda_step.finish"}
    names |= {"subset.cuda_kernels.run", "subset.cuda_picks.pick"}
    assert {x.name for x in launches} == names
    for launch in different.values():
        assert "tt.func" in str(compile_for_a_gpu(launch)), launch.name
        assert launch.numbers <= set(launch.kernel.do_not_specialize), launch.name


def test_every_kernel_can_be_started_again_by_what_was_compiled_for_such_arguments(monkeypatch):
    """Triton compiles a kernel for the values of its numbers unless told not to, and takes its constants last."""
    launches = record(monkeypatch)
    call_everything(8, 2, torch.float32)
    for launch in launches:
        assert launch.numbers <= set(launch.kernel.do_not_specialize), launch.name
        constants = [name for name in launch.kernel.arg_names if name in launch.options]
        assert launch.kernel.arg_names == [*launch.arguments, *constants], launch.name


@pytest.mark.parametrize(("n", "batch"), [(1, 4096), (31, 4096), (50, 1024), (200, 64)])
def test_scratch_is_two_gibibytes_at_most(monkeypatch, n, batch):
    """All that a launch reads and writes, SparseMAP's active sets included; nobody touches it here."""
    launches = record(monkeypatch)
    call_everything(n, batch, torch.float32)
    for launch in launches:
        assert launch.programs <= batch
        assert sum(x.numel() * x.element_size() for x in launch.tensors) <= 2 * 2**30, launch.name
