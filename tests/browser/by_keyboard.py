"""Operates the page by keys alone, and knows each thing in its sources that a mouse can operate."""

import re
from collections.abc import Iterator

from playwright.async_api import Locator

from tests.browser.page import Visit, expect
from tests.support.page_build import ROOT

SOURCES = ROOT / "page/src"
OPERATED = {"a", "button", "input", "select", "summary", "textarea"}
"""Elements that a mouse operates by themselves."""
POINTED = re.compile(r"\bon(Click|DblClick|ContextMenu|Drop|Mouse\w+|Pointer\w+|Touch\w+|Wheel)=|tabIndex=\{0\}")
"""What makes another element one of them: it listens to a mouse, or is scrolled."""
MADE = re.compile(
    r"createElement\(\"(\w+)\"\)|new (Terminal)\(|addEventListener\(\"(click|dblclick|contextmenu|drop)\""
)

NO_MOUSE = """
for (const kind of ["pointerdown", "wheel"]) addEventListener(kind, () => console.error(`${kind}: no mouse`), true);
"""
MOST_STEPS = 200
FOCUS = """(element) => {
    const style = getComputedStyle(element), around = getComputedStyle(element.closest("form, label") ?? element);
    const isDrawn = (one) => one.outlineStyle !== "none" || one.boxShadow !== "none";
    return isDrawn(style) || isDrawn(around);
}"""


def sites() -> Iterator[str]:
    """The file and the tag of each thing in the page's sources that a mouse can operate."""
    for path in sorted(SOURCES.rglob("*.ts*")):
        text, name = path.read_text(), path.relative_to(SOURCES).as_posix()
        if path.suffix == ".tsx":
            yield from (f"{name} {tag}" for tag, more in _openings(text) if tag in OPERATED or POINTED.search(more))
        for tag, *others in MADE.findall(text):
            made = "".join(others) or (tag if tag in OPERATED else "")
            if made:
                yield f"{name} {made}"


def _openings(text: str) -> Iterator[tuple[str, str]]:
    """The tags that are opened in a file of JSX, each with what stands in it."""
    for found in re.finditer(r"<([a-z]\w*)(?=[\s>/])", text):
        depth, end = 0, found.end()
        while end < len(text) and (depth or text[end] != ">"):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        yield found[1], text[found.end() : end]


class Keys:
    """A person without a mouse, who notes what was done."""

    def __init__(self, visit: Visit) -> None:
        self.visit = visit
        self.done: list[str] = []
        self.press = visit.page.keyboard.press
        self.type = visit.page.keyboard.type

    async def begin(self) -> None:
        await self.visit.page.evaluate(NO_MOUSE)

    async def to(self, target: Locator, *, back: bool = False) -> None:
        """Step by step with Tab. What is reached can be seen to have the focus, and has a name."""
        await expect(target).to_be_attached()
        for _ in range(MOST_STEPS):
            if await target.evaluate("(element) => element === document.activeElement"):
                break
            await self.press("Shift+Tab" if back else "Tab")
        await expect(target).to_be_focused()
        assert await target.evaluate(FOCUS), f"the focus on {target} cannot be seen"
        await expect(target).to_have_accessible_name(re.compile("."))

    async def operate(self, what: str, target: Locator, *keys: str, back: bool = False) -> None:
        """Steps to something and presses keys there, Enter if none are given."""
        await self.to(target, back=back)
        for key in keys or ("Enter",):
            await self.press(key)
        await self.did(what)

    async def did(self, what: str) -> None:
        """The thing was operated; whatever became of it, something has the focus."""
        self.done.append(what)
        await self.kept()

    async def kept(self) -> None:
        await expect(self.visit.page.locator(":focus")).to_have_count(1)
