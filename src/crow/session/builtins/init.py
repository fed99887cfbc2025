"""/init: the model is asked to write the project's AGENTS.md."""

from collections.abc import Sequence

from crow.events import CommandInfo, Sent, SentText
from crow.session.commands import Prompt
from crow.turn.conversation import TurnIds

WRITE_AGENTS_MD = """\
Look at this project and write its AGENTS.md, in the working directory: what an agent has to know to work here.

- First read what is there: the README, the build files, the CI configuration, the layout of the source, and AGENTS.md
  itself if there is one. If there is, keep what still holds and mend what does not.
- Say how to build, how to run all tests and how to run one, how to check and format: the exact commands, found in the
  project, not guessed.
- Say how the source is laid out and what a change has to respect: conventions that are not plain from the code alone.
- Leave out what any agent knows, and what the README already says well. At most about 60 lines.
"""


class Init:
    info = CommandInfo("init", "Looks at the project and writes AGENTS.md, or mends it", "[what matters most]")

    async def run(self, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> Prompt:
        wish = f"\nThe user adds: {arguments}\n" if arguments else ""
        return Prompt((SentText(WRITE_AGENTS_MD + wish), *rest))
