"""Which paths are secrets, and which are protected."""

import os

import pytest

from crow.policy.paths import what_secret, why_protected

SECRETS = """
/w/.env /w/.env.local /w/.ENV /w/deep/down/.env.production /w/server.pem /w/server.KEY /w/.netrc /w/.npmrc /w/.pypirc
/home/me/.ssh/id_ed25519 /home/me/.ssh/keys/old /w/.SSH/config /home/me/.aws/credentials /home/me/.kube/config
/home/me/.gnupg/x /home/me/.docker/config.json /etc/shadow /proc/1/environ /proc/self/environ /proc/1/task/1/environ
/home/me/.crow /home/me/.crow/config.toml /home/me/.CROW/config.toml /home/me/.ssh /w/x/../.env /w//.env
"""
NO_SECRETS = """
/w/.env.example /w/environment /w/env /w/keys.txt /w/monkey /w/a.key.md /w/pem /w/ssh/config /w/.sshrc /w/aws
/w/docker/config.json /etc/passwd /w/proc/environ /home/me/.crowd /home/me/.crow-notes/config.toml
"""
PROTECTED = """
/w/.git /w/.git/config /w/.git/hooks/pre-commit /w/.GIT/config /w/sub/.git/config /w/.gitconfig /home/me/.gitconfig
/home/me/.bashrc /home/me/.zshrc /home/me/.profile /home/me/.bash_profile /w/.zshenv /home/me/.config/fish/config.fish
/home/me/.ssh/config /home/me/.gnupg/gpg.conf /w/.vscode/tasks.json /w/.idea/x.xml /w/.zed/tasks.json
/w/.cursor/mcp.json
/w/.github/workflows/ci.yml /w/.gitlab-ci.yml /w/.husky/pre-commit /w/.pre-commit-config.yaml /w/.envrc /w/.mcp.json
/w/.crow/config.toml /w/AGENTS.md /w/agents.md /w/sub/Claude.md /etc/cron.d/x /etc/crontab /var/spool/cron/me
/etc/systemd/system/x.service /home/me/.config/systemd/user/x.service /lib/systemd/system/x /usr/lib/systemd/user/x
/Users/me/Library/LaunchAgents/x.plist /home/me/.config/autostart/x.desktop /etc/profile.d/x.sh
/home/me/.crow/grants.json
/w/.claude/settings.json /w/.claude/hooks/x.sh /w/.codex/config.toml /w/.gemini/settings.json /w/.opencode/plugin/x.js
/w/.agents/x /w/.windsurf/rules/x /w/.cline/x /w/.clinerules /w/.roo/mcp.json /w/.continue/x.yaml /w/.aider.conf.yml
/w/.kiro/hooks/x /w/.amazonq/cli-agents/x /w/.junie/guidelines.md /w/.goose/x /w/.qwen/settings.json /w/.trae/rules/x
/w/sub/.Claude/x /w/GEMINI.md /w/opencode.json /w/.cursorrules /w/.github/copilot-instructions.md /w/.cargo/config.toml
/w/.circleci/config.yml /w/.travis.yml /w/Jenkinsfile /w/.gitea/workflows/x.yml /w/.github/actions/x/action.yml
/w/lefthook.yml /w/.githooks/pre-commit /w/x.code-workspace /w/.exrc /w/.nvim.lua /w/.dir-locals.el /w/.emacs.d/init.el
/w/.grok/settings.json /w/AGENT.md /w/.rules /w/.mvn/extensions.xml /w/.yarn/releases/yarn.js /home/me/.tmux.conf
/home/me/.local/bin/git /home/me/.config/nushell/env.nu
/w/.yarnrc.yml /w/.ripgreprc /home/me/.config/opencode/x /home/me/.config/goose/config.yaml
/w/.hg/hgrc /w/.jj/repo/config.toml /w/.devcontainer.json /w/lefthook.yaml /w/lefthook.toml /w/lefthook-local.yml
/w/.lefthook.json /w/.lefthook-local/pre-commit/x /w/.config/lefthook.yml /w/.pre-commit-config.yml /w/.buildkite/x.yml
/w/.gitpod.yml /w/.lldbinit /w/.gdbinit /w/.gvimrc /w/.vimrc /w/.aiassistant/rules/x /w/.continuerules /w/.idx/dev.nix
/w/.augment-guidelines /w/.augment/rules/x /w/.pdbrc /w/.ghci /w/.lintstagedrc.json /w/mise.toml /w/.cirrus.yml
/w/.env /w/server.key /w/.g\u200cit/config /w/x/../.git/config /home/me/.config/git/config
"""
UNPROTECTED = """
/w/src/app.py /w/.gitignore /w/.gitattributes /w/git/config /w/.github/CODEOWNERS /w/.github/dependabot.yml /w/README.md
/w/docs/AGENTS.md.txt /w/workflows/ci.yml /w/bashrc /w/deploy/x.service /w/.env.example /w/crontab /w/vscode/x
/w/lefthook/x /w/src/idx/a.py /w/docs/lefthook.md /w/hg/hgrc /w/.hgignore /w/mise/x
/w/.gitx/y /w/src/jenkinsfile.py /w/local/bin/mine /w/code-workspace /w/runs/x
"""


@pytest.mark.parametrize("path", SECRETS.split())
def test_secrets(path):
    assert what_secret(path, ["/home/me/.crow"])


@pytest.mark.parametrize("path", NO_SECRETS.split())
def test_what_only_looks_like_a_secret(path):
    assert not what_secret(path, ["/home/me/.crow"])


@pytest.mark.parametrize("path", PROTECTED.split())
def test_protected(path):
    assert why_protected(path, ["/home/me/.crow"])


@pytest.mark.parametrize("path", UNPROTECTED.split())
def test_what_only_looks_protected(path):
    assert not why_protected(path, ["/home/me/.crow"])


def test_a_folder_that_looks_like_a_git_directory_is_protected(tmp_path):
    folder = tmp_path / "fixtures" / "x.git"
    (folder / "refs").mkdir(parents=True)
    (folder / "objects").mkdir()
    assert not why_protected(f"{folder}/config")
    assert why_protected(f"{folder}/HEAD"), "it would become one"
    assert why_protected(f"{folder}/head"), "on some disks this is the same name"
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    for name in ("config", "hooks/pre-commit", "refs/heads/x", "new/deep/x", ""):
        assert why_protected(f"{folder}/{name}"), name
    assert not why_protected(f"{tmp_path}/fixtures/other")


def test_what_becomes_a_git_directory_by_its_last_part(tmp_path):
    (tmp_path / "HEAD").write_text("ref: refs/heads/main\n")
    assert why_protected(f"{tmp_path}/commondir")
    assert not why_protected(f"{tmp_path}/refs/heads/x")
    (tmp_path / "refs").mkdir()
    assert why_protected(f"{tmp_path}/objects/x")
    assert why_protected("/" + "a/" * 150), "too deep to be looked at"


HOOKS = [
    ("[core]\n\thooksPath = tools/hooks\n", "tools/hooks/pre-commit", "tools/x"),
    ('[core] HOOKSPATH="tools/hooks" ; of the team\n', "tools/hooks/lib/a.sh", "tools/hooks-of-mine"),
    ('[remote "core"]\n\turl = x\n[core]\nbare = false\nhookspath = ./tools/\\\nhooks/\n', "tools/hooks/x", "tools/y"),
    ("[core]\n\thooksPath = .\n", "pre-commit", "src/pre-commit"),
    ("[core]\n\thooksPath = linked\n", "tools/hooks/x", "tools/x"),
    ("[include]\n\tpath = ../shared.conf\n", "tools/hooks/x", "tools/x"),
    ("[include]\n\tpath = ../shared.conf\n", "shared.conf", "other.conf"),
    ("[core]\n\thooksPath = Tools/Hooks\n", "tools/hooks/x", "tools/x"),
    ('[includeIf "onbranch:x"]\n\tpath = more\n', "tools/hooks/x", "tools/x"),
    ("[core]\n\thooksPath = ROOT/tools/hooks\n", "tools/hooks/x", "tools/x"),
    ("[core]\n\thooksPath = vendor/x/hooks\n", "vendor/x/hooks/pre-push", "vendor/x/y"),
]


@pytest.mark.parametrize(("config", "hook", "other"), HOOKS)
def test_hooks_that_git_is_told_of_are_protected(tmp_path, monkeypatch, config, hook, other):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    root = tmp_path / "work"
    for name in (".git", "tools/hooks", "vendor/x/.git"):
        (root / name).mkdir(parents=True)
    (root / "linked").symlink_to("tools/hooks")
    (root / "shared.conf").write_text("[core]\n\thooksPath = tools/hooks\n")
    (root / ".git/more").write_text("[include]\n\tpath = more\n[core]\n\thooksPath = tools/hooks\n")
    assert not why_protected(f"{root}/{hook}")
    (root / ".git/config").write_text(config.replace("ROOT", str(root)))
    assert why_protected(f"{root}/{hook}")
    assert not why_protected(f"{root}/{other}")


def test_hooks_that_the_person_has_for_every_repository_are_protected(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".gitconfig").write_text("[core]\n\thooksPath = team/hooks\n")
    (tmp_path / "work/.git").mkdir(parents=True)
    os.mkfifo(tmp_path / "work/.git/config")
    assert why_protected(f"{tmp_path}/work/team/hooks/pre-commit")
    assert not why_protected(f"{tmp_path}/work/team/x")
