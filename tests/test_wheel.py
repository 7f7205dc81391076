"""What is released: `python -m build` makes an sdist and, from it, a wheel that installs and imports by itself."""

import email
import importlib.util
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
if missing := [name for name in ("build", "hatchling") if importlib.util.find_spec(name) is None]:
    pytest.skip(f"{', '.join(missing)} not installed: pip install '.[dev]'", allow_module_level=True)


def run(*command, **options):
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=300, **options)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """The wheels of the library and of the study, each made from its sdist."""
    out = tmp_path_factory.mktemp("dist")
    for project in (ROOT, ROOT / "study"):
        run("-m", "build", "--no-isolation", "--outdir", str(out), str(project))
    return {path.name.partition("-")[0]: path for path in out.glob("*.whl")}


@pytest.fixture(scope="module")
def installed(wheels, tmp_path_factory):
    """A folder with the two wheels and nothing else."""
    target = tmp_path_factory.mktemp("site")
    pip = ("-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-compile", "--target", str(target))
    run(*pip, *map(str, wheels.values()))
    return target


def in_a_clean_environment(installed, *command):
    """Python with the installed wheels and the dependencies of the tests; `-S` leaves out this checkout."""
    libraries = sysconfig.get_path("purelib")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(installed), libraries])}
    return run("-S", *command, env=environment, cwd=installed)


def files(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return [name for name in archive.namelist() if ".dist-info/" not in name]


def test_the_wheel_holds_the_library_alone(wheels):
    names = files(wheels["pullback"])
    assert {name.partition("/")[0] for name in names} == {"pullback"}
    assert not [name for name in names if "study" in name or name.endswith((".ipynb", ".csv"))]
    assert not [name for name in names if "tests/" in name or "/test_" in name]
    source = ROOT / "src"
    assert {str(path.relative_to(source)) for path in (source / "pullback").rglob("*.py")} <= set(names)
    assert "pullback/py.typed" in names


def test_the_study_is_a_wheel_of_its_own(wheels):
    names = files(wheels["pullback_study"])
    assert {name.partition("/")[0] for name in names} == {"pullback_study"}
    assert "pullback_study/report/assets/explorer.html" in names


@pytest.mark.parametrize("name", ["pullback", "pullback_study"])
def test_a_wheel_has_the_licence(wheels, name):
    with zipfile.ZipFile(wheels[name]) as archive:
        (licence,) = [each for each in archive.namelist() if each.endswith(".dist-info/licenses/LICENSE")]
        assert archive.read(licence) == (ROOT / "LICENSE").read_bytes()


@pytest.mark.parametrize("name", ["pullback", "pullback_study"])
def test_the_metadata_is_complete(wheels, name):
    """Of the wheel and of the sdist; the version is that of the code, and no dependency has an upper bound."""
    with zipfile.ZipFile(wheels[name]) as archive:
        (path,) = [each for each in archive.namelist() if each.endswith(".dist-info/METADATA")]
        found = email.message_from_bytes(archive.read(path))
    with tarfile.open(wheels[name].parent / f"{name}-{found['Version']}.tar.gz") as archive:
        of_sdist = archive.extractfile(f"{name}-{found['Version']}/PKG-INFO").read()
    assert email.message_from_bytes(of_sdist).items() == found.items()
    package = ROOT / ("src/pullback" if name == "pullback" else "study/pullback_study")
    assert f'__version__ = "{found["Version"]}"' in (package / "__init__.py").read_text()
    for field in ("Summary", "Author", "Keywords", "License-Expression", "Requires-Python", "Description-Content-Type"):
        assert found[field], field
    assert "Typing :: Typed" in found.get_all("Classifier")
    needed = [each for each in found.get_all("Requires-Dist") if "extra ==" not in each]
    assert len(needed) >= 3
    assert not [each for each in needed if "<" in each or "==" in each]


@pytest.mark.parametrize("name", ["pullback", "pullback_study"])
def test_the_description_has_no_links_that_only_the_repository_has(wheels, name):
    with zipfile.ZipFile(wheels[name]) as archive:
        (path,) = [each for each in archive.namelist() if each.endswith(".dist-info/METADATA")]
        text = email.message_from_bytes(archive.read(path)).get_payload(decode=True).decode()
    assert text.startswith("# ")
    assert not [target for target in re.findall(r"\]\(([^)]+)\)", text) if not target.startswith("https://")]


def test_links_of_the_description_lead_to_the_repository_once_it_has_an_address():
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = "[GPU](docs/gpu.md), [paper](https://example.org/paper)"
    assert module.description(text, None, "1.0.0") == "GPU, [paper](https://example.org/paper)"
    found = module.description(text, "https://example.org/pullback/", "1.0.0")
    assert found == "[GPU](https://example.org/pullback/blob/v1.0.0/docs/gpu.md), [paper](https://example.org/paper)"


def test_the_citation_has_the_version():
    version = re.search(r'__version__ = "(.*)"', (ROOT / "src/pullback/__init__.py").read_text())[1]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"version = {{{version}}}" in (ROOT / "docs/cite.md").read_text()
    assert f"\n## {version}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_library_imports_and_computes(installed):
    program = (
        "import torch, pullback as pb\nprint(pb.__file__, pb.Subset(1).argmax(torch.tensor([0.0, 1.0])).tolist(), sep='\\n')"
    )
    where, found = in_a_clean_environment(installed, "-c", program).splitlines()
    assert Path(where).is_relative_to(installed)
    assert found == "[0.0, 1.0]"


def test_the_command_runs(installed):
    assert "pullback-study 1.0" in in_a_clean_environment(installed, "-m", "pullback_study", "--version")
