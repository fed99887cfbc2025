"""Other names for the arguments of our tools: those that models know from the tools of other agents."""

import re
from collections.abc import Mapping

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
                "expected_replacements": "expectedreplacements expectedoccurrences",
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
