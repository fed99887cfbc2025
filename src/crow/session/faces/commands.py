"""Whose terminal commands run in: the client's own while it is alone, else Crow's, which every face can show."""

from collections.abc import Callable, Mapping, Sequence

from crow.session.faces.face import Face
from crow.workspace.base import Commands, Terminal


class FacesCommands:
    """`faces` gives those that are there now; `local` runs commands on this machine."""

    def __init__(self, local: Commands, faces: Callable[[], Sequence[Face]]) -> None:
        self._local = local
        self._faces = faces

    async def open_terminal(self, command: str, *, cwd: str, environ: Mapping[str, str], output_limit: int) -> Terminal:
        faces = self._faces()
        alone = faces[0].commands if len(faces) == 1 else None
        commands = alone if alone is not None else self._local
        return await commands.open_terminal(command, cwd=cwd, environ=environ, output_limit=output_limit)

    async def close(self) -> None:
        await self._local.close()
