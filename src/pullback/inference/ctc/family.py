"""The family of CTC's paths: a symbol for each of T frames, such that runs collapse and blanks vanish to a target."""

from __future__ import annotations

from pullback.inference.front.family import FUSED, STANDARD, Family, Nouns
from pullback.inference.front.layout import Layout, Size
from pullback.inference.sparsemap.operation import SPARSEMAP

_WHY = (
    "a target needs a frame for each of its symbols and one for a blank between equal neighbours; its symbols are from 0 to "
    "V - 1, and none is the blank; or too many {part}s are forbidden (-inf)"
)
CTC = Family(
    "ctc",
    Layout(
        "CTC", "T, V",
        sizes=(Size("lengths", bounds="T"), Size("target_lengths", bounds=None), Size("targets", bounds=None, dims=1)),
        centre=(-1,),
    ),
    folder="ctc",
    nouns=Nouns(example="sequence", structure="path", part="symbol", unit="frames", infeasible=_WHY),
    options={"blank": int},
    operations=STANDARD + FUSED + SPARSEMAP,
    most_parts=lambda shape, *options: shape[0],
)  # fmt: skip
