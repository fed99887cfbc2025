"""The build of the page, as hatch_build.py of this checkout does it."""

import importlib.util
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parent.parent.parent


def build_hook(root: Path = ROOT) -> ModuleType:
    """The hatch_build.py of a checkout."""
    spec = importlib.util.spec_from_file_location("hatch_build", root / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def is_built() -> bool:
    """Whether the page is built, from the sources that are here."""
    return build_hook().is_current()
