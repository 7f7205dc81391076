"""`python -m pullback.inference.engine.rules`: write the compiled modules of all recursions."""

from __future__ import annotations

from pullback.inference.engine.rules.module import FOLDERS, module, path_of

for folder in FOLDERS:
    path_of(folder).write_text(module(folder))
    print(path_of(folder))
