"""The documentation: the site builds without warnings, names everything public, and its code runs."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import pullback as pb

ROOT = Path(__file__).parents[2]
if missing := [name for name in ("sphinx", "furo", "myst_parser") if importlib.util.find_spec(name) is None]:
    pytest.skip(f"{', '.join(missing)} not installed: pip install '.[docs]'", allow_module_level=True)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built once, with warnings as errors."""
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "-d", str(out / "doctrees")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(str(ROOT / part) for part in ("src", "study"))}
    done = subprocess.run(
        [*command, "docs", str(out / "html")], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-5000:]
    return out / "html"


def test_the_reference_has_every_public_name(site):
    from sphinx.util.inventory import InventoryFile

    inventory = InventoryFile.loads((site / "objects.inv").read_bytes(), uri="")
    documented = {name for names in inventory.data.values() for name in names}
    groups = [name for name in pb.__all__ if isinstance(getattr(pb, name), ModuleType)]
    assert not [name for name in pb.__all__ if f"pullback.{name}" not in documented and name not in groups]
    for group in [*groups, "nn", "viz"]:
        assert not [name for name in getattr(pb, group).__all__ if f"pullback.{group}.{name}" not in documented]


def test_the_explorer_is_part_of_it(site):
    assert "<html" in (site / "_static" / "explorer.html").read_text()


def test_notebooks_are_pages_with_what_they_print(site):
    page = (site / "notebooks" / "matching.html").read_text()
    assert "more than 85% of new pairs are matched: True" in page
    assert list((site / "_downloads").rglob("matching.ipynb"))


def test_nothing_is_loaded_from_elsewhere(site):
    """The pages work without a network: scripts, styles and images are the site's own."""
    for page in site.rglob("*.html"):
        text = page.read_text()
        for attribute in ('src="http', 'rel="stylesheet" href="http', 'src="//'):
            assert attribute not in text, f"{page.name} has {attribute}"
