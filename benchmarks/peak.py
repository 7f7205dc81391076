"""The peak of a core: fused multiply-adds on float32 vectors that never leave the registers."""

from __future__ import annotations

import time
from typing import Any

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

_LANES = 16
_CHAINS = 12  # independent, to hide the latency of each: two units of four cycles need eight


@intrinsic
def _chains(typing_context: Any, count: Any) -> Any:
    """Run `count` steps of a -> a * b + c in each chain and return the sum of their first lanes."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = ir.VectorType(ir.FloatType(), _LANES)
        fma = cgutils.get_or_insert_function(builder.module, ir.FunctionType(vector, [vector] * 3), f"llvm.fma.v{_LANES}f32")
        factor, term = (ir.Constant(vector, [value] * _LANES) for value in (0.999, 0.001))
        before = builder.basic_block
        loop, after = builder.append_basic_block("steps"), builder.append_basic_block("done")
        builder.branch(loop)
        builder.position_at_end(loop)
        step = builder.phi(args[0].type)
        step.add_incoming(ir.Constant(args[0].type, 0), before)
        chains = [builder.phi(vector) for _ in range(_CHAINS)]
        for start, chain in enumerate(chains):
            chain.add_incoming(ir.Constant(vector, [float(start)] * _LANES), before)
            chain.add_incoming(builder.call(fma, [chain, factor, term]), loop)
        following = builder.add(step, ir.Constant(step.type, 1))
        step.add_incoming(following, loop)
        builder.cbranch(builder.icmp_signed("<", following, args[0]), loop, after)
        builder.position_at_end(after)
        total = chains[0]
        for chain in chains[1:]:
            total = builder.fadd(total, chain)
        return builder.extract_element(total, ir.Constant(ir.IntType(32), 0))

    return types.float32(types.int64), build


@numba.njit
def _run(count: int) -> float:
    return _chains(count)  # type: ignore[call-arg]


def fused_multiply_adds_a_second() -> float:
    """The best of several runs, in the processor's time, which other work on the machine does not count into."""
    count = 5_000_000
    _run(1)
    seconds = []
    for _ in range(7):
        start = time.process_time()
        _run(count)
        seconds.append(time.process_time() - start)
    return count * _LANES * _CHAINS / min(seconds)
