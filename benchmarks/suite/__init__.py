"""The benchmarks: one a file, each a generator of rows with its explanation as docstring."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from benchmarks.comparison import Row, Run
from benchmarks.suite.accuracy import accuracy
from benchmarks.suite.argmax import argmax
from benchmarks.suite.backward_passes import backward_passes
from benchmarks.suite.engine import engine
from benchmarks.suite.factored import factored
from benchmarks.suite.floor import floor
from benchmarks.suite.floor_structures import floor_structures
from benchmarks.suite.graphs import graphs
from benchmarks.suite.growth_batch import growth_batch
from benchmarks.suite.growth_n import growth_n
from benchmarks.suite.growth_structures import growth_structures, ragged_structures
from benchmarks.suite.marginals import marginals
from benchmarks.suite.marginals_backward import marginals_backward
from benchmarks.suite.nonprojective_argmax import nonprojective_argmax
from benchmarks.suite.nonprojective_marginals import nonprojective_marginals
from benchmarks.suite.offloaded import offloaded
from benchmarks.suite.own_structure import own_structure
from benchmarks.suite.paths import ctc, shortest_path, speech
from benchmarks.suite.ragged import ragged
from benchmarks.suite.scale import scale
from benchmarks.suite.shapes import shapes
from benchmarks.suite.sparsemap import sparsemap
from benchmarks.suite.sparsemap_scale import sparsemap_scale
from benchmarks.suite.sparsemax import sparsemax
from benchmarks.suite.spigot import spigot
from benchmarks.suite.structures import alignment, binary_tree, chain, matching, segmentation, subset
from benchmarks.suite.warm_starts import warm_starts

Benchmark = Callable[[Run], Iterator[Row]]
SUITE: dict[str, Benchmark] = {
    benchmark.__name__: benchmark
    for benchmark in (
        argmax,
        marginals,
        marginals_backward,
        sparsemap,
        sparsemap_scale,
        spigot,
        own_structure,
        nonprojective_argmax,
        nonprojective_marginals,
        accuracy,
        sparsemax,
        chain,
        factored,
        binary_tree,
        segmentation,
        subset,
        alignment,
        matching,
        shortest_path,
        ctc,
        speech,
        growth_structures,
        ragged_structures,
        growth_n,
        growth_batch,
        graphs,
        backward_passes,
        offloaded,
        warm_starts,
        ragged,
        shapes,
        scale,
        engine,
        floor,
        floor_structures,
    )
}
