"""Decides which paths are secret (they may hold credentials) and which are protected (they could make something run):
both ask in every mode.

Paths are absolute. Names are compared case-folded, since on many disks `.ENV` is the same file as `.env`. The caller
gives paths with symbolic links resolved; a spelling that is not resolved may be judged beside it, and then both count.
No rule and no "always" lifts what is said here.
"""

import os
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from itertools import pairwise

from crow.paths import is_inside
from crow.policy.base import names
from crow.policy.repositories import is_in_git_directory, is_obeyed_by_git

_SECRET_NAMES = (".env*", "*.pem", "*.key", ".netrc", ".npmrc", ".pypirc")
_HARMLESS_NAMES = (".env.example",)
_SECRET_FOLDERS = frozenset({".ssh", ".gnupg", ".aws", ".kube"})
_SECRET_ENDINGS = ("/.docker/config.json", "/etc/shadow")

_START_UP_FILES = names(
    """
    .profile .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .inputrc .zshrc .zshenv .zprofile .zlogin
    .zlogout .kshrc .mkshrc .shrc .cshrc .tcshrc .login .logout .xprofile .xinitrc .xsession .xsessionrc
    .pam_environment .tmux.conf .screenrc .curlrc .wgetrc .mailrc .gdbinit .lldbinit .pdbrc .perldb .rprofile .octaverc
    .xonshrc .irbrc .pryrc .ghci .ocamlinit .iex.exs .psqlrc .sqliterc
    """
)
_HOOK_MANAGERS = frozenset(
    f"lefthook{local}.{ending}" for local in ("", "-local") for ending in ("yml", "yaml", "toml", "json", "jsonc")
)
_PROTECTED_NAMES = _START_UP_FILES | {
    *_HOOK_MANAGERS,
    ".gitconfig",
    ".gitlab-ci.yml",
    ".pre-commit-config.yaml",
    ".envrc",
    ".mcp.json",
    ".ripgreprc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pnpmfile.cjs",
    "agents.md",
    "agents.override.md",
    "claude.md",
    "claude.local.md",
    "gemini.md",
    "qwen.md",
    "crush.md",
    "opencode.json",
    "opencode.jsonc",
    "crush.json",
    ".crush.json",
    ".cursorrules",
    ".windsurfrules",
    ".clinerules",
    ".roorules",
    ".goosehints",
    ".continuerules",
    ".augment-guidelines",
    ".roomodes",
    ".mcp.jsonc",
    "agent.md",
    "warp.md",
    ".rules",
    # what continuous integration and hooks run
    ".travis.yml",
    ".drone.yml",
    "jenkinsfile",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    ".woodpecker.yml",
    ".woodpecker.yaml",
    ".cirrus.yml",
    ".cirrus.star",
    "appveyor.yml",
    ".appveyor.yml",
    ".pre-commit-config.yml",
    "prek.toml",
    ".overcommit.yml",
    ".simple-git-hooks.json",
    "simple-git-hooks.json",
    "bunfig.toml",
    ".hgrc",
    "mise.toml",
    ".mise.toml",
    "mise.local.toml",
    ".mise.local.toml",
    # what editors run when a folder is opened
    ".devcontainer.json",
    ".gitpod.yml",
    ".exrc",
    ".gvimrc",
    ".ideavimrc",
    ".nvimrc",
    ".nvim.lua",
    ".vimrc",
    ".emacs",
    ".dir-locals.el",
}
_PROTECTED_ENDINGS = (".code-workspace",)
"""Of names of files."""
_PROTECTED_BEGINNINGS = (
    ".aider",
    ".roorules-",
    ".clinerules-",
    ".lefthook",
    ".huskyrc",
    ".lintstagedrc",
    "lint-staged.config.",
)
"""Of names of files and folders, such as `.aider.conf.yml`."""
_PROTECTED_FOLDERS = names(
    """
    .git .hg .jj .sl .svn .bzr .ssh .gnupg .vscode .idea .zed .husky .crow .cargo .devcontainer .circleci
    .woodpecker .buildkite .semaphore .teamcity .tekton .githooks .mvn .yarn .mise .idx .vs .fleet .run .helix
    .emacs.d .cody .grok .serena
    .agent .agents .aiassistant .aider .amazonq .amp .antigravity .augment .claude .cline .clinerules .codebuddy
    .codeium .codex .continue .copilot .crush .cursor .factory .gemini .goose .iflow .junie .kilocode .kimi .kiro
    .neovate .opencode .openhands .pi .qoder .qwen .roo .rovodev .tabnine .trae .vibe .warp .windsurf .zencoder
    """
)
"""Most are folders of other agents: what lies there tells them what to do, and what to run, as the person."""
_PROTECTED_BRANCHES = (
    (".github", "workflows"),
    (".github", "actions"),
    (".github", "chatmodes"),
    (".github", "skills"),
    (".gitea", "workflows"),
    (".forgejo", "workflows"),
    (".local", "bin"),
    (".config", "nushell"),
    (".config", "helix"),
    (".config", "environment.d"),
    (".github", "copilot-instructions.md"),
    (".github", "instructions"),
    (".github", "agents"),
    (".github", "prompts"),
    (".github", "hooks"),
    (".config", "goose"),
    (".config", "opencode"),
    (".config", "crush"),
    (".config", "amp"),
    (".config", "zed"),
    (".config", "nvim"),
    (".config", "git"),
    (".config", "hg"),
    (".config", "jj"),
    (".config", "mise"),
    (".config", "direnv"),
    (".config", "fish"),
    (".config", "systemd"),
    (".config", "autostart"),
    ("library", "launchagents"),
    ("library", "launchdaemons"),
)
"""Folders within folders, wherever they lie."""
_PROTECTED_SYSTEM = re.compile(
    r"/etc/(profile|profile\.d|bash\.bashrc|bashrc|bash\.bash_logout|zsh|zshenv|zshrc|fish|environment|crontab|anacrontab"
    r"|cron\.[^/]+|systemd|init\.d|rc\.local|xdg/autostart)(/.*)?"
    r"|/var/spool/(cron|at)(/.*)?|(/usr)?(/local)?/lib/systemd(/.*)?|/run/systemd(/.*)?"
)
_INVISIBLE = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
"""Some disks leave these out when they compare names, so that `.g\\u200cit` is `.git`. That is a fact about disks,
which has nothing to do with what a person can see."""


def is_secret(path: str, private: Sequence[str] = ()) -> bool:
    """Whether reading the path may show credentials. `private` names folders that are secret as a whole."""
    folded = _folded(path)
    folder, name = os.path.split(folded)
    if name not in _HARMLESS_NAMES and any(fnmatchcase(name, pattern) for pattern in _SECRET_NAMES):
        return True
    if not _SECRET_FOLDERS.isdisjoint(folded.split("/")) or folded.endswith(_SECRET_ENDINGS):
        return True
    if folder.startswith("/proc/") and name == "environ":
        return True
    return any(is_inside(folded, _folded(root)) for root in private)


def is_secret_in(path: str, private: Sequence[str], readable: Sequence[str]) -> bool:
    """The same; reading what lies in a `readable` folder within a private one shows no secret."""
    plain = os.path.normpath(path)
    return is_secret(plain, () if any(is_inside(plain, folder) for folder in readable) else private)


def is_protected(path: str, private: Sequence[str] = ()) -> bool:
    """Whether writing the path could make something run later, or change what Crow may do; secrets count too."""
    folded = _folded(path)
    parts = folded.split("/")
    if parts[-1] in _PROTECTED_NAMES or parts[-1].endswith(_PROTECTED_ENDINGS):
        return True
    if not _PROTECTED_FOLDERS.isdisjoint(parts):
        return True
    if any(part.startswith(_PROTECTED_BEGINNINGS) for part in parts):
        return True
    if any(branch in _PROTECTED_BRANCHES for branch in pairwise(parts)):
        return True
    if _PROTECTED_SYSTEM.fullmatch(folded) is not None or is_secret(path, private):
        return True
    path = os.path.normpath(path)
    return is_in_git_directory(path) or is_obeyed_by_git(path)


def _folded(path: str) -> str:
    return _INVISIBLE.sub("", os.path.normpath(path)).casefold()
