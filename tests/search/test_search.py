"""Finding and searching, over both back ends: the same tree gives the same answer in the same order.

The tests with ripgrep need an `rg`, in the PATH or named by CROW_TEST_RG, and are skipped where there is none.
"""

import asyncio
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from crow.disk import Disk
from crow.errors import WorkspaceError
from crow.search.child import output_of
from crow.search.listing import Listing, find_ripgrep, list_files, walk
from crow.search.search import Findings, FoundPaths, LeftOut, Limits, Query, Searcher
from tests.support.patience import eventually

RIPGREP = os.environ.get("CROW_TEST_RG") or shutil.which("rg")
needs_ripgrep = pytest.mark.skipif(RIPGREP is None, reason="ripgrep is not installed; CROW_TEST_RG may name one")
BOTH = [pytest.param(RIPGREP, id="ripgrep", marks=needs_ripgrep), pytest.param(None, id="built-in")]

GIT_ALONE = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "HOME": "/nowhere"}


def git(folder: Path, *arguments: str) -> bytes:
    return subprocess.run(
        ["git", *arguments], cwd=folder, env=GIT_ALONE, check=True, capture_output=True, stdin=subprocess.DEVNULL
    ).stdout


def make(folder: Path, **files: str | bytes) -> None:
    """Files by path, `__` standing for a slash."""
    for name, content in files.items():
        put(folder / name.replace("__", "/"), content)


def put(path: Path, content: str | bytes = "text\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


@pytest.fixture(params=BOTH)
def ripgrep(request: pytest.FixtureRequest) -> str | None:
    return request.param


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q")
    return folder


def listed(folder: Path, ripgrep: str | None) -> list[str]:
    async def run() -> Listing:
        return await list_files(Disk("/"), str(folder), ripgrep, asyncio.get_running_loop().time() + 20)

    return [os.path.relpath(path, folder) for path in asyncio.run(run()).paths]


def nothing(path: str) -> bool:
    return False


def search(
    ripgrep: str | None,
    root: Path,
    pattern: str,
    *,
    skip: Callable[[str], bool] = nothing,
    limits: Limits | None = None,
    **more,
) -> Findings:
    return asyncio.run(Searcher(ripgrep, limits).search(Query(str(root), pattern, **more), skip))


def found_lines(findings: Findings, root: Path) -> list[str]:
    return [
        f"{os.path.relpath(file.path, root)}:{line.number}{'-' if line.start is None else ':'}{line.text}"
        for file in findings.files
        for line in file.lines
    ]


# --- which files


NAMES = """
a.log keep.log sub/b.log sub/keep.log build/x sub/build/x docs/a.html docs/sub/a.html cache/x sub/cache/x
sub2/cache #odd !odd trailing deep/x deep/a/x deep/a/b/x any.txt sub/any.txt foo/bar foo/baz a.c c.c
.hidden .github/workflows/x.yml plain ünï
"""


def test_git_says_what_is_ignored(repository, ripgrep):
    put(
        repository / ".gitignore",
        "# comment\n\n*.log\n!keep.log\n/build\ndocs/*.html\ncache/\n\\#odd\n\\!odd\ntrailing   \nspace\\ \n"
        "deep/**/x\n**/any.txt\nfoo/**\n!foo/bar\n[ab].c\r\n",
    )
    for name in NAMES.split():
        put(repository / name)
    put(repository / "space ")
    put(repository / "sub/.gitignore", "!b.log\nlocal\n/only-here\n")
    for name in ("sub/local", "sub/deeper/local", "sub/only-here", "sub/deeper/only-here", "local"):
        put(repository / name)
    put(repository / ".git/info/exclude", "excluded\nkeep-me\n")
    put(repository / "excluded")
    put(repository / "sub/excluded")
    put(repository / "sub3/.gitignore", "!excluded\n")
    put(repository / "sub3/excluded")
    expected = git(repository, "ls-files", "-co", "--exclude-standard", "-z").decode().split("\0")[:-1]
    assert listed(repository, ripgrep) == sorted(expected)
    assert "sub/b.log" in expected
    assert "foo/baz" not in expected


@pytest.mark.parametrize("rule", ["a/.", "./a", "a/./b", "[[:alpha:]]", "[![:digit:]x]", "[[:upper:][:digit:]]*", "."])
def test_unusual_rules_mean_what_they_mean_to_git(repository, rule, ripgrep):
    if ripgrep and "[:" in rule:
        pytest.skip("ripgrep itself does not know classes of characters by name")
    put(repository / ".gitignore", f"{rule}\n")
    for name in ("a/a", "a/b", "b", "x", "1", "1x", "Ab", "ab", "]", "-"):
        put(repository / name)
    expected = git(repository, "ls-files", "-co", "--exclude-standard", "-z").decode().split("\0")[:-1]
    assert listed(repository, ripgrep) == sorted(expected)


PARTS = ["a", "b", "c", "*", "**", "?", "[ab]", "*.x", "a*", "a.x", "b.x"]


@pytest.mark.parametrize("seed", range(6))
def test_random_rules_mean_what_they_mean_to_git(repository, seed, ripgrep):
    dice = random.Random(seed)

    def rule() -> str:
        body = "/".join(dice.choice(PARTS) for _ in range(dice.choice([1, 1, 1, 2, 2, 3])))
        return f"{dice.choice(['', '', '!'])}{dice.choice(['', '', '/'])}{body}{dice.choice(['', '', '/'])}\n"

    names = ["a", "b", "c", "a.x", "b.x", "ab"]
    for _ in range(60):
        path = repository.joinpath(*(dice.choice(names) for _ in range(dice.randrange(1, 4))))
        if not path.exists() and all(not parent.is_file() for parent in path.parents):
            put(path)
    folders = [repository, *(path for path in sorted(repository.rglob("[abc]*")) if path.is_dir())]
    for _ in range(5):
        for folder in dice.sample(folders, min(3, len(folders))):
            put(folder / ".gitignore", "".join(rule() for _ in range(dice.randrange(1, 6))))
        expected = git(repository, "ls-files", "-co", "--exclude-standard", "-z").decode().split("\0")[:-1]
        assert listed(repository, ripgrep) == sorted(expected), seed


def test_a_folder_below_has_the_rules_from_above(repository, ripgrep):
    put(repository / ".gitignore", "*.log\n/sub/no\nignored/\n")
    for name in ("sub/a.log", "sub/no/x", "sub/yes/x", "ignored/x", "ignored/y.log"):
        put(repository / name)
    assert listed(repository / "sub", ripgrep) == ["yes/x"]
    # A folder that is asked for by name is looked at, ignored or not.
    assert listed(repository / "ignored", ripgrep) == ["x"]


def test_a_repository_inside_has_only_its_own_rules(repository, ripgrep):
    put(repository / ".gitignore", "*.log\n")
    put(repository / "inner/a.log")
    put(repository / "inner/b.txt")
    git(repository / "inner", "init", "-q")
    put(repository / "inner/.gitignore", "*.txt\n")
    assert listed(repository, ripgrep) == [".gitignore", "inner/.gitignore", "inner/a.log"]
    assert listed(repository / "inner", ripgrep) == [".gitignore", "a.log"]


def test_outside_of_a_repository_nothing_is_ignored(tmp_path, ripgrep):
    put(tmp_path / ".gitignore", "*.log\n")
    put(tmp_path / "a.log")
    put(tmp_path / "inner/a.log")
    git(tmp_path / "inner", "init", "-q")
    put(tmp_path / "inner/.gitignore", "*.log\n")
    assert listed(tmp_path, ripgrep) == [".gitignore", "a.log", "inner/.gitignore"]


def test_a_linked_work_tree_has_the_excludes_of_its_repository(repository, ripgrep, tmp_path):
    put(repository / "a")
    git(repository, "add", ".")
    git(repository, "-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "m")
    git(repository, "worktree", "add", "-q", str(tmp_path / "linked"))
    put(repository / ".git/info/exclude", "excluded\n")
    put(tmp_path / "linked/excluded")
    assert listed(tmp_path / "linked", ripgrep) == ["a"]


def test_links_pipes_and_the_like_are_passed_over(repository, ripgrep):
    put(repository / "a")
    put(repository / "folder/b")
    (repository / "loop").symlink_to(".")
    (repository / "folder/up").symlink_to("..")
    (repository / "link").symlink_to("a")
    (repository / "outside").symlink_to("/etc")
    (repository / "dangling").symlink_to("nowhere")
    os.mkfifo(repository / "pipe")
    assert listed(repository, ripgrep) == ["a", "folder/b"]
    assert found_lines(search(ripgrep, repository, "text"), repository) == ["a:1:text", "folder/b:1:text"]


def test_pipes_in_the_place_of_rules_do_not_make_it_wait(repository):
    os.mkfifo(repository / ".gitignore")
    put(repository / "a")
    assert listed(repository, None) == ["a"]


def test_names_can_be_anything(repository, ripgrep):
    names = ["-e", "--help", "a b", "new\nline", "tab\t", "ü", "*", "quote'\"", os.fsdecode(b"\xff\xfe")]
    for name in names:
        put(repository / name, "needle\n")
    assert listed(repository, ripgrep) == sorted(names)
    for mode in ("content", "files", "count"):
        files = search(ripgrep, repository, "needle", mode=mode).files
        assert [os.path.basename(file.path) for file in files] == sorted(names)
        assert {file.count for file in files} == {1}


# --- find


def find(ripgrep: str | None, root: Path, pattern: str, limits: Limits | None = None) -> FoundPaths:
    return asyncio.run(Searcher(ripgrep, limits).find(str(root), pattern))


def test_find(repository, ripgrep):
    for name in ("src/app.py", "src/lib/app.py", "src/lib/other.ts", "app/x", "ignored/app.py"):
        put(repository / name)
    put(repository / ".gitignore", "ignored\n")

    def names(pattern: str) -> list[str]:
        return [path.removeprefix(f"{repository}/") for path in find(ripgrep, repository, pattern).paths]

    assert names("app.py") == ["src/app.py", "src/lib/app.py"]
    assert names("**/*.ts") == ["src/lib/other.ts"]
    assert names("src/*.py") == ["src/app.py"]
    assert names("lib") == ["src/lib/"]
    assert names("app") == ["app/"]
    assert names("src/lib") == ["src/lib/"]
    assert names("nothing") == []
    assert find(ripgrep, repository, "*", Limits(files=2))[1:] == (5, "files")


# --- search


def test_lines_are_found_in_order(tmp_path, ripgrep):
    make(tmp_path, z="foo\n", a__b="no\nxx foo yy foo\n", a_b="foo", B="food\nfo\n", sub__deep__x="a\n\n foo")
    findings = search(ripgrep, tmp_path, "foo")
    assert found_lines(findings, tmp_path) == [
        "B:1:food",
        "a/b:2:xx foo yy foo",
        "a_b:1:foo",
        "sub/deep/x:3: foo",
        "z:1:foo",
    ]
    assert [file.lines[0].start for file in findings.files] == [0, 3, 0, 1, 0]
    assert findings[1:] == (LeftOut(), "")


@pytest.mark.parametrize("context", [1, 2])
def test_lines_around_a_match(tmp_path, context, ripgrep):
    put(tmp_path / "a", "1\n2\nfoo\n4\n5\n6\n7\nfoo\nfoo\n10\n11\n")
    marks = [
        line.partition(":")[2] for line in found_lines(search(ripgrep, tmp_path, "foo", context=context), tmp_path)
    ]
    around = {1: [2, 3, 4, 7, 8, 9, 10], 2: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]}[context]
    assert marks == [f"{n}:foo" if n in (3, 8, 9) else f"{n}-{n}" for n in around]


def test_names_and_numbers(tmp_path, ripgrep):
    make(tmp_path, a="foo\nfoo foo\n", b="bar\n", c="foo\n")
    assert [file.path[-1] for file in search(ripgrep, tmp_path, "foo", mode="files").files] == ["a", "c"]
    counted = search(ripgrep, tmp_path, "foo", mode="count").files
    assert [(file.path[-1], file.count) for file in counted] == [("a", 2), ("c", 1)]


@pytest.mark.parametrize(
    ("pattern", "content", "numbers"),
    [
        (r"^\s+return\b", "return\n  return 1\n\treturns\n", [2]),
        (r"(?i)HELLO", "hello\nHeLLo\n", [1, 2]),
        (r"foo$", "foo\r\nfoo \r\n", [1]),
        (r"a.c", "abc\na\u00fcc\nac\n", [1, 2]),
        (r"\d{3}", "12\n123\n", [2]),
        (r"x*", "\nx\n", [1, 2]),
        (r"foo|bar", "foo\nbaz\nbar", [1, 3]),
        (r"fn main() {", "fn main {\nfn main() {\n", [1]),
        (r"fn main\(\) {", "fn main {\nfn main() {\n", [2]),
        (r"foo(?=bar)", "foobar\nfoobaz\n", [1]),
        (r"(\w)\1", "abab\nabba\n", [2]),
        (r"a[^\n]*z", "a to z\nb to z\n", [1]),
        (r"-e", "x -e\n", [1]),
        (r"--files", "--files\n", [1]),
        (r"na\u00efve", "na\u00efve\nnaive\n", [1]),
        (r"^b", "\ufeffb\nb\n", [1, 2]),
    ],
)
def test_patterns(tmp_path, pattern, content, numbers, ripgrep):
    put(tmp_path / "a", content)
    lines = [line for file in search(ripgrep, tmp_path, pattern).files for line in file.lines]
    assert [line.number for line in lines] == numbers


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("foo(", r"not a valid regular expression.* To search for this exact text, write foo\\\("),
        ("[a", "not a valid regular expression"),
        ("*", "not a valid regular expression"),
        ("(" * 2000, "not a valid regular expression"),
        ("a\nb", "line by line"),
        (r"a\nb", "line by line"),
        ("a\0b", "null or incomplete"),
        ("\ud800", "incomplete characters"),
    ],
)
def test_patterns_that_cannot_be_searched_for(tmp_path, pattern, said, ripgrep):
    with pytest.raises(WorkspaceError, match=f"(?s){said}"):
        search(ripgrep, tmp_path, pattern)


def test_what_only_ripgrep_understands_is_refused_in_words(tmp_path):
    for pattern in ("[[:alpha:]]", r"\p{Greek}"):
        with pytest.raises(WorkspaceError, match="not a valid regular expression"):
            search(None, tmp_path, pattern)


def test_encodings(tmp_path, ripgrep):
    put(tmp_path / "latin", "caf\u00e9 needle\n".encode("latin-1"))
    put(tmp_path / "marked", "\ufeffneedle\n")
    put(tmp_path / "utf16", "one\r\nneedle \u00fc\r\n".encode("utf-16"))
    findings = search(ripgrep, tmp_path, "needle")
    assert found_lines(findings, tmp_path) == ["latin:1:caf\ufffd needle", "marked:1:needle", "utf16:2:needle \u00fc"]
    assert [file.lines[0].start for file in findings.files] == [5, 0, 0]


def test_binary_huge_and_secret_files_are_left_out_and_counted(tmp_path, ripgrep):
    put(tmp_path / "binary", b"needle\0needle\n" * 10)
    put(tmp_path / "late", b"needle\n" + b"x\n" * 100_000 + b"\0")
    put(tmp_path / "other.bin", b"\0\1\2")
    put(tmp_path / "huge", "needle\n" + "x" * 2000)
    put(tmp_path / ".env", "needle=secret\n")
    put(tmp_path / "fine", "needle\n")
    for mode in ("content", "files", "count"):
        findings = search(
            ripgrep,
            tmp_path,
            "needle",
            mode=mode,
            skip=lambda path: path.endswith(".env"),
            limits=Limits(largest_file=300_000),
        )
        assert [os.path.basename(file.path) for file in findings.files] == ["fine", "huge"]
        assert findings.left_out == LeftOut(binary=2, secret=1)
    small = search(ripgrep, tmp_path, "needle", limits=Limits(largest_file=1000))
    assert small.left_out == LeftOut(binary=1, huge=2)
    # The person was asked about a file that was named.
    named = search(ripgrep, tmp_path / ".env", "needle", skip=lambda path: True)
    assert found_lines(named, tmp_path) == [".env:1:needle=secret"]


def test_globs_narrow_and_do_not_bring_back_what_is_ignored(repository, ripgrep):
    put(repository / ".gitignore", "*.log\nbuild/\n")
    for name in ("a.py", "src/b.py", "src/c.ts", "x.log", "build/d.py"):
        put(repository / name, "needle\n")

    def names(glob: str) -> list[str]:
        return [
            os.path.relpath(file.path, repository) for file in search(ripgrep, repository, "needle", glob=glob).files
        ]

    assert names("*.py") == ["a.py", "src/b.py"]
    assert names("src/**") == ["src/b.py", "src/c.ts"]
    assert names("*.{ts,log}") == ["src/c.ts"]
    assert names("!*.py") == ["src/c.ts"]


def test_enough_is_enough(tmp_path, ripgrep):
    for number in range(100):
        put(tmp_path / f"{number:03}", "needle\n" * 5)
    findings = search(ripgrep, tmp_path, "needle", limits=Limits(matches=12))
    assert [(file.path[-3:], file.count, len(file.lines)) for file in findings.files] == [
        ("000", 5, 5),
        ("001", 5, 5),
        ("002", 2, 2),
    ]
    assert findings.cut == "matches"
    assert search(ripgrep, tmp_path, "needle", limits=Limits(matches=500)).cut == ""
    for mode in ("files", "count"):
        findings = search(ripgrep, tmp_path, "needle", mode=mode, limits=Limits(files=70))
        assert [file.path[-3:] for file in findings.files] == [f"{number:03}" for number in range(70)]
        assert findings.cut == "files"


def test_a_flood_does_not_fill_the_memory(tmp_path, ripgrep):
    for number in range(20):
        put(tmp_path / f"{number:02}", "needle" * 20_000 + "\n")
    findings = search(ripgrep, tmp_path, "needle", limits=Limits(output=500_000))
    assert findings.cut == "size"
    assert len(findings.files) < 20


def test_a_pattern_that_would_take_for_ever_is_ended(tmp_path):
    put(tmp_path / "a", "fine aaa\n")
    put(tmp_path / "b", "a" * 60 + "!\n")
    findings = search(None, tmp_path, r"(a+)+(?=$)", limits=Limits(seconds=2))
    assert found_lines(findings, tmp_path) == ["a:1:fine aaa"]
    assert findings.cut == "time"


def children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def below(pid: int) -> list[int]:
    """All that the process has started, and what that has."""
    return [found for child in children(pid) for found in (child, *below(child))]


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_cancelling_ends_it_at_once_and_leaves_nothing_behind(tmp_path):
    put(tmp_path / "a", "a" * 60 + "!\n")

    async def run() -> None:
        task = asyncio.create_task(Searcher(None).search(Query(str(tmp_path), r"(a+)+$"), nothing))
        await asyncio.to_thread(
            eventually, lambda: any("ripgrep_stand_in.py" in _command(pid) for pid in below(os.getpid()))
        )
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    before = children(os.getpid())
    asyncio.run(run())
    assert children(os.getpid()) == before
    eventually(lambda: not naming(tmp_path))  # an orphan is nobody's child


def naming(path: Path) -> list[int]:
    """The processes whose command names the path."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [pid for pid in pids if str(path) in _command(pid)]


ALONE = """
import asyncio, sys
from crow.search.search import Query, Searcher
ripgrep = sys.argv[2] or None
asyncio.run(Searcher(ripgrep).search(Query(sys.argv[1], "(a+)+$"), lambda path: False))
"""
STUBBORN = """#!/bin/sh
# A ripgrep that takes for ever, and is hard to end.
trap "" HUP TERM INT PIPE
for last; do :; done
[ "$last" = /dev/null ] && exit 1
[ "$1" = --files ] && { printf "%s/a\\0" "$last"; exit 0; }
while :; do sleep 1; done
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("program", ["ripgrep_stand_in.py", "rg"])
def test_what_searches_does_not_outlive_whoever_asked(tmp_path, program):
    """Killed with -9, so that nobody is left to end it."""
    put(tmp_path / "work" / "a", "a" * 60 + "!\n")
    ripgrep = tmp_path / "rg"
    put(ripgrep, STUBBORN)
    ripgrep.chmod(0o755)
    given = str(ripgrep) if program == "rg" else ""
    asker = subprocess.Popen([sys.executable, "-c", ALONE, str(tmp_path / "work"), given])
    wanted = f"{tmp_path}/work/a\0"
    eventually(lambda: any(program in _command(pid) and wanted in _command(pid) for pid in below(asker.pid)))
    started = below(asker.pid)
    asker.send_signal(signal.SIGKILL)
    asker.wait()
    eventually(lambda: not any(map(_command, started)))


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def test_a_walk_stops_when_it_is_told_to(tmp_path):
    for number in range(20):
        put(tmp_path / f"{number}/a")
    asked = 0

    def stopped() -> bool:
        nonlocal asked
        asked += 1
        return asked > 5

    listing = walk(str(tmp_path), stopped)
    assert listing.cut == "time"
    assert len(listing.paths) < 20
    assert walk(str(tmp_path), lambda: False, most=7).cut == "size"
    assert len(walk(str(tmp_path), lambda: False, most=7).paths) == 7


def test_helpers_are_given_no_keys(tmp_path, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "secret")

    async def run() -> bytes:
        until = asyncio.get_running_loop().time() + 20
        return (await output_of(["/usr/bin/env"], cwd="/", until=until, most=100_000)).text

    assert b"secret" not in asyncio.run(run())


# --- which ripgrep


def test_a_ripgrep_that_lies_in_the_workspace_is_not_run(tmp_path, monkeypatch):
    program = tmp_path / "work/bin/rg"
    put(program, "#!/bin/sh\ntouch ran\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    assert find_ripgrep([str(tmp_path / "work")]) is None
    assert find_ripgrep([str(tmp_path / "other")]) == str(program)
    (tmp_path / "links").mkdir()
    (tmp_path / "links/rg").symlink_to(program)
    monkeypatch.setenv("PATH", str(tmp_path / "links"))
    assert find_ripgrep([str(tmp_path / "work")]) is None
    monkeypatch.setenv("PATH", "bin:.")
    monkeypatch.chdir(tmp_path / "work")
    assert find_ripgrep(["/elsewhere"]) is None


@pytest.mark.parametrize("script", ["#!/bin/sh\nexit 2\n", "no program at all", "#!/nonexistent/interpreter\n"])
def test_a_ripgrep_that_does_not_work_is_done_without(tmp_path, script):
    put(tmp_path / "rg", script)
    (tmp_path / "rg").chmod(0o755)
    put(tmp_path / "work/a", "needle\n")
    broken = str(tmp_path / "rg")
    assert listed(tmp_path / "work", broken) == ["a"]
    assert found_lines(search(broken, tmp_path / "work", "needle"), tmp_path / "work") == ["a:1:needle"]
