"""A phone that sleeps and wakes again and again in one turn: the talk is what was stored, each word once."""

import asyncio
import random
import re
from pathlib import Path

import pytest

from tests.browser.page import PHONE, Visit, crow_web, expect, in_browser
from tests.support.scripts import DONE, allowing, edit, reply, run, say

NAPS = 20


def words_of(step: int) -> str:
    return " ".join(f"w{step}x{number}" for number in range(60))


def script() -> str:
    """A turn with a step for each nap: it says something, changes a file, and waits for a file to be there."""
    steps = [
        reply(
            say(f"Step **{step}**: {words_of(step)}"),
            edit("a.txt", f"k{step}\n", f"k{step + 1}\n"),
            run(f"echo c{step}; until [ -e go{step} ]; do sleep 0.05; done"),
        )
        for step in range(NAPS)
    ]
    return "".join(steps) + reply(say(words_of(NAPS))) + DONE


def said(text: str) -> list[str]:
    return re.findall(r"\bw\d+x\d+\b", text)


@pytest.mark.slow
def test_after_twenty_naps_in_a_turn_the_talk_is_what_is_exported(tmp_path: Path) -> None:
    chance = random.Random(20)
    with crow_web(tmp_path, script=script(), config=allowing("terminal", "edit")) as web:
        (web.workspace / "a.txt").write_text("k0\n")

        async def story(visit: Visit) -> None:
            await visit.begin()
            await visit.say("begin")
            scroller = visit.page.locator(".scroller")
            for nap in range(NAPS):
                await expect(visit.transcript.locator(".call.is-in_progress")).to_contain_text(f"go{nap}")
                if nap == NAPS // 2:
                    await scroller.evaluate("(element) => element.scrollTo(0, 300)")
                    await expect(visit.page.get_by_role("button", name="To the end")).to_be_visible()
                    place = await scroller.evaluate("(element) => element.scrollTop")
                await visit.page.context.set_offline(True)
                await expect(visit.page.locator('.app:not([data-connection="open"])')).to_be_attached()
                (web.workspace / f"go{nap}").touch()
                await asyncio.sleep(chance.random())
                await visit.page.context.set_offline(False)
                await visit.connected()
            await visit.idle()
            assert await scroller.evaluate("(element) => element.scrollTop") == pytest.approx(place, abs=4)
            shown = await visit.transcript.locator(".is-agent .prose").all_text_contents()
            expected = [word for step in range(NAPS + 1) for word in said(words_of(step))]
            assert said(" ".join(shown)) == expected
            session = visit.page.url.rpartition("/")[2]
            assert said(web.command("sessions", "export", session)) == expected
            assert await visit.transcript.locator(".call").count() == 2 * NAPS
            await expect(visit.messages).to_have_text(["You:begin"])

        in_browser(web, story, viewport=PHONE)
