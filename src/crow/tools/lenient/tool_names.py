"""The tool that is meant by a name that no tool has: only where it can be but one.

Models add what they were trained with: a namespace, a number, special tokens of their chat template, or the name that
the tool has in other agents. Loaded only where the exact name is not known.
"""

import difflib
import re
import unicodedata
from collections.abc import Iterable, Iterator

from crow.tools.lenient.argument_names import squeezed

_TOKENS = re.compile(r"<\|?[^<>]*\|?>?|\[/?[A-Z_]+\]")
_TO = re.compile(r"\b(?:to|function|name|tool)=[\"']?([\w.:-]+)")
_PREFIX = re.compile(
    r"^(?:(?:functions?|default_api|tools?|tool_?calls?|call|mcp|api|crow|builtin|default|namespace|assistant|commentary"
    r"|repo_browser|fs|file_?system|workspace)(?:[.:/]+|__)|(?:tool|fs)_)",
    re.IGNORECASE,
)
_SUFFIX = re.compile(r"(?:[:.#/_-]+\d{1,4}|[_.-]?(?:tool|function)|\(.*\)?)$", re.IGNORECASE | re.DOTALL)

_OTHER_NAMES: dict[str, str] = {
    "read": "readfile view viewfile openfile cat fileread getfilecontents readtextfile getfile showfile "
    "readfilecontent readfilecontents ls listdir listdirectory listfiles listfolder",
    "write": "writefile createfile filewrite savefile newfile writetofile create overwritefile",
    "edit": "editfile strreplace multiedit fileedit searchreplace replaceinfile stringreplace replace modifyfile "
    "searchandreplace editblock editfiles applyedit applyedits",
    "find": "glob findfiles globsearch filesearch globfiles findfile fileglob findpath globfilesearch",
    "search": "grep greps searchcode codesearch rg ripgrep grepsearch searchfilecontent searchtext searchcontent "
    "contentsearch searchinfiles",
    "terminal": "bash shell sh runcommand execute executecommand exec execcommand runterminalcmd runshellcommand "
    "runbash shellcommand runinterminal command containerexec localshell executebash bashcommand runshell "
    "terminalrun console cmd",
    "terminal_read": "bashoutput shelloutput getterminaloutput readterminal taskoutput",
    "terminal_stop": "killshell killbash stopterminal killterminal taskstop",
    "plan": "todowrite updateplan todo todos writetodos updatetodolist todolist manageplan managetodolist",
    "ask": "askuser askuserquestion askfollowupquestion askquestion question",
    "web_search": "searchweb googlesearch googlewebsearch internetsearch",
    "web_fetch": "fetch fetchurl webfetch fetchwebpage browse openurl readurl geturl urlfetch",
    "task": "agent dispatchagent subagent spawnagent newtask delegate",
    "leave_plan": "exitplanmode exitplan presentplan",
}
_MEANT = {other: tool for tool, names in _OTHER_NAMES.items() for other in names.split()}


def resolve(name: str, offered: Iterable[str]) -> str | None:
    """The offered tool that is meant; None if there is none, or more than one could be."""
    known = list(dict.fromkeys(offered))
    for spelling in spellings(name):
        found = _matches(spelling, known)
        if len(found) == 1:
            return found.pop()
        if found:
            return None
    return None


def means(name: str, tool: str) -> bool:
    """Whether a name that was written down means this tool."""
    return name == tool or resolve(name, [tool]) == tool


def near(name: str, offered: Iterable[str]) -> list[str]:
    """Offered tools that might be meant."""
    known = list(dict.fromkeys(offered))
    written = list(spellings(name))
    found = [tool for spelling in written for tool in sorted(_matches(spelling, known))]
    by_key = {squeezed(tool): tool for tool in known}
    for spelling in written[-1:]:
        found += [by_key[key] for key in difflib.get_close_matches(squeezed(spelling), list(by_key), 3, 0.6)]
        words = {word for word in re.findall(r"[a-z]+", _snake(spelling)) if len(word) > 2}
        found += [tool for tool in known if words & set(re.findall(r"[a-z]+", _snake(tool)))]
    return list(dict.fromkeys(found))[:5]


def spellings(name: str) -> Iterator[str]:
    """The name, with less and less of what may have been added to it."""
    name = unicodedata.normalize("NFKC", name)
    to = _TO.search(name)
    name = (to[1] if to is not None else _TOKENS.sub(" ", name)).strip(" \t\r\n\"'`{}")
    name = name.split()[0] if name.split() else ""
    yield name
    while (shorter := _PREFIX.sub("", name, count=1)) and shorter != name:
        name = shorter
        yield name
    for _ in range(2):
        shorter = _SUFFIX.sub("", name)
        if shorter and shorter != name:
            name = shorter
            yield name


def _matches(name: str, offered: list[str]) -> set[str]:
    key = squeezed(name)
    if not key:
        return set()
    found = {tool for tool in offered if squeezed(tool) == key}
    if found:
        return found
    found = {tool for tool in offered if _MEANT.get(key) == tool}
    # A server's tools bear its name in front of their own.
    ending = f"_{_snake(name)}"
    return found | {tool for tool in offered if tool.startswith("mcp__") and _snake(tool).endswith(ending)}


def _snake(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()).strip("_")
