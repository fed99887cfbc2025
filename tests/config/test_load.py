"""Reading config.toml: what it means, and how each mistake is told."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from crow.config.load import load_settings
from crow.config.settings import (
    TOOLS,
    Limits,
    McpServerSettings,
    ModelSettings,
    PermissionRule,
    PermissionSettings,
    ProviderSettings,
    Settings,
    TerminalSettings,
    WebSettings,
)
from crow.config.toml import toml_key, toml_string
from crow.errors import ConfigError

LOCAL = ProviderSettings(
    type="openai",
    base_url="http://127.0.0.1:8080/v1",
    api_key_env="LOCAL_KEY",
    models={"qwen3-coder": ModelSettings(context_window=65536, images=False)},
)

EVERYTHING = """\
model = "local/qwen3-coder"            # provider/model
mode = "edit"
[providers.local]
type = "openai"
base_url = "http://127.0.0.1:8080/v1"
api_key_env = "LOCAL_KEY"
[providers.local.models.qwen3-coder]
context_window = 65536
images = false
[terminal]
use_client = false
timeout = 60
[web]
search = "searxng"
url = "http://search.lan"
allow_private = ["search.lan"]
[mcp_servers.docs]
command = "docs-server"
args = ["--stdio"]
[[permission.rules]]
tool = "terminal"
command = "npm test *"
decision = "allow"
[limits]
model_calls = 7
"""


def load(folder: Path, text: str | bytes) -> Settings:
    (folder / "config.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_settings(str(folder))


def test_without_a_file_there_are_the_defaults(tmp_path: Path) -> None:
    assert load_settings(str(tmp_path / "nowhere")) == Settings()
    assert load(tmp_path, "") == Settings()


def test_a_full_file(tmp_path: Path) -> None:
    assert load(tmp_path, EVERYTHING) == Settings(
        model="local/qwen3-coder",
        mode="edit",
        providers={"local": LOCAL},
        terminal=TerminalSettings(use_client=False, timeout=60),
        web=WebSettings(search="searxng", url="http://search.lan", allow_private=["search.lan"]),
        mcp_servers={"docs": McpServerSettings(command="docs-server", args=["--stdio"])},
        permission=PermissionSettings(rules=[PermissionRule(tool="terminal", decision="allow", command="npm test *")]),
        limits=Limits(model_calls=7),
    )


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(tmp_path: Path) -> None:
    assert load(tmp_path, b'\xef\xbb\xbfmodel = "a/b"\r\nmode = "plan"\r\n') == Settings(model="a/b", mode="plan")


ALONE = 'expected a host alone, like "docs.python.org", or all below one, like "*.python.org"'
NO_TOOLS = [
    (
        name,
        (
            f"{hint}. Available: {', '.join(TOOLS)}; and those of MCP servers, such as mcp__server__tool or "
            "mcp__server__*."
        ),
    )
    for name, hint in (
        ("teminal", ' (did you mean "terminal"?)'),
        ("Terminal", ' (did you mean "terminal"?)'),
        ("webfetch", ' (did you mean "web_fetch"?)'),
        ("bash", ' (did you mean "terminal"?)'),
        ("mcp_docs_x", ""),
        ("mcp__docs", ""),
        ("tx*", ""),
    )
]
RULE = "[[permission.rules]]\ntool = 'web_fetch'\ndecision = 'deny'\nhost = "
USUAL = "expected the address in its usual form,"
HOSTS = [
    ("", f"{ALONE}, found ''"),
    ("*example.com", f"{ALONE}, found '*example.com'"),
    ("a.*.com", f"{ALONE}, found 'a.*.com'"),
    ("a..com", f"{ALONE}, found 'a..com'"),
    ("example.com/path", f"{ALONE}, found 'example.com/path'"),
    ("127.0.0.0/8", f"{ALONE}, found '127.0.0.0/8'"),
    ("me@example.com", f"{ALONE}, found 'me@example.com'"),
    ("http://example.com", f"{ALONE}, without a scheme or a port, found 'http://example.com'"),
    ("example.com:80", f"{ALONE}, without a scheme or a port, found 'example.com:80'"),
    ("1.2.3.4.5", f"{ALONE}, found '1.2.3.4.5'"),
    ("127.1", f"{USUAL} \"127.0.0.1\", found '127.1'"),
    ("0x7f000001", f"{USUAL} \"127.0.0.1\", found '0x7f000001'"),
    ("0:0:0:0:0:0:0:1", f"{USUAL} \"::1\", found '0:0:0:0:0:0:0:1'"),
    ("bücher.example", "expected the host's ASCII form, which begins with xn--, found 'bücher.example'"),
]

AN_ADDRESS = "expected an address that begins with http:// or https:// and a host"
A_VARIABLE = "expected the name of a variable, like LOCAL_KEY; put a key itself in api_key"
ONE_COMMAND = "expected a single command, found"
MISTAKES = [
    ("mode = ", ", line 1: invalid value."),
    ("mode = 'ask'\n\n[providers.x\n", ", line 3, column 13: expected ']' at the end of a table declaration."),
    ("[a]\n[a]\n", ", line 2, column 3: cannot declare ('a',) twice."),
    ('modle = "x"', ': modle: unknown key (did you mean "model"?).'),
    (
        "zzz = 1",
        (
            ": zzz: unknown key (known here: model, mode, providers, terminal, web, mcp_servers, permission, limits, "
            "budget, chat, faces)."
        ),
    ),
    ('[chat]\nnotify = "loud"', ': chat.notify: expected "bell", "desktop" or "off", found "loud".'),
    ("[chat]\nnotify_after = -1", ": chat.notify_after: expected a number of at least 0, found -1."),
    ('mode = "aks"', ': mode: expected "ask", "edit", "plan" or "auto", found "aks" (did you mean "ask"?).'),
    ("mode = 3", ': mode: expected "ask", "edit", "plan" or "auto", found 3.'),
    ("model = 2026-01-01", ": model: expected a string in quotes, found a date or time."),
    ("providers = 1", ": providers: expected a table, found 1."),
    ("[providers]\nlocal = 'x'", ": providers.local: expected a table, found a string."),
    (
        "[providers.local]\ntype = 'opnai'",
        ': providers.local.type: expected "openai", "anthropic" or "scripted", found "opnai" (did you mean "openai"?).',
    ),
    ("[providers.local]", ': providers.local.type: expected "openai", "anthropic" or "scripted", found nothing.'),
    (
        "[providers.'a b']\ntype = 'openai'\nbaseurl = 'http://x'",
        ': providers."a b".baseurl: unknown key (did you mean "base_url"?).',
    ),
    (
        "[providers.local]\ntype = 'openai'",
        ': providers.local.base_url: expected the server\'s address, like "http://127.0.0.1:8080/v1".',
    ),
    (
        "[providers.local]\ntype = 'openai'\nbase_url = 'localhost:8080'",
        ": providers.local.base_url: expected an address that begins with http:// or https:// and a host.",
    ),
    (
        "[providers.x]\ntype = 'scripted'",
        ': providers.x.script: expected the path of a script, as the type is "scripted".',
    ),
    (
        "[providers.anthropic]\ntype = 'anthropic'\napi_key = 'a'\napi_key_env = 'B'",
        ": providers.anthropic: expected one of api_key, api_key_env and api_key_command, not several.",
    ),
    (
        "[providers.anthropic]\ntype = 'anthropic'\napi_key_header = 'a key'",
        ": providers.anthropic.api_key_header: expected the name of a header, like api-key.",
    ),
    (
        "[providers.anthropic]\ntype = 'anthropic'\nheaders = { 'a b' = 'x' }",
        ": providers.anthropic.headers: expected the name of a header, found 'a b'.",
    ),
    (
        "[providers.anthropic]\ntype = 'anthropic'\nheaders = { a = \"x\\ny\" }",
        ": providers.anthropic.headers.a: expected plain ASCII text without line breaks.",
    ),
    (
        "[providers.anthropic]\ntype = 'anthropic'\napi_key = 'a'\nheaders = { Authorization = 'Bearer b' }",
        ": providers.anthropic.headers.Authorization: remove this header or the key: both carry credentials.",
    ),
    (
        "[providers.openai]\ntype = 'openai'\nwire = 'reponses'",
        ': providers.openai.wire: expected "chat" or "responses", found "reponses" (did you mean "responses"?).',
    ),
    (
        "[providers.'a/b']\ntype = 'anthropic'",
        ': providers."a/b": expected a name without "/", as models are called provider/model.',
    ),
    (
        "[providers.p]\ntype = 'anthropic'\n[providers.p.models.'m.1']\ncontext_window = -5",
        ': providers.p.models."m.1".context_window: expected a whole number of at least 1, found -5.',
    ),
    ("[limits]\nmodel_calls = 0", ": limits.model_calls: expected a whole number of at least 1, found 0."),
    ("[limits]\nretry_wait = -1", ": limits.retry_wait: expected a number of at least 0, found -1."),
    ("[limits]\nstream_idle = nan", ": limits.stream_idle: expected a number above 0, found nan."),
    ("[limits]\nmcp_call = true", ": limits.mcp_call: expected a number above 0, found true."),
    ("[terminal]\nuse_client = 'yes'", ": terminal.use_client: expected true or false, found a string."),
    ("[web]\nurl = 'http://[::1'", f": web.url: {AN_ADDRESS}, found one that cannot be read."),
    ("[web]\nurl = 'http://a.example:99999'", f": web.url: {AN_ADDRESS}, found one that cannot be read."),
    ("[web]\nurl = 'kagi.com'", f": web.url: {AN_ADDRESS}."),
    ("[web]\nurl = 'ftp://kagi.com'", f": web.url: {AN_ADDRESS}."),
    ("[web]\nurl = 'https:///search'", f": web.url: {AN_ADDRESS}."),
    ("[web]\nurl = 'https://a b'", f": web.url: {AN_ADDRESS}."),
    ("[web]\nallow_private = 'a'", ": web.allow_private: expected a list in [ ], found a string."),
    ("[web]\nallow_private = ['a', 2]", ": web.allow_private[1]: expected a string in quotes, found 2."),
    (
        "[[permission.rules]]\ntool = 'terminal'\ndecision = 'allow'\ncommand = 'a'\npath = 'b'",
        ": permission.rules[0]: expected at most one of command, path and host, found command and path.",
    ),
    (
        "[[permission.rules]]\ntool = 'mcp__a__b'\ndecision = 'allow'\ndigest = '1'",
        ": permission.rules[0].digest: expected only command, path or host; leave it out.",
    ),
    *(
        (
            f"[[permission.rules]]\ntool = '{name}'\ndecision = 'deny'",
            f': permission.rules[0].tool: unknown tool "{name}"{said}',
        )
        for name, said in NO_TOOLS
    ),
    *(
        (
            f"[[permission.rules]]\ntool = '{tool}'\ndecision = 'deny'\n{scope} = 'x'",
            (
                f": permission.rules[0]: {tool} has no {scope}, so the rule would have no effect; "
                f"expected one of the tools that have one: {tools}."
            ),
        )
        for tool, scope, tools in (
            ("terminal", "path", "read, write, edit, find, search"),
            ("read", "command", "terminal"),
            ("edit", "host", "web_fetch, web_search"),
            ("web_*", "path", "read, write, edit, find, search"),
        )
    ),
    (
        "[[permission.rules]]\ntool = 'terminal'\ndecision = 'deny'\ncommand = ''",
        ": permission.rules[0].command: expected a command; leave it out to mean every call of the tool.",
    ),
    (f"{RULE}'*'", ": permission.rules[0].host: expected a host; leave it out to mean every host."),
    *((f"{RULE}'{host}'", f": permission.rules[0].host: {said}.") for host, said in HOSTS),
    *((f"[web]\nallow_private = ['{host}']", f": web.allow_private[0]: {said}.") for host, said in HOSTS),
    (
        "[[permission.rules]]\ntool = 'read'\ndecision = 'ask'\n[[permission.rules]]\ntool = 'read'",
        ': permission.rules[1].decision: expected "allow", "ask" or "deny", found nothing.',
    ),
    ("model = 'qwen3'", ": model: expected provider/model, like \"local/qwen3-coder\", found 'qwen3'."),
    ("model = 'p/'", ": model: expected provider/model, like \"local/qwen3-coder\", found 'p/'."),
    *(
        (f"{table}\napi_key_env = 'sk-1-secret'", f": {key}.api_key_env: {A_VARIABLE}.")
        for table, key in (("[providers.p]\ntype = 'anthropic'", "providers.p"), ("[web]", "web"))
    ),
    (
        "[providers.p]\ntype = 'openai'\nbase_url = 'http://h:99999'",
        f": providers.p.base_url: {AN_ADDRESS}, found one that cannot be read.",
    ),
    (
        "[providers.p]\ntype = 'anthropic'\n[providers.p.models.m]\nprice_input = inf\nprice_output = 1",
        ": providers.p.models.m.price_input: expected a number of at least 0, found inf.",
    ),
    *(
        (
            f"[[permission.rules]]\ntool = 'terminal'\ndecision = 'deny'\ncommand = \"{command}\"",
            f": permission.rules[0].command: {said}.",
        )
        for command, said in (
            (" ", "expected a command; leave it out to mean every call of the tool"),
            ("ls | wc", f'{ONE_COMMAND} "|"; write one rule for each'),
            ("rm; ls", f'{ONE_COMMAND} ";"; write one rule for each'),
            ("a\\nb", f"{ONE_COMMAND} a line break; write one rule for each"),
        )
    ),
    ("[mcp_servers.docs]\nargs = []", ": mcp_servers.docs: expected either command or url."),
    (b"mode = 'ask'\nmodel = '\xff'", ", line 2: expected UTF-8 text, found a byte that is not."),
]


@pytest.mark.parametrize(("text", "message"), MISTAKES)
def test_a_mistake_is_one_clear_sentence(tmp_path: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    assert str(caught.value) == f"{tmp_path}/config.toml{message}"


def test_a_wrongly_typed_key_is_not_quoted(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, "[providers.p]\ntype = 'anthropic'\napi_key = ['sk-secret']")
    assert str(caught.value).endswith("providers.p.api_key: expected a string in quotes, found a list.")


def test_deep_nesting_is_an_error_not_a_crash(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nested too deeply"):
        load(tmp_path, "a = " + "[" * 5000)


def test_a_folder_in_the_files_place(tmp_path: Path) -> None:
    (tmp_path / "config.toml").mkdir()
    with pytest.raises(ConfigError, match=r"/config\.toml .*: is a directory"):
        load_settings(str(tmp_path))


def test_a_pipe_in_the_files_place_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.toml")
    with pytest.raises(ConfigError, match=r"/config\.toml .*regular file"):
        load_settings(str(tmp_path))


def test_a_file_that_may_not_be_read() -> None:
    # The superuser may read anything, so a child without its rights tries.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        path = Path(folder) / "config.toml"
        path.write_bytes(b"")
        path.chmod(0)
        code = (
            "import os, sys\n"
            "from crow.config.load import load_settings\n"
            "from crow.errors import ConfigError\n"
            "if os.geteuid() == 0: os.setuid(65534)\n"
            "try: load_settings(sys.argv[1])\n"
            "except ConfigError as error: print(error)\n"
        )
        said = subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True)
        complaint = f"{path} cannot be read: permission denied. Make it yours: chmod 600 {path}\n"
        assert (said.stdout, said.stderr) == (complaint, "")


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    settings = load(tmp_path, "[providers.s]\ntype = 'scripted'\nscript = 'plays/a.toml'\nrecord = '/tmp/r.jsonl'\n")
    assert settings.providers == {
        "s": ProviderSettings(type="scripted", script=str(tmp_path / "plays" / "a.toml"), record="/tmp/r.jsonl")
    }


def test_a_vendors_address_and_variable_need_not_be_spelled_out(tmp_path: Path) -> None:
    settings = load(tmp_path, "[providers.groq]\ntype = 'openai'\n[providers.claude]\ntype = 'anthropic'\n")
    assert settings.providers == {
        "groq": ProviderSettings(type="openai", base_url="https://api.groq.com/openai/v1", api_key_env="GROQ_API_KEY"),
        "claude": ProviderSettings(
            type="anthropic", base_url="https://api.anthropic.com", api_key_env="ANTHROPIC_API_KEY"
        ),
    }


def test_a_vendors_key_never_goes_to_another_address_by_default(tmp_path: Path) -> None:
    settings = load(tmp_path, "[providers.openai]\ntype = 'openai'\nbase_url = 'https://proxy.example/v1'\n")
    assert settings.providers["openai"].api_key_env == ""


def test_a_model_of_an_unconfigured_provider_is_no_mistake(tmp_path: Path) -> None:
    assert load(tmp_path, 'model = "ollama/qwen3"').model == "ollama/qwen3"


def test_keys_and_strings_as_toml_writes_them() -> None:
    assert (toml_key("a-b_1"), toml_key("a b"), toml_key("")) == ("a-b_1", '"a b"', '""')
    assert toml_string('say "hi"\n\\\x7f') == '"say \\"hi\\"\\n\\\\\\u007f"'


def test_loading_costs_no_import_until_there_is_a_file(tmp_path: Path) -> None:
    code = (
        "import sys; from crow.config.load import load_settings; load_settings(sys.argv[1]);"
        "print(*sorted({'tomllib', 'asyncio', 'difflib', 'argparse'} & set(sys.modules)))"
    )
    said = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, env={"PATH": os.defpath}
    )
    assert (said.stdout, said.stderr) == ("\n", "")


@pytest.mark.parametrize(
    "host", ["example.com", "*.Example.com", "localhost", "my_host", "a-b.lan.", "127.0.0.1", "::1", "[::1]"]
)
def test_a_host_is_a_name_an_address_or_all_below_a_name(tmp_path: Path, host: str) -> None:
    settings = load(tmp_path, f"[web]\nallow_private = ['{host}']\n{RULE}'{host}'")
    assert (settings.web.allow_private, settings.permission.rules[0].host) == ([host], host)


@pytest.mark.parametrize("name", [*TOOLS, "*", "web_*", "terminal*", "mcp__*", "mcp__docs__*", "mcp__my-docs__x", "m*"])
def test_a_rule_may_name_any_tool_there_is_or_may_be(tmp_path, name):
    (tmp_path / "config.toml").write_text(f"[[permission.rules]]\ntool = '{name}'\ndecision = 'deny'\n")
    assert load_settings(str(tmp_path)).permission.rules == [PermissionRule(name, "deny")]


def test_the_tools_that_rules_may_name_are_those_that_there_are():
    source = Path(__file__).parent.parent.parent / "src" / "crow"
    made = re.findall(r'ToolSpec\(\s*"(\w+)"', "".join(path.read_text() for path in (source / "tools").glob("*.py")))
    named = re.findall(
        r'^NAME = "(\w+)"', "".join(path.read_text() for path in (source / "mcp/client").glob("*.py")), re.M
    )
    assert sorted(TOOLS) == sorted([*made, *named])


def test_headers_keys_and_fields_of_a_provider(tmp_path: Path) -> None:
    text = """
        [providers.openai]
        type = "openai"
        wire = "chat"
        api_key_command = "print-a-key --for openai"
        api_key_header = "X-Key"
        headers = { X-Team = "${TEAM}" }
        extra_body = { provider = { order = ["a", "b"] }, top_k = 3 }
        [providers.anthropic]
        type = "anthropic"
        headers = { Authorization = "Bearer ${TOKEN}" }
    """
    (tmp_path / "config.toml").write_text(text)
    providers = load_settings(str(tmp_path)).providers
    assert providers["openai"] == ProviderSettings(
        type="openai",
        base_url="https://api.openai.com/v1",
        wire="chat",
        api_key_command="print-a-key --for openai",
        api_key_header="X-Key",
        headers={"X-Team": "${TEAM}"},
        extra_body={"provider": {"order": ["a", "b"]}, "top_k": 3},
    )
    assert providers["anthropic"].api_key_env == ""  # its header is the key
