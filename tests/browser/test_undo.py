"""Undo in the page belongs to the turn that was shown: a turn that began since is never taken back in its place."""

import asyncio
from pathlib import Path

from tests.browser.page import Visit, crow_web, expect, in_browser
from tests.support.scripts import DONE, call, reply, say
from tests.support.web import Web

SCRIPT = (
    reply(say("Hello."), when="hello")
    + reply(say("I write."), call("write", path="a.txt", content="new\n"), when="write")
    + DONE
)
RULE = '[[permission.rules]]\ntool = "write"\ndecision = "allow"\n'


def say_elsewhere(web: Web, text: str) -> None:
    """A turn of another client in the session that the page shows, from its beginning to its end."""
    with web.connect(web.token()) as client:
        client.initialize()
        [session] = client.request("session/list", {})["sessions"]
        client.load(session["sessionId"], web.workspace)
        client.answer(client.start_prompt(text))


def test_a_turn_that_begins_elsewhere_closes_the_preview_for_good(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=SCRIPT, config=RULE) as web:

        async def story(visit: Visit) -> None:
            await visit.begin()
            await visit.say("hello")
            await visit.idle()
            await visit.page.get_by_role("button", name="Undo turn").click()
            preview = visit.page.get_by_role("dialog", name="Undo the last turn")
            await expect(preview).to_contain_text("No file is changed.")
            await asyncio.to_thread(say_elsewhere, web, "write")
            await expect(visit.transcript.get_by_text("Done.")).to_be_visible()
            await visit.idle()
            await expect(preview).to_have_count(0)
            assert (web.workspace / "a.txt").exists()
            await visit.page.get_by_role("button", name="Undo turn").click()
            await expect(preview).to_contain_text("1 file is put back.")
            await preview.get_by_role("button", name="Undo it").click()
            await expect(visit.messages.last).to_have_text("You:/undo t2")
            await visit.idle()
            assert not (web.workspace / "a.txt").exists()
            await expect(visit.transcript.locator(".chip.removed")).to_have_text("deleted")

        in_browser(web, story)
