"""Which files of a project the command of a server names, and what becomes of trust when one of them changes."""

import os
import shutil

import pytest

from crow.actions import Deed
from crow.config.settings import McpServerSettings
from crow.policy.base import Ask
from crow.policy.rule_policy import RulePolicy
from crow.project.server_programs import program_files, said_of_programs
from crow.project.trusted_sources import Sources, TrustFile
from crow.results import ToolKind

FILES = """
tools/server.py tools/main.py tools/data.json tools/notes.txt server.js dist/index.js pkg/__init__.py pkg/__main__.py
pkg/deep/x.py src/inner/__init__.py src/inner/core.py bin/serve lib/hook.js app/index.js data.db logs/x.log memory.json
package.json scripts/start.sh one.py
"""


@pytest.fixture
def project(tmp_path):
    root = tmp_path.resolve() / "work"
    for name in FILES.split():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("one\n")
    (root / "bin/serve").chmod(0o755)
    return root


def server(line: str, **env: str) -> McpServerSettings:
    command, *args = line.split(" ")
    return McpServerSettings(command=command, args=[arg.replace("^", " ") for arg in args], env=env)


NAMED = [
    ("python3 tools/server.py", "tools/server.py"),
    ("python3 ./tools/../tools/server.py --port 5", "tools/server.py"),
    ("python3 ROOT/tools/server.py", "tools/server.py"),
    ("node server.js", "server.js"),
    ("node dist", "dist/index.js"),
    ("./bin/serve", "bin/serve"),
    ("bin/serve --db data.db --log=logs/x.log", "bin/serve"),
    ("ROOT/bin/serve", "bin/serve"),
    ("bash -c cd^tools;^exec^python3^'server.py'", "tools/main.py tools/server.py"),
    ("sh -c true&&./scripts/start.sh", "scripts/start.sh"),
    ("uv run --directory tools server.py", "tools/main.py tools/server.py"),
    ("uv --directory=tools run server.py", "tools/main.py tools/server.py"),
    ("python -m pkg", "pkg/__init__.py pkg/__main__.py pkg/deep/x.py"),
    ("python -m pkg.deep.x", "pkg/deep/x.py"),
    ("python -m inner.core", "src/inner/core.py"),
    ("python -mone", "one.py"),
    ("node --require=./lib/hook.js server.js", "lib/hook.js server.js"),
    ("docker run -v ./app:/app x", "app/index.js"),
    ("npx tsx new/server.ts", "new/server.ts"),
    ("npm --prefix . run mcp", ""),
    ("uvx mcp-server-sqlite --db-path ./data.db", ""),
    ("npx -y @scope/server-memory ./memory.json", ""),
    ("npx -y @scope/server-filesystem .", ""),
    ("python3 /usr/lib/x.py", ""),
    ("python3 ../elsewhere/x.py", ""),
]


@pytest.mark.parametrize(("line", "named"), NAMED)
def test_the_files_that_a_command_names(project, line, named):
    found = program_files(server(line.replace("ROOT", str(project))), str(project))
    assert [os.path.relpath(path, project) for path in found] == named.split()


def test_variables_of_a_server_name_files_too(project, monkeypatch):
    monkeypatch.setenv("TOOLS", str(project / "tools"))
    found = program_files(server("python3 ${TOOLS}/server.py", NODE_OPTIONS="--require ./lib/hook.js"), str(project))
    assert [os.path.relpath(path, project) for path in found] == ["lib/hook.js", "tools/server.py"]


def test_trust_ends_when_a_program_changes_appears_or_goes(project, tmp_path):
    (project / ".mcp.json").write_text(
        '{"mcpServers": {"a": {"command": "python3", "args": ["tools/server.py", "--db", "data.db"]},'
        ' "b": {"command": "node", "args": ["build/b.js"]}, "c": {"command": "python3", "args": ["-m", "pkg"]}}}'
    )
    home = tmp_path / "home"
    home.mkdir()
    trusted = TrustFile(str(home))
    (offer,) = Sources(str(home), [str(project)]).waiting()
    assert offer.programs == (
        *("tools/server.py", "build/b.js", "pkg/__init__.py", "pkg/__main__.py", "pkg/deep/x.py"),
    )

    def asks_after(change) -> bool:
        """Whether what was trusted is asked about again, in a session that is open and in one that begins later."""
        for known in Sources(str(home), [str(project)]).waiting():
            trusted.trust(known.root, known.digest)
        sources = Sources(str(home), [str(project)])
        assert sources.waiting() == []
        change()
        sources.refresh()
        assert bool(sources.waiting()) == bool(Sources(str(home), [str(project)]).waiting())
        return bool(sources.waiting())

    assert asks_after(lambda: (project / "tools/server.py").write_text("two\n"))
    assert asks_after(lambda: (project / "pkg/deep/x.py").write_text("two\n"))
    assert asks_after(lambda: (project / "pkg/new.py").write_text("new\n"))
    assert asks_after(lambda: [(project / "build").mkdir(), (project / "build/b.js").write_text("x")])
    assert asks_after(lambda: shutil.rmtree(project / "build"))
    assert asks_after((project / "tools/server.py").unlink)
    assert not asks_after(lambda: (project / "data.db").write_text("rows"))
    assert not asks_after(lambda: (project / "tools/notes.txt").write_text("more"))


def test_writing_a_program_is_asked_about_however_its_name_is_spelled(project):
    policy = RulePolicy([str(project)], mode="edit")
    servers = {"a": server("python3 tools/server.py"), "b": server("node new/b.js"), "c": server("uvx x")}
    policy.programs = lambda: said_of_programs(servers, [str(project)])

    def verdict(name):
        found = policy.judge(Deed("write", ToolKind.EDIT, writes=(f"{project}/{name}",)))
        return found.reason.rpartition("protected: ")[2] if isinstance(found, Ask) else type(found).__name__

    assert verdict("tools/server.py") == "the MCP server `a` runs it when it starts."
    assert verdict("Tools/SERVER.py") == "the MCP server `a` runs it when it starts."
    assert verdict("new/b.js") == "the MCP server `b` runs it when it starts."
    assert verdict("tools/main.py") == "Allow"


def test_a_program_that_is_a_link_counts_by_what_it_leads_to(project, tmp_path):
    (project / "tools/link.py").symlink_to("notes.txt")
    (project / ".mcp.json").write_text('{"mcpServers": {"a": {"command": "python3", "args": ["tools/link.py"]}}}')
    sources = Sources(str(tmp_path), [str(project)])
    (before,) = sources.waiting()
    (project / "tools/notes.txt").write_text("print('changed')\n")
    sources.refresh()
    (after,) = sources.waiting()
    assert after.digest != before.digest
