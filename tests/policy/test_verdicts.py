"""The mode table, rules for files, hosts and servers' tools, and who may say what."""

import pytest

from crow.actions import Deed
from crow.config.settings import PermissionRule
from crow.policy.base import Ask, KnownRule, Origin
from crow.policy.rule_policy import RulePolicy
from crow.results import ToolKind
from tests.policy.support import allow, deny, word

MODES = ("ask", "edit", "plan", "auto")
TABLE = {
    # as product and docs/permissions.md have it:  ask, edit, plan, auto
    "read inside": "allow allow allow allow",
    "read outside": "ask ask ask ask",
    "read a secret": "ask ask ask ask",
    "read Crow's home": "ask ask ask ask",
    "write inside": "ask allow deny allow",
    "write outside": "ask ask deny ask",
    "write a protected path": "ask ask deny ask",
    "write a secret": "ask ask deny ask",
    "terminal": "ask ask deny allow",
    "web": "ask ask ask allow",
    "MCP tool": "ask ask ask allow",
    "task": "allow allow allow allow",
    "plan": "allow allow allow allow",
    "leave plan": "ask ask ask ask",
    "an edit that says not what": "ask ask deny ask",
}


def deeds(shop) -> dict[str, Deed]:
    return {
        "read inside": shop.read("src/app.py"),
        "read outside": shop.read(shop.outside + "/x"),
        "read a secret": shop.read(".env"),
        "read Crow's home": shop.read(shop.home + "/config.toml"),
        "write inside": shop.write("src/app.py"),
        "write outside": shop.write(shop.outside + "/x"),
        "write a protected path": shop.write(".git/hooks/pre-commit"),
        "write a secret": shop.write("server.key"),
        "terminal": shop.line("ls"),
        "web": Deed("web_fetch", ToolKind.FETCH, host="example.com"),
        "MCP tool": Deed("mcp__docs__search", ToolKind.OTHER),
        "task": Deed("task", ToolKind.OTHER),
        "plan": Deed("plan", ToolKind.THINK),
        "leave plan": Deed("leave_plan", ToolKind.SWITCH_MODE),
        "an edit that says not what": Deed("write", ToolKind.EDIT),
    }


@pytest.mark.parametrize("row", TABLE)
def test_the_mode_table(shop, row):
    policy = shop.policy()
    decisions = []
    for mode in MODES:
        policy.mode = mode
        decisions.append(word(policy.judge(deeds(shop)[row])))
    assert " ".join(decisions) == TABLE[row]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("rule", "deed"),
    [
        (PermissionRule("read", "deny"), lambda shop: shop.read("a.txt")),
        (PermissionRule("read", "deny", path="src/**"), lambda shop: shop.read("src/deep/x")),
        (PermissionRule("read", "deny", path="src"), lambda shop: shop.read("SRC/x")),
        (PermissionRule("*", "deny", path="/etc"), lambda shop: shop.read("/etc/passwd")),
        (PermissionRule("write", "deny", path="*.lock"), lambda shop: shop.write("x.lock")),
        (PermissionRule("web_fetch", "deny", host="*.evil.com"), lambda shop: fetch("a.b.EVIL.com.")),
        (PermissionRule("mcp__x__*", "deny"), lambda shop: Deed("mcp__x__y", ToolKind.OTHER)),
        (deny("ls *"), lambda shop: shop.line("ls")),
    ],
)
def test_deny_rules_hold_in_every_mode(shop, rule, deed, mode):
    everything = [PermissionRule(rule.tool, "allow"), PermissionRule(rule.tool, "allow", rule.command, rule.path)]
    policy = shop.policy(*everything, rule, mode=mode)
    verdict = policy.judge(deed(shop))
    assert word(verdict) == "deny"
    assert verdict.origin is Origin.USER
    assert word(shop.policy(*everything, mode=mode, project=(rule,)).judge(deed(shop))) == "deny"


def fetch(host: str) -> Deed:
    return Deed("web_fetch", ToolKind.FETCH, host=host)


def test_a_projects_own_rules_can_only_tighten(shop):
    loose = (
        PermissionRule("terminal", "allow"),
        PermissionRule("write", "allow"),
        PermissionRule("web_fetch", "allow", host="example.com"),
        PermissionRule("read", "allow", path="/**"),
    )
    tight = (PermissionRule("read", "ask", path="src/**"), deny("ls *"))
    policy = shop.policy(project=loose + tight)
    assert word(policy.judge(shop.line("true"))) == "ask"
    assert word(policy.judge(shop.write("a.txt"))) == "ask"
    assert word(policy.judge(fetch("example.com"))) == "ask"
    assert word(policy.judge(shop.read(shop.outside + "/x"))) == "ask"
    assert word(policy.judge(shop.read("src/app.py"))) == "ask"
    assert word(policy.judge(shop.line("ls"))) == "deny"
    assert policy.judge(shop.line("ls")).origin is Origin.PROJECT


@pytest.mark.parametrize(
    ("rule", "path", "expected"),
    [
        ("src/**", "src/app.py", "allow"),
        ("src/**", "src/a/b/c", "allow"),
        ("src/**", "src", "allow"),
        ("src/**", "SRC/app.py", "ask"),
        ("src/**", "srcs/app.py", "ask"),
        ("src/**", "a/src/app.py", "ask"),
        ("src", "src/app.py", "ask"),
        ("./src/*", "src/app.py", "allow"),
        ("src/*", "src/a/b", "ask"),
        ("src/*.py", "src/a.py", "allow"),
        ("src/?.py", "src/a.py", "allow"),
        ("src/?.py", "src/ab.py", "ask"),
        ("**/*.md", "README.md", "allow"),
        ("**/*.md", "a/b/c.md", "allow"),
        ("a/**/z", "a/z", "allow"),
        ("a/**/z", "a/b/c/z", "allow"),
        ("a/**/z", "ab/z", "ask"),
        ("[ab].txt", "a.txt", "ask"),
        ("[ab].txt", "[ab].txt", "allow"),
        ("{a,b}.txt", "a.txt", "ask"),
        ("**", ".env", "ask"),
        (".env", ".env", "ask"),
        ("**", ".git/config", "ask"),
        (".git/**", ".git/config", "ask"),
        ("AGENTS.md", "agents.MD", "ask"),
        ("**", "src/../../outside/x", "ask"),
    ],
)
def test_allow_rules_for_paths(shop, rule, path, expected):
    policy = shop.policy(PermissionRule("write", "allow", path=rule))
    verdict = policy.judge(shop.write(path))
    assert word(verdict) == expected, verdict


def test_a_path_outside_has_to_be_named(shop):
    elsewhere = shop.outside + "/x"
    assert word(shop.policy(PermissionRule("write", "allow")).judge(shop.write(elsewhere))) == "ask"
    assert word(shop.policy(PermissionRule("write", "allow")).judge(shop.write("a"))) == "allow"
    named = PermissionRule("write", "allow", path=shop.outside + "/**")
    assert word(shop.policy(named).judge(shop.write(elsewhere))) == "allow"
    assert (
        word(shop.policy(PermissionRule("write", "allow", path="../outside/**")).judge(shop.write(elsewhere)))
        == "allow"
    )
    assert word(shop.policy(named).judge(shop.write(elsewhere, "edit"))) == "ask"


def test_a_deny_rule_follows_links_in_what_it_names(shop):
    rule = PermissionRule("read", "deny", path=shop.root + "/folder-link/**")
    assert word(shop.policy(rule).judge(shop.read(shop.outside + "/secret.txt"))) == "deny"
    # An allow rule does not: a link in a repository must not widen what a person allowed.
    rule = PermissionRule("read", "allow", path=shop.root + "/folder-link/**")
    assert word(shop.policy(rule).judge(shop.read(shop.outside + "/secret.txt"))) == "ask"


def test_both_spellings_of_a_path_are_judged(shop):
    real, spelled = shop.path("a.txt"), shop.path(".env")
    assert word(shop.policy().judge(Deed("read", ToolKind.READ, reads=(real,)))) == "allow"
    assert word(shop.policy().judge(Deed("read", ToolKind.READ, reads=(real, spelled)))) == "ask"


def test_plan_is_opened_neither_by_a_rule_nor_by_a_yes_from_another_mode(shop):
    policy = shop.policy(allow("git log *"))
    ask = policy.judge(shop.write("src/app.py"))
    policy.remember(ask.session, "session")
    policy.remember(policy.judge(shop.line("npm test")).session, "session")
    assert word(policy.judge(shop.write("src/app.py"))) == "allow"
    policy.mode = "plan"
    assert word(policy.judge(shop.write("src/app.py"))) == "deny"
    assert word(policy.judge(shop.line("npm test"))) == "deny"
    assert word(policy.judge(shop.line("git log"))) == "deny"
    assert word(policy.judge(shop.line("git log; ls"))) == "deny"


def test_plan_refuses_before_it_asks(shop):
    policy = shop.policy(PermissionRule("terminal", "ask", command="ls *"), deny("rm *"), mode="plan")
    assert word(policy.judge(shop.line("ls"))) == "deny"
    assert word(policy.judge(shop.line("ls 'x"))) == "deny"
    assert word(shop.policy(PermissionRule("write", "ask"), mode="plan").judge(shop.write("a"))) == "deny"


@pytest.mark.parametrize(
    ("rule", "host", "expected"),
    [
        ("example.com", "example.com", "allow"),
        ("example.com", "EXAMPLE.com.", "allow"),
        ("example.com", "www.example.com", "ask"),
        ("*.example.com", "www.example.com", "allow"),
        ("*.example.com", "a.b.example.com", "allow"),
        ("*.example.com", "example.com", "ask"),
        ("*.example.com", "evilexample.com", "ask"),
        ("example.com", "example.com.evil.com", "ask"),
    ],
)
def test_hosts(shop, rule, host, expected):
    policy = shop.policy(PermissionRule("web_fetch", "allow", host=rule))
    assert word(policy.judge(fetch(host))) == expected


def test_tools_of_servers(shop):
    policy = shop.policy(PermissionRule("mcp__docs__*", "allow"), PermissionRule("mcp__db__read", "allow"))
    assert word(policy.judge(Deed("mcp__docs__search", ToolKind.OTHER))) == "allow"
    assert word(policy.judge(Deed("mcp__db__read", ToolKind.OTHER))) == "allow"
    assert word(policy.judge(Deed("mcp__db__write", ToolKind.OTHER))) == "ask"
    assert word(policy.judge(Deed("mcp__docs2__search", ToolKind.OTHER))) == "ask"


def test_the_strictest_part_decides(shop):
    both = Deed("edit", ToolKind.EDIT, writes=(shop.path("src/a"), shop.path(".git/config")))
    assert word(shop.policy(mode="auto").judge(both)) == "ask"
    assert shop.policy(mode="ask").judge(both).session is None
    same = Deed("edit", ToolKind.EDIT, writes=(shop.path("src/a"), shop.path("src/b")))
    ask = shop.policy().judge(same)
    assert isinstance(ask, Ask)
    assert ask.session is not None
    other = Deed("edit", ToolKind.EDIT, writes=(shop.path("src/a"), shop.path("lib/b")))
    assert shop.policy().judge(other).session is None


def test_what_the_policy_tells_of_itself(shop):
    policy = shop.policy(allow("ls *"), project=(deny("rm *"),))
    ask = policy.judge(shop.line("npm test"))
    policy.remember(ask.session, "session")
    [npm] = ask.session.rules
    assert policy.rules() == [
        KnownRule(allow("ls *"), Origin.USER),
        KnownRule(deny("rm *"), Origin.PROJECT),
        KnownRule(npm, Origin.SESSION_GRANT),
    ]
    assert [str(rule) for rule in policy.rules()] == [
        "allow terminal: `ls *` (your config)",
        "deny terminal: `rm *` (the project's config)",
        "allow terminal: `npm test *` (allowed in this session)",
    ]
    assert word(policy.judge(shop.line("npm test"))) == "allow"
    assert policy.judge(shop.line("npm test")).origin is Origin.SESSION_GRANT
    assert policy.revoke(npm)
    assert not policy.revoke(npm)
    assert not policy.revoke(allow("ls *"))
    assert word(policy.judge(shop.line("npm test"))) == "ask"


def test_explanations(shop):
    policy = shop.policy(allow("ls *"), deny("rm *"))
    assert policy.explain(shop.line("ls")) == (
        "The command `ls`, in mode `ask`:\n- Runs without asking: a rule allows it (terminal: `ls *`; your config)."
    )
    assert policy.explain(shop.line("rm \u202ex")) == (
        "The command `rm ⟨U+202E⟩x`, in mode `ask`:\n- Refused: a rule forbids it (terminal: `rm *`; your config)."
    )
    assert policy.explain(shop.line("sort -o x y")) == (
        "The command `sort -o x y`, in mode `ask`:\n"
        "- Asks you first: running a command needs your permission in this mode. "
        "No rule allows `sort -o`. "
        "You can also choose: Allow `sort -o x y` for this session; "
        "Allow `sort -o x y` in this project."
    )
    assert policy.explain(shop.read("a.txt")) == (
        f"Reading `{shop.root}/a.txt`, in mode `ask`:\n"
        "- Done without asking: reading in the workspace needs no permission in this mode."
    )
    assert policy.explain(shop.read(".env")) == (
        f"Reading `{shop.root}/.env`, in mode `ask`:\n"
        f"- Asks you first: reading a secret needs your permission in this mode. `{shop.root}/.env` may contain keys "
        "or passwords, which the model would see. It can only be allowed once."
    )
    policy.mode = "plan"
    assert policy.explain(shop.line("make")) == (
        "The command `make`, in mode `plan`:\n- Refused: running a command is not allowed in `plan` mode."
    )


def test_nothing_of_a_name_is_markup_in_a_reason(shop):
    name = "a`b` [x](http://evil) **c**\u202e"
    shown = "``/else/a`b` [x](http://evil) **c**⟨U+202E⟩``"

    def reason(deed):
        verdict = shop.policy(allow("cat *")).judge(deed)
        assert isinstance(verdict, Ask)
        return verdict.reason

    assert reason(shop.read(f"/else/{name}")) == f"{shown} is outside the workspace."
    assert reason(shop.write(f"/else/{name}")) == f"{shown} is outside the workspace."
    assert reason(shop.write(f".git/{name}")).startswith(f"``{shop.root}/.git/a`b` [x](http")
    assert "``sort 'a`b'``" in reason(shop.line("sort 'a`b' /etc/passwd"))


def test_several_roots():
    policy = RulePolicy(["/w", "/more"], user_rules=[PermissionRule("write", "allow", path="src/**")])
    assert word(policy.judge(Deed("write", ToolKind.EDIT, writes=("/more/src/x",)))) == "allow"
    assert word(policy.judge(Deed("read", ToolKind.READ, reads=("/more/x",)))) == "allow"
    assert word(policy.judge(Deed("read", ToolKind.READ, reads=("/moreover/x",)))) == "ask"


def test_no_rule_lets_the_model_leave_plan_mode_by_itself(shop):
    policy = shop.policy(PermissionRule("leave_plan", "allow"), mode="plan")
    verdict = policy.judge(Deed("leave_plan", ToolKind.SWITCH_MODE))
    assert isinstance(verdict, Ask)
    assert verdict.session is None
    assert verdict.project is None
