"""Hosts on the web, for both tools that ask them: rules, modes, and what the person allows for longer."""

import pytest

from crow.actions import Deed
from crow.config.settings import PermissionRule
from crow.policy.base import Ask
from crow.policy.grants import Grants
from crow.policy.rule_policy import RulePolicy
from crow.results import ToolKind
from tests.policy.support import word

TOOLS = ["web_fetch", "web_search"]


def asking(tool: str, host: str = "api.example.com") -> Deed:
    return Deed(tool, ToolKind.FETCH, host=host)


@pytest.mark.parametrize("tool", TOOLS)
def test_a_host_is_asked_about_but_in_auto(shop, tool):
    for mode, expected in (("ask", "ask"), ("edit", "ask"), ("plan", "ask"), ("auto", "allow")):
        assert word(shop.policy(mode=mode).judge(asking(tool))) == expected


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize(
    ("decision", "host", "expected"),
    [
        ("allow", "api.example.com", "allow"),
        ("allow", "*.example.com", "allow"),
        ("allow", "example.com", "ask"),
        ("deny", "*.example.com", "deny"),
        ("ask", "*.example.com", "ask"),
    ],
)
def test_a_rule_names_a_host_or_all_below_one(shop, tool, decision, host, expected):
    assert word(shop.policy(PermissionRule(tool, decision, host=host)).judge(asking(tool))) == expected


@pytest.mark.parametrize("tool", TOOLS)
def test_a_rule_that_refuses_holds_in_auto(shop, tool):
    rule = PermissionRule(tool, "deny", host="*.example.com")
    assert word(shop.policy(rule, mode="auto").judge(asking(tool))) == "deny"


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("where", ["session", "project"])
def test_a_yes_for_longer_covers_this_host_and_this_tool(shop, tool, where, tmp_path):
    policy = RulePolicy([shop.root], [shop.home], grants=Grants(str(tmp_path), shop.root))
    verdict = policy.judge(asking(tool))
    assert isinstance(verdict, Ask)
    scope = verdict.session if where == "session" else verdict.project
    assert scope is not None
    assert policy.remember(scope, where) == ""
    assert word(policy.judge(asking(tool))) == "allow"
    assert word(policy.judge(asking(tool, "www.example.com"))) == "ask"
    [other] = set(TOOLS) - {tool}
    assert word(policy.judge(asking(other))) == "ask"
    later = RulePolicy([shop.root], [shop.home], grants=Grants(str(tmp_path), shop.root))
    assert word(later.judge(asking(tool))) == ("allow" if where == "project" else "ask")
