"""Every regular expression that text of a model, a page or a server reaches takes time that grows as the text does.

`tests/support/hostile_patterns.py` finds them all, makes texts that are hard for each, and measures how the cost grows.
"""

import json
import subprocess
import sys

import pytest

from crow.cli.render_prose import is_table
from crow.messages import ToolSpec
from crow.model.provider_errors import _words
from crow.model.text_call_syntaxes import parse
from crow.tools.editing.interpretations import inside_fence, other_interpretations
from crow.tools.editing.omissions import left_out
from tests.support.hostile_patterns import PLANTED, grows_too_fast, linear_cost

NOT_LINEAR = {
    "session/journal.py:_LINE_MARK": "reads at most 300 characters of a line",
    "session/journal.py:_LINK": "the same",
    "session/journal.py:_EMPHASIS": "the same",
    "session/journal.py:_CODE": "the same",
    "search/globs.py:_SET": "reads names of at most 512 characters",
    "cli/setup.py:_COMMENT": "reads the settings of the person's own editor",
    "cli/setup.py:_LAST_COMMA": "the same",
    "omissions:_phrases": "the same",
    "model/text_call_readers.py:_GEMMA_KEY": "matches at one place, whoever calls ends if it does not",
    "policy/plain_lines.py:_DOUBLE": "the same",
    "policy/nested_commands.py:_SED_RUNS": "reads at most 2,000 characters",
    "policy/nested_commands.py:_SED_RUNS_TEXT": "the same",
    "search/search_matches.py:_COUNT": "reads what ripgrep counts, which has a null in each line",
    "project/needs_trust.py:VARIABLE": "reads at most 500 characters behind each place",
    "facts:families": "reads at most 200 characters of a name",
    "config/toml.py:sub": "reads what Python says of a wrong file, in one line",
}
"""Those that need not be, and why."""
LEAST_FOUND = 350


def test_every_expression_is_linear() -> None:
    command = [sys.executable, "-m", "tests.support.hostile_patterns", *NOT_LINEAR]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert int(found.pop("")) >= LEAST_FOUND
    planted = {name for name in found if name.startswith("planted:")}
    assert planted == {f"planted:{name}" for name in PLANTED}
    assert {name: text for name, text in found.items() if name not in planted | NOT_LINEAR.keys()} == {}
    assert NOT_LINEAR.keys() <= found.keys(), "one of them is no more"


READ = [ToolSpec("read", "", {"type": "object", "properties": {"path": {"type": "string"}}})]
PARTS = {
    "blanks in a fence": ("```json\n", " ", "x"),
    "fences": ("", "``` ", "x"),
    "blanks in harmony": ("<|channel|>final", " ", "x"),
    "harmony": ("", "<|channel|>final<|message|>a", ""),
    "blanks behind a name": ("read", " \n", "x"),
    "keys of GLM": ("<tool_call>read", "<arg_key>a</arg_key><arg_value>b", ""),
    "values of GLM": ("<tool_call>read", "<arg_key>a</arg_key><arg_value>b</arg_value>x", ""),
    "parameters that end nowhere": ("<function=read>", "<parameter=a>b", "</function>"),
    "half parameters": ("<function=read><parameter=a>b", "<parameter=", ""),
    "ends that are none": ("<function=read><parameter=a>b", "</parameter> ", "x"),
    "calls that end nowhere": ("", "<tool_call>{'a': ", ""),
    "Mistral": ("", "[TOOL_CALLS] ", "x"),
    "comments": ("{ ", "<!-", "-"),
    "tags": ("", "<script", ""),
    "hunks": ("", "@@ a", ""),
    "cells of a table": ("", "| :-: ", "x"),
}


@pytest.mark.parametrize("name", PARTS)
def test_what_reads_replies_edits_and_pages_is_linear(name: str) -> None:
    before, part, after = PARTS[name]
    readers = (
        lambda text: parse(text, READ, whole_reply=True),
        lambda text: list(other_interpretations(text, text, text)),
        lambda text: left_out("a.ts", "", text),
        lambda text: is_table(["|a|", text]),
        inside_fence,
        _words,
    )
    for number, reader in enumerate(readers):
        assert not grows_too_fast(reader, lambda size: before + part * (size // len(part)) + after, linear_cost()), (
            number
        )
