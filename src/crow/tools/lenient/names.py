"""Other agents' names for our tools and their arguments, and which tool is meant by a name that no tool has.

A tool's name that no tool has stands for one only where it can be but one. Models add what they were trained with: a
namespace, a number, special tokens of their chat template. Loaded only for calls that are not as they should be.
"""

import difflib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from crow.messages import SERVER_TOOL
from crow.visible import one_line

_NO_LETTERS = re.compile(r"[^a-z0-9]+")


def squeezed(name: str) -> str:
    """A name without the ways in which it can be spelled: `filePath` and `file_path` are the same."""
    return _NO_LETTERS.sub("", name.lower())


def _words(text: str) -> list[str]:
    return text.split()


def _by_alias(aliases: Mapping[str, str]) -> dict[str, str]:
    return {alias: real for real, written in aliases.items() for alias in _words(written)}


_FILE = (
    "filepath file filename targetfile targetpath pathname fname absolutepath absolutefilepath relativepath fullpath "
    "uri fileuri"
)
_FOLDER = "dir directory folder dirpath directorypath folderpath root searchpath basepath targetdirectory"

FOLDER_NAMES = frozenset(_words(_FOLDER))

ALIASES: dict[str, dict[str, str]] = {
    tool: _by_alias(aliases)
    for tool, aliases in {
        "read": {
            "path": f"{_FILE} {_FOLDER} relativeworkspacepath paths files",
            "offset": "startline start fromline linestart firstline lineoffset line linenumber startlineoneindexed",
            "limit": "maxlines numlines nlines linecount linelimit count numberoflines",
        },
        "write": {
            "path": _FILE,
            "content": "contents text filetext filecontent filecontents code body data newcontent source codecontent",
            "append": "isappend appendmode",
        },
        "edit": {"path": _FILE, "edits": "edit changes replacements replaces modifications"},
        "find": {
            "pattern": "glob globpattern query name filename filenamepattern filepattern search file",
            "path": _FOLDER,
        },
        "search": {
            "pattern": "query regex regexp searchpattern searchterm searchstring search text q expression",
            "path": f"{_FOLDER} file filepath",
            "glob": "include includepattern globpattern fileglob filepattern includes fileglobpattern",
            "context": "contextlines linesofcontext c",
            "mode": "outputmode output",
        },
        "terminal": {
            "command": "cmd commandline script bash shell shellcommand bashcommand code",
            "cwd": "workdir workingdirectory workingdir dir directory folder currentworkingdirectory",
            "timeout": "timeoutseconds timeoutsec timeoutsecs timeouts timelimit",
            "background": "runinbackground isbackground inbackground detached detach async",
        },
        "terminal_read": {
            "id": "bashid shellid terminalid taskid processid commandid sessionid backgroundid",
            "wait": "timeout waitseconds",
        },
        "terminal_stop": {"id": "bashid shellid terminalid taskid processid commandid sessionid backgroundid"},
        "plan": {"entries": "todos items steps plan tasks todolist todo list"},
        "ask": {"question": "prompt message text query", "options": "choices answers suggestions"},
        "web_search": {"query": "q search searchterm searchquery keywords pattern text queries"},
        "web_fetch": {"url": "uri link address href urls website", "offset": "start startindex"},
        "task": {
            "prompt": "task instructions instruction message query request",
            "title": "description name summary",
            "kind": "subagenttype agenttype type agent subagent mode",
        },
        "leave_plan": {"plan": "text content message markdown"},
        "find_tools": {"query": "q search text keywords pattern name"},
    }.items()
}
"""By tool: the argument that is meant, by another name for it, squeezed."""

ITEM_ALIASES: dict[str, dict[str, dict[str, str]]] = {
    "edit": {
        "edits": _by_alias(
            {
                "old": "old oldstring oldstr oldtext oldcode oldcontent search searchtext searchstring find original "
                "originaltext before",
                "new": "new newstring newstr newtext newcode newcontent replace replacement replacewith replacetext "
                "replacestring updated updatedtext after",
                "all": "all replaceall alloccurrences allowmultiple global everyoccurrence",
            }
        )
    },
    "plan": {
        "entries": _by_alias(
            {
                "content": "step title text description task name todo item",
                "status": "state progress",
                "priority": "importance",
            }
        )
    },
}
"""By tool and argument: the same, for the objects in a list."""

VALUES: dict[str, dict[str, str]] = {
    "status": {
        **dict.fromkeys(("done", "complete", "finished", "checked", "closed"), "completed"),
        **dict.fromkeys(("todo", "notstarted", "open", "planned", "waiting", "new"), "pending"),
        **dict.fromkeys(("doing", "active", "started", "current", "inprogress", "working"), "in_progress"),
    },
    "priority": {"normal": "medium", "default": "medium"},
    "mode": {
        "fileswithmatches": "files",
        "filesonly": "files",
        "filenames": "files",
        "lines": "content",
        "file": "files",
    },
    "kind": {"explorer": "explore", "generalpurpose": "work", "general": "work", "worker": "work"},
}
"""By argument: the value that is meant, by another word for it, squeezed."""

WRAPPERS = frozenset(
    _words(
        "arguments args argument input inputs parameters params parameter toolinput toolarguments toolargs "
        "toolparameters toolparams kwargs properties payload data request body json value function functioncall "
        "functionarguments functionargs functionparameters toolcalls toolcall call invoke options"
    )
)
"""Names of a field that may hold all the arguments."""
LABELS = frozenset(
    _words("name tool toolname type id callid toolcallid tooluseid function recipient recipientname index")
)
"""What stands beside the arguments in a whole call."""


# --- the tool that is meant by a name that no tool has

_TOKENS = re.compile(r"<\|?[^<>]*\|?>?|\[/?[A-Z_]+\]")
_TO = re.compile(r"\b(?:to|function|name|tool)=[\"']?([\w.:-]+)")
_PREFIX = re.compile(
    r"^(?:(?:functions?|default_api|tools?|tool_?calls?|call|mcp|api|crow|builtin|default|namespace|assistant|commentary"
    r"|repo_browser|fs|file_?system|workspace)(?:[.:/]+|__)|(?:tool|fs)_)",
    re.IGNORECASE,
)
_SUFFIX = re.compile(r"(?:(?<![:.#/_-])[:.#/_-]+\d{1,4}|[_.-]?(?:tool|function)|\(.*\)?)$", re.IGNORECASE | re.DOTALL)

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
    return found | {tool for tool in offered if tool.startswith(SERVER_TOOL) and _snake(tool).endswith(ending)}


def _snake(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()).strip("_")


# --- two names for one argument

_ONE_VALUE = frozenset({"path", "content", "command", "edits", "pattern", "old", "new", "cwd", "url"})
"""Arguments that decide what a call does: of two values for one of them none may be overlooked."""


_BESIDE = FOLDER_NAMES | {"shell", "bash"}
"""Other names that mean something else beside the argument itself: where it is relative to, what runs it."""


def differ(real: str, other: str, value: Any, other_value: Any) -> bool:
    """Whether another name for an argument says something else than the argument itself."""
    if real not in _ONE_VALUE or value == other_value or other_value in ("", []) or other in _BESIDE:
        return False
    if real == "path" and isinstance(value, str) and isinstance(other_value, str):
        one, two = (f"/{each.removeprefix('./').strip('/')}" for each in (value, other_value))
        return not (one.endswith(two) or two.endswith(one))
    return True


def quoted(names: Iterable[str]) -> str:
    return " and ".join(f"`{one_line(name, 60)}`" for name in names)
