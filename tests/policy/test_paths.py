"""Which paths are secrets, and what may be read unasked."""

import pytest

from crow.actions import Deed
from crow.policy.base import Allow, Ask
from crow.policy.paths import is_secret
from crow.policy.rules import BuiltInPolicy
from crow.results import ToolKind

SECRETS = """
/w/.env /w/.env.local /w/.ENV /w/deep/down/.env.production /w/server.pem /w/server.KEY /w/.netrc /w/.npmrc /w/.pypirc
/home/me/.ssh/id_ed25519 /home/me/.ssh/keys/old /w/.SSH/config /home/me/.aws/credentials /home/me/.kube/config
/home/me/.gnupg/x /home/me/.docker/config.json /etc/shadow /proc/1/environ /proc/self/environ /proc/1/task/1/environ
/home/me/.crow /home/me/.crow/config.toml
"""
HARMLESS = """
/w/.env.example /w/environment /w/env /w/keys.txt /w/monkey /w/a.key.md /w/pem /w/ssh/config /w/.sshrc /w/aws
/w/docker/config.json /etc/passwd /w/proc/environ /home/me/.crowd /home/me/.crow-notes/config.toml
"""


@pytest.mark.parametrize("path", SECRETS.split())
def test_secrets(path):
    assert is_secret(path, ["/home/me/.crow"])


@pytest.mark.parametrize("path", HARMLESS.split())
def test_what_only_looks_like_one(path):
    assert not is_secret(path, ["/home/me/.crow"])


def judged(policy: BuiltInPolicy, *paths: str) -> str:
    match policy.judge(Deed("read", ToolKind.READ, reads=paths)):
        case Allow():
            return "goes"
        case Ask(scope=None):
            return "asks each time"
        case Ask(scope=scope):
            return f"asks, or: {scope.label}"  # pyright: ignore[reportOptionalMemberAccess]
        case other:
            return str(other)


@pytest.mark.rule("R34", "R54")
@pytest.mark.parametrize(
    ("path", "verdict"),
    [
        ("/w", "goes"),
        ("/w/a/b", "goes"),
        ("/more/x", "goes"),
        ("/workshop/a", "asks, or: Allow reading in /workshop for this session"),
        ("/opt/a/b", "asks, or: Allow reading in /opt/a for this session"),
        ("/w/.env", "asks each time"),
        ("/a", "asks each time"),
        ("/home/a", "asks each time"),
        ("/root/a", "asks each time"),
    ],
)
def test_verdicts(path, verdict):
    assert judged(BuiltInPolicy(["/w", "/more"], []), path) == verdict


@pytest.mark.rule("R102")
def test_what_was_granted_goes_and_nothing_else():
    policy = BuiltInPolicy(["/w"], [])
    ask = policy.judge(Deed("read", ToolKind.READ, reads=("/opt/a/b",)))
    assert isinstance(ask, Ask)
    assert ask.scope is not None
    policy.remember(ask.scope)
    assert judged(policy, "/opt/a/c/d") == "goes"
    assert judged(policy, "/opt/ab/c") != "goes"
    assert judged(policy, "/opt/a/.env") == "asks each time"
    assert judged(policy, "/opt/a/b", "/opt/z/b") != "goes"
    assert isinstance(policy.judge(Deed("write", ToolKind.EDIT, reads=("/opt/a/b",))), Ask)
