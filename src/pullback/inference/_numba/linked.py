"""Compiling functions that only other compiled functions call: to LLVM's language, no further.

Numba optimizes every function and makes machine code of it, and then again as a part of each caller, and of theirs. A function
that is never called by itself needs neither: its kernel, of which it becomes a part, is optimized as a whole.
"""

from __future__ import annotations

import logging
from typing import Any

import numba
from numba.core import codegen, compiler, compiler_machinery, typed_passes


def options() -> dict[str, Any]:
    """For `numba.njit`; none with a Numba whose private parts have changed, where compiling takes longer."""
    try:
        return {"pipeline_class": _pipeline()}
    except Exception as error:
        logging.getLogger("pullback").warning(
            "with this version of Numba (%s) first calls take longer: %r", numba.__version__, error
        )
        return {}


def _pipeline() -> type:
    """Numba's own, with another kind of library."""

    class Nowhere:
        """Where code that is not run has its environment."""

        def set_env(self, name: str, env: Any) -> None:
            pass

    class Library(codegen.JITCodeLibrary):
        """Code to link with, not to run."""

        codegen = Nowhere()

        def _optimize_final_module(self) -> None:
            pass

        def _finalize_final_module(self) -> None:
            self._finalize_dynamic_globals()
            self._finalized = True

    replaced = "codegen", "_optimize_final_module", "_finalize_final_module", "_finalize_dynamic_globals"
    if not all(hasattr(codegen.JITCodeLibrary, name) for name in replaced):
        raise AttributeError("Numba's libraries have other parts")

    class MakeLibrary(compiler_machinery.LoweringPass):
        _name = "pullback_make_library"

        def __init__(self) -> None:
            super().__init__()

        def run_pass(self, state: Any) -> bool:
            state.library = Library(state.targetctx.codegen(), state.func_id.func_qualname)
            return True

    make = compiler_machinery.register_pass(mutates_CFG=False, analysis_only=True)(MakeLibrary)

    class Linked(compiler.CompilerBase):
        def define_pipelines(self) -> list[Any]:
            passes = compiler.DefaultPassBuilder.define_nopython_pipeline(self.state)
            passes.add_pass_after(make, typed_passes.AnnotateTypes)
            passes.finalize()
            return [passes]

    return Linked
