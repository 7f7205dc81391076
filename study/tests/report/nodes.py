"""The page's modules in Node, without a page."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import pullback_study.report

NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="Node is not installed: apt-get install nodejs")
ASSETS = Path(pullback_study.report.__file__).parent / "assets"


def in_node(module: str, expression: str, given: Any = None) -> Any:
    """The value of an expression in the module's exports and `given`."""
    program = f"""
        import * as exports from {json.dumps((ASSETS / f"{module}.mjs").as_uri())};
        import {{ readFileSync }} from "node:fs";
        const given = JSON.parse(readFileSync(0, "utf8"));
        const value = (({{ {", ".join(_exports(module))} }}) => ({expression}))(exports);
        process.stdout.write(JSON.stringify(value));
    """
    command = [str(NODE), "--input-type=module", "-e", program]
    done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _exports(module: str) -> list[str]:
    words = [line.split()[:3] for line in (ASSETS / f"{module}.mjs").read_text().splitlines() if line.startswith("export ")]
    return [name.split("(")[0] for _, _, name in words]
