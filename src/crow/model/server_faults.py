"""What model servers complain of that only their owner can change: how a model was started, or that it was not.

Some of them answer with a status of 500, as if another attempt could succeed.
"""

import re

WITHOUT_TOOLS = (
    "The model or its template knows no tools, which Crow works with: choose another model. Those that `ollama show "
    "MODEL` lists with the capability `tools` have them."
)

# What the server said, and what helps.
REMEDIES: tuple[tuple[str, str], ...] = (
    (r"does not support tools", WITHOUT_TOOLS),
    (r"requires? --jinja|--jinja flag", "Start llama-server with --jinja: without it, no tools can be used."),
    (
        r"enable-auto-tool-choice|tool-call-parser",
        "Start vLLM with --enable-auto-tool-choice --tool-call-parser NAME; its documentation lists the names.",
    ),
    (
        r"requires more system memory|model failed to load|insufficient system (?:memory|resources)",
        "The machine has too little memory for it: choose a smaller model, or start it with a smaller window.",
    ),
    (
        r"no models? (?:is )?loaded|no model loaded",
        "Load a model in the server first (LM Studio: `lms load`, or its page for developers).",
    ),
    (r"try pulling it first", "Run `ollama pull MODEL` first; `crow models` lists those that are there."),
)


def remedy_for(said: str) -> str:
    """What helps against such a complaint; empty if it is none of these."""
    return next((remedy for pattern, remedy in REMEDIES if re.search(pattern, said, re.IGNORECASE)), "")
