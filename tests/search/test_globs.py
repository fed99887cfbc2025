"""Glob patterns: what they fit, and that none takes long."""

import pytest

from crow.errors import WorkspaceError
from crow.search.globs import Glob, expand_braces


@pytest.mark.parametrize(
    ("pattern", "fits", "does_not_fit"),
    [
        ("*.py", "a.py src/a.py .hidden.py a/b/c/d.py", "a.pyc py a.py/b"),
        ("README.md", "README.md docs/README.md", "readme.md README.md.bak"),
        ("**/*.py", "a.py src/a.py a/b/c.py", "a.txt src/a.pyi"),
        ("src/*.py", "src/a.py", "a.py src/b/a.py x/src/a.py"),
        ("/a.py", "a.py", "src/a.py"),
        ("./a.py", "a.py src/a.py", "b.py"),
        ("src/**", "src/a src/b/c", "src a other/src/a"),
        ("src/", "src/a src/b/c", "src other/src/a"),
        ("src/**/test_*.py", "src/test_a.py src/a/b/test_b.py", "test_a.py src/a.py"),
        ("**/a/**/b", "a/b x/a/b a/x/y/b x/a/y/a/b", "b a a/x/b/c"),
        ("a/**/b/**/c", "a/b/c a/x/b/y/z/c a/b/b/c", "a/c a/b b/c"),
        ("**", "a a/b", ""),
        ("*.{ts,tsx}", "a.ts b/c.tsx", "a.t a.ts,tsx"),
        ("{src,lib}/**/*.{c,h}", "src/a.c lib/x/y.h", "src/a.py other/a.c"),
        ("a{b,c{d,e}}", "ab acd ace", "ac a"),
        ("a{b", "a{b", "ab"),
        ("a{b}", "a{b}", "ab"),
        ("[ab].txt", "a.txt b.txt", "c.txt"),
        ("[!ab].txt", "c.txt", "a.txt"),
        ("[^ab].txt", "c.txt", "a.txt"),
        ("[[:alpha:]].txt", "a.txt Z.txt", "1.txt :.txt a].txt"),
        ("[![:alpha:]x-z_].t", "1.t", "a.t _.t"),
        ("[[:punct:]a]", "! ] [ ~ a", "b 1"),
        ("[[:graph:]]", "! a ~", "ab"),
        ("[:alpha:]", ": a l", "b [ ]"),
        ("?.txt", "a.txt ü.txt", "ab.txt .txt"),
        (r"a\*b", "a*b", "axb"),
        ("!*.py", "a.txt src/b", "a.py src/a.py"),
    ],
)
def test_what_fits(pattern, fits, does_not_fit):
    glob = Glob(pattern)
    assert [path for path in fits.split() if not glob.fits(path)] == []
    assert [path for path in does_not_fit.split() if glob.fits(path)] == []


@pytest.mark.parametrize("pattern", ["*a" * 100 + "b", "**/a/" * 100 + "b", "**/*a*a*a*a*a*b/" * 20 + "b"])
def test_no_pattern_takes_long(pattern):
    """One that goes back would not come to an end."""
    glob = Glob(pattern)
    assert not glob.fits("/".join(["a" * 200] * 20))
    assert not glob.fits("/".join(["a"] * 2000))


def test_alternatives_are_bounded():
    assert sorted(expand_braces("{a,b}{c,d}")) == ["ac", "ad", "bc", "bd"]
    with pytest.raises(WorkspaceError, match="more than 200 alternatives"):
        expand_braces("{a,b}" * 30)
