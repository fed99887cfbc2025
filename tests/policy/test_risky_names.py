"""The names that run by themselves, and those that hold credentials: what is asked about them in the mode `edit`."""

import os
import time
from pathlib import Path

import pytest

from crow.actions import Deed
from crow.config.settings import PermissionRule
from crow.policy import paths
from crow.policy.base import Ask
from crow.policy.paths import Group, risky_names, what_secret, why_protected
from crow.policy.rule_policy import RulePolicy
from crow.results import ToolKind
from tests.policy.support import word
from tests.support.work import lines_run

DOCUMENT = Path(__file__).parents[2] / "docs" / "permissions.md"

RUNS_BY_ITSELF = """
bamboo-specs/x.java .gitlab-ci-build.yml .lando.yml mcporter.json .continuerc.json .devscripts .rdata wallaby.js
.vim/coc-settings.json coc-settings.json .dir-locals-2.el .dir-locals.el .config/emacs/init.el .emacs.d/early-init.el
init.el .theia/tasks.json .vscode/tasks.json .vscode/settings.json .idea/workspace.xml .zed/settings.json
x.code-workspace x.sublime-project .lite_project.lua .bsp/sbt.json .rust-analyzer.toml rust-toolchain.toml .luarc.json
hie.yaml .merlin .ycm_extra_conf.py .lvimrc .exrc .nvim.lua .lazy.lua .vimspector.json
.settings/org.eclipse.core.resources.prefs .project .externalToolBuilders/x.launch .nova/Tasks/x.json .kateproject
.helix/config.toml .devcontainer/devcontainer.json .devcontainer.json .gitpod.yml .replit .stackblitzrc
.codesandbox/tasks.json .idx/dev.nix devfile.yaml azure-pipelines.yaml azure-pipelines.yml azure-pipelines-release.yml
.azure-pipelines/build.yml .drone.yaml .drone.yml .gitlab/ci/build.yml .gitlab-ci.yml build.gitlab-ci.yml
.gitlab/agents/x/config.yaml buildspec.yml buildspec-test.yaml .builds/debian.yml .build.yml .github/workflows/ci.yaml
.github/actions/x/action.yml .circleci/config.yml .travis.yml Jenkinsfile Jenkinsfile-release .woodpecker/build.yml
.cirrus.yml appveyor.yml bitbucket-pipelines.yml cloudbuild.yaml .buildkite/pipeline.yml .semaphore/semaphore.yml
.teamcity/settings.kts .tekton/push.yaml .zuul.yaml bitrise.yml codemagic.yaml .screwdriver.yaml .packit.yaml
amplify.yml netlify.toml .readthedocs.yaml .mergify.yml .gitea/workflows/x.yml .forgejo/workflows/x.yml
appcenter-post-clone.sh ci_scripts/ci_post_clone.sh .kokoro/x.cfg .harness/x.yaml .bashrc .bashrc.d/x.sh .bash_profile
.bash_aliases .profile .profile.d/x .zshrc .zshenv .zprofile .zsh/aliases.zsh .oh-my-zsh/custom/x.zsh .p10k.zsh .kshrc
.cshrc .config/fish/config.fish .config/fish/conf.d/x.fish .config/nushell/env.nu Microsoft.PowerShell_profile.ps1
.xonshrc .inputrc .xinitrc .xprofile .config/autostart/x.desktop .config/systemd/user/x.service
.config/environment.d/x.conf .local/share/systemd/user/x.service .local/bin/x Library/LaunchAgents/x.plist
.config/sway/config .i3/config .hammerspoon/init.lua .crontab bin/git bin/ls bin/python3 sbin/ssh .bin/npm
node_modules/.bin/eslint .venv/bin/python .venv/lib/python3.13/site-packages/x.pth venv/bin/activate flake.nix
flake.lock shell.nix default.nix devenv.nix devbox.json .envrc .envrc.local .direnv/x .mise.toml mise.local.toml
.mise/config.toml mise/config.toml .autoenv.zsh .shadowenv.d/x.lisp .flox/env/manifest.toml .prototools
.gradle/init.d/x.gradle .gradle/init.gradle init.gradle.kts gradle/wrapper/gradle-wrapper.properties
.mvn/extensions.xml .mvn/jvm.config .m2/settings.xml .sbtopts .jvmopts .bazelrc tools/bazel .cargo/config.toml
.cargo/config .yarnrc.yml .yarn/releases/yarn.cjs .pnp.cjs .pnpmfile.cjs bunfig.toml .bundle/config .gemrc .condarc
pip.conf .npmrc .user.ini .htaccess .terraformrc .buckconfig .puppeteerrc.cjs usercustomize.py sitecustomize.py
pyvenv.cfg .pythonrc.py .ipython/profile_default/startup/x.py jupyter_server_config.py .pdbrc .irbrc .pryrc .Rprofile
.Renviron x.Rproj .ghci .ocamlinit .iex.exs .erlang .gdbinit .lldbinit .psqlrc .sqliterc .gnuplot .octaverc .sbclrc
startup.jl .tclshrc .git/config .git/hooks/pre-commit .git/info/attributes .gitmodules .gitconfig .lfsconfig .hg/hgrc
.jj/repo/config.toml .svn/x .husky/pre-commit .huskyrc.js lefthook.yml .lefthook/pre-commit/x.sh
.pre-commit-config.yaml .pre-commit-hooks.yaml .lintstagedrc.json lint-staged.config.mjs .githooks/pre-push hk.pkl
captainhook.json grumphp.yml .tmux.conf .tmuxp.yaml .screenrc .curlrc .wgetrc .mailcap .muttrc .procmailrc .lessfilter
.ripgreprc .ackrc .ctags .config/kitty/kitty.conf .config/starship.toml .config/whatever/new.conf .k9s/plugins.yaml
.ansible.cfg .docker/cli-plugins/x mcp.json .mcp.json .cursor/mcp.json cline_mcp_settings.json mcp_config.json
claude_desktop_config.json fastagent.config.yaml mcp_agent.config.yaml gptme.toml gptme.local.toml librechat.yaml
opencode.json crush.json cagent.yaml .claude/settings.json .codex/config.toml .gemini/settings.json .roo/mcp.json
.kiro/hooks/x .amazonq/cli-agents/x.json .windsurf/rules/x .continue/config.yaml .crow/config.toml .goosehints
.clinerules .cursorrules .windsurfrules AGENTS.md AGENTS.override.md CLAUDE.local.md GEMINI.md
.github/copilot-instructions.md .github/instructions/x.instructions.md .aider.conf.yml .serena/project.yml
.openhands/setup.sh .ropeproject/config.py .vela.yml atlantis.yaml global.json uv.toml startup.m
"""
ORDINARY = """
src/main.py README.md package-lock.json package.json pyproject.toml setup.py setup.cfg Makefile CMakeLists.txt
conftest.py tests/test_main.py tests/conftest.py Dockerfile docker-compose.yml .dockerignore .gitignore .gitattributes
.gitkeep .editorconfig .prettierrc .prettierrc.json prettier.config.js .eslintrc.js .eslintrc.json eslint.config.mjs
.stylelintrc tsconfig.json jsconfig.json vite.config.ts webpack.config.js rollup.config.js babel.config.js
jest.config.js vitest.config.ts next.config.js tailwind.config.ts postcss.config.cjs playwright.config.ts Cargo.toml
Cargo.lock build.rs go.mod go.sum main.go requirements.txt poetry.lock uv.lock yarn.lock pnpm-lock.yaml
pnpm-workspace.yaml tox.ini noxfile.py pytest.ini mypy.ini ruff.toml .flake8 .pylintrc .coveragerc .clang-format
.clang-tidy .rubocop.yml .swiftlint.yml .markdownlint.json .yamllint build.gradle build.gradle.kts settings.gradle
gradle.properties gradlew pom.xml build.sbt Gemfile Gemfile.lock Rakefile composer.json composer.lock mix.exs
project.clj Package.swift pubspec.yaml App.csproj Directory.Build.props index.html style.css src/App.tsx
src/components/env.ts src/keys.py src/tokens.py src/credentials/manager.py src/secrets/manager.py
src/wireguard/device.c src/auth/token.rs docs/index.md docs/AGENTS.md.txt docs/cursor.md docs/mcp.md docs/git.md
docs/claude.html CHANGELOG.md LICENSE CONTRIBUTING.md CODEOWNERS .github/CODEOWNERS .github/dependabot.yml
.github/ISSUE_TEMPLATE/bug.md .github/pull_request_template.md .nvmrc .node-version .python-version .ruby-version
.tool-versions justfile Taskfile.yml Procfile Vagrantfile Jenkinsfile.md bin/cli.js bin/rails bin/setup bin/myapp
scripts/build.sh scripts/git.py tools/release.py config/settings.yml config/routes.rb locales/en/auth.json
assets/logo.svg data/users.csv notebooks/a.ipynb migrations/0001_init.sql api/openapi.yaml proto/a.proto
charts/app/values.yaml charts/app/templates/secret.yaml terraform/main.tf terraform/variables.tf k8s/deployment.yaml
.storybook/main.ts .changeset/config.json .vitepress/config.ts .well-known/security.txt .env.example id_rsa.pub
environment.yml env.py profile.py login.tsx history.py functions.php aliases.ts exports.js path.py vim.py git.c
emacs.md public/.well-known/x.json shell.py cron.py crontab model.pth server.crt
"""
CREDENTIALS = """
.git/config .git/config.worktree .git/modules/x/config .git-credentials .config/git/credentials .gitcookies .gitconfig
.hgrc .env .env.local .env.production .ENV .envrc prod.env .envs/.production/.postgres .dev.vars .flaskenv .netrc
_netrc .npmrc .yarnrc.yml .pypirc pip.conf .cargo/credentials.toml .gem/credentials .bundle/config auth.json
NuGet.Config .m2/settings.xml .gradle/gradle.properties .docker/config.json .dockercfg .condarc id_rsa id_dsa id_ecdsa
id_ed25519 deploy_key keys/id_rsa .ssh/config .ssh/id_other server.pem server.key cert.p12 cert.pfx AuthKey_X.p8
release.jks release.keystore putty.ppk passwords.kdbx secring.gpg .gnupg/x vpn.ovpn wg0.conf login.keychain-db
x.keytab .password-store/x.gpg terraform.tfstate terraform.tfstate.backup prod.tfvars x.auto.tfvars.json
credentials.tfrc.json .terraformrc .pgpass pgpass.conf .my.cnf .mylogin.cnf .aws/credentials .aws/config
aws_credentials .azure/accessTokens.json .config/gcloud/credentials.db application_default_credentials.json
service-account.json my-service-account-prod.json serviceAccountKey.json app-firebase-adminsdk-x1.json
client_secret_1.apps.googleusercontent.com.json credentials.json credentials.csv my_accessKeys.csv
google-services.json sa-key.json .kube/config kubeconfig kubeconfig.yaml prod.kubeconfig .boto .s3cfg rclone.conf
.oci/config clouds.yaml .vault-token .vault_pass.txt secrets.yml secrets.yaml secrets.toml .streamlit/secrets.toml
secret.json prod-secrets.yaml app.secrets.yml .secrets/db .htpasswd wp-config.php local.settings.json
config/master.key .sentryclirc ngrok.yml .kaggle/kaggle.json kaggle.json .databrickscfg .dbt/profiles.yml
.wakatime.cfg sftp-config.json .vscode/sftp.json filezilla.xml .msmtprc .mbsyncrc .authinfo .smbcredentials
.config/gh/hosts.yml .claude/.credentials.json .codex/auth.json fastagent.secrets.yaml .aider.conf.yml
huggingface/token cookies.txt key4.db .bash_history .zsh_history .psql_history google-credentials.json wallet.dat
.google_authenticator key.properties gha-creds-1f.json token.json hf_token openai_key.txt creds.json x.agekey
app/etc/env.php airflow.cfg cluster.rkestate bitwarden_export_1.csv bot.session .clasprc.json
"""
NO_CREDENTIALS = f"""
{ORDINARY} .env.example environment id_rsa.pub known_keys.md monkey.py src/key.ts keyboard.json public.crt
"""


@pytest.fixture
def policy(tmp_path):
    return RulePolicy([str(tmp_path)], mode="edit", user_rules=[PermissionRule("write", "allow")])


def variants(name):
    """As it lies in the root, in nested folders, and as a disk may spell it that does not tell the cases apart."""
    return name, f"packages/a/{name}", name.upper(), f"packages/A/{name.title()}"


def test_at_least_as_many_names_as_are_promised():
    assert len(RUNS_BY_ITSELF.split()) >= 150
    assert len(CREDENTIALS.split()) >= 80
    assert len(ORDINARY.split()) >= 60


def test_what_runs_by_itself_is_asked_before_it_is_written(policy, tmp_path):
    unasked = []
    for name in RUNS_BY_ITSELF.split():
        for path in variants(name):
            verdict = policy.judge(Deed("write", ToolKind.EDIT, writes=(f"{tmp_path}/{path}",)))
            if not isinstance(verdict, Ask) or " is protected: " not in verdict.reason or verdict.session:
                unasked.append(path)
    assert unasked == []


def test_ordinary_names_are_written_and_read_without_a_question(policy, tmp_path):
    asked = []
    for name in ORDINARY.split():
        for path in (f"{tmp_path}/{name}", f"{tmp_path}/packages/a/{name}"):
            deeds = Deed("write", ToolKind.EDIT, writes=(path,)), Deed("read", ToolKind.READ, reads=(path,))
            asked += [(name, deed.tool) for deed in deeds if word(policy.judge(deed)) != "allow"]
    assert asked == []


def test_credentials_in_the_workspace_are_asked_before_they_are_read(policy, tmp_path):
    unasked = []
    for name in CREDENTIALS.split():
        for path in variants(name):
            verdict = policy.judge(Deed("read", ToolKind.READ, reads=(f"{tmp_path}/{path}",)))
            if not isinstance(verdict, Ask) or " may contain " not in verdict.reason or verdict.session:
                unasked.append(path)
    assert unasked == []
    assert [name for name in NO_CREDENTIALS.split() if what_secret(f"/w/{name}")] == []


def test_every_way_to_a_credential_judges_alike(tmp_path):
    """The tools that read, a search of the folder above, an attachment, and a command that a rule covers."""
    policy = RulePolicy([str(tmp_path)], user_rules=[PermissionRule("terminal", "allow", command="cat *")])
    agreeing = {}
    for name in CREDENTIALS.split():
        path = f"{tmp_path}/{name}"
        read, search = (Deed(tool, ToolKind.READ, reads=(path,)) for tool in ("read", "search"))
        line = Deed("terminal", ToolKind.EXECUTE, command=f"cat {name}", cwd=str(tmp_path))
        judged = [word(policy.judge(deed)) == "ask" for deed in (read, search, line)]
        agreeing[name] = [*judged, policy.is_withheld(path), policy.is_secret(path)]
    assert {name: ways for name, ways in agreeing.items() if not all(ways)} == {}


def test_the_question_says_what_is_triggered_and_what_may_be_held(policy, tmp_path):
    def reason(deed):
        verdict = policy.judge(deed)
        assert isinstance(verdict, Ask)
        return verdict.reason.replace(str(tmp_path), "")

    def write(name):
        return reason(Deed("write", ToolKind.EDIT, writes=(f"{tmp_path}/{name}",)))

    def read(name):
        return reason(Deed("read", ToolKind.READ, reads=(f"{tmp_path}/{name}",)))

    assert write(".bashrc.d/a") == "`/.bashrc.d/a` is protected: shells run it when they start or end."
    assert write("azure-pipelines.yaml") == (
        "`/azure-pipelines.yaml` is protected: it runs elsewhere as soon as it is pushed, with its own keys."
    )
    assert write("id_rsa") == "`/id_rsa` is protected: it may contain private keys."
    assert read("id_rsa") == "`/id_rsa` may contain private keys, which the model would see."
    assert read("a.tfstate") == "`/a.tfstate` may contain keys of a cloud account, which the model would see."


def test_a_link_keeps_what_its_name_says(policy, tmp_path):
    """A link of a protected name to a plain file, and a plain one to a protected file."""
    plain = str(tmp_path / "plain")
    for name in (".envrc", "id_rsa"):
        assert word(policy.judge(Deed("write", ToolKind.EDIT, writes=(plain, f"{tmp_path}/{name}")))) == "ask"
    assert word(policy.judge(Deed("read", ToolKind.READ, reads=(plain,), read_as=(f"{tmp_path}/id_rsa",)))) == "ask"
    assert word(policy.judge(Deed("read", ToolKind.READ, reads=(plain,), read_as=(f"{tmp_path}/notes",)))) == "allow"
    assert word(policy.judge(Deed("read", ToolKind.READ, reads=(plain,), read_as=("/elsewhere/notes",)))) == "allow"


def test_a_file_that_a_link_of_a_protected_name_leads_to_is_asked_about(policy, tmp_path):
    for folder in (".git/hooks", "scripts", "docs/vs", ".github/workflows", "ci", "packages/a/tools", ".husky"):
        (tmp_path / folder).mkdir(parents=True)
    for link, target in (
        (".git/hooks/pre-commit", "../../scripts/check.sh"),
        (".vscode", "docs/vs"),
        (".github/workflows/x.yml", "../../ci/x.yml"),
        ("packages/a/.envrc", "tools/environment"),
        ("packages/a/.husky", f"{tmp_path}/packages/a/tools/../tools/husky"),
        ("README", "README.md"),
    ):
        (tmp_path / link).symlink_to(target)

    def verdict(name):
        return word(policy.judge(Deed("write", ToolKind.EDIT, writes=(f"{tmp_path.resolve()}/{name}",))))

    linked = [
        "scripts/check.sh",
        "Scripts/Check.sh",
        "docs/vs/tasks.json",
        "docs/vs/new/x",
        "ci/x.yml",
        "packages/a/tools/environment",
    ]
    assert [name for name in [*linked, "packages/a/tools/husky/pre-push"] if verdict(name) != "ask"] == []
    plain = ["scripts/other.sh", "docs/x.json", "ci/y.yml", "packages/a/tools/x", "README.md", "tools/environment"]
    assert [name for name in plain if verdict(name) != "allow"] == []


def test_looking_for_links_ends_in_a_large_project(policy, tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "_MOST_LOOKED_AT", 200)
    deed = Deed("write", ToolKind.EDIT, writes=(f"{tmp_path.resolve()}/a/b/c",))

    def work(folders):
        for number in range(folders):
            (tmp_path / f".store/{number}").mkdir(parents=True, exist_ok=True)
            for name in range(10):
                (tmp_path / f".store/{number}/{name}").touch()
        return lines_run(lambda: policy.judge(deed))

    some = work(10)
    assert work(100) < 4 * some


def test_no_name_stands_in_the_file_twice_and_each_is_found():
    groups = risky_names()
    for kind in (groups.protected, groups.secret):
        names = [name for group in kind for name in group.spelled()]
        assert sorted({name for name in names if names.count(name) > 1}) == []
    for group in groups.protected:
        missing = [name for name in group.spelled() if not why_protected(example(name))]
        assert (group.title, missing) == (group.title, [])
    for group in groups.secret:
        missing = [name for name in group.spelled() if not what_secret(example(name))]
        assert (group.title, missing) == (group.title, [])


def example(name):
    """A path that the name is about."""
    plain = name.replace("*", "x").replace("?", "x") + ("inside" if name.endswith("/") else "")
    return plain if plain.startswith("/") else f"/w/{plain}"


def test_looking_a_path_up_costs_little(tmp_path):
    """A line of a shell has hundreds of words: each is looked up. Beside as many look-ups of a file on disk."""
    paths = [f"{tmp_path}/some/folder/of/it/file-{number}.py" for number in range(2000)]
    assert not why_protected(paths[0])

    def cost(work):
        begun = time.process_time()
        for path in paths:
            work(path)
        return time.process_time() - begun

    assert cost(what_secret) < 30 * cost(os.path.lexists) + 0.05


def documented(groups: tuple[Group, ...]) -> list[str]:
    rows = []
    for group in groups:
        names = " ".join(f"`{name}`" for name in group.names.split())
        if group.below:
            names += f", in each of {' '.join(f'`{folder}/`' for folder in group.below.split())}"
        rows.append(f"| {group.title}: {group.why or group.what} | {names} |")
    return rows


@pytest.mark.parametrize(("heading", "kind"), [("Secrets", "secret"), ("Protected paths", "protected")])
def test_the_documentation_lists_every_name(heading, kind):
    section = DOCUMENT.read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    table = [line for line in section.splitlines() if line.startswith("| ") and "`" in line]
    assert table == documented(getattr(risky_names(), kind))
