"""What is said and chosen without a connection: it is seen, can be changed and withdrawn, and is sent once."""

import asyncio
from pathlib import Path

from tests.browser.page import AGE_WHAT_WAITS, Visit, crow_web, expect, in_browser, restarted
from tests.support.scripts import DONE, reply, say

HALF = "(area) => { area.value = 'half \\ud83d of it'; area.dispatchEvent(new Event('input', {bubbles: true})); }"


def test_a_message_that_waits_can_be_changed_and_withdrawn(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=DONE) as web:

        async def story(visit: Visit) -> None:
            page = visit.page
            await visit.begin()
            await visit.say("first")
            await visit.idle()
            waiting = page.get_by_role("article", name="Waits to be sent")
            await asyncio.to_thread(web.end, 9)
            await visit.connected("lost")
            await visit.say("one")
            await visit.say("two")
            await visit.say("three")
            await expect(waiting).to_have_count(3)
            await waiting.filter(has_text="one").get_by_role("button", name="Remove").click()
            await waiting.filter(has_text="two").get_by_role("button", name="Edit").click()
            await expect(visit.composer).to_have_value("two")
            await expect(visit.composer).to_be_focused()
            await visit.composer.fill("two, but better")
            await visit.composer.press("Enter")
            # A mode that is chosen now is put back, and that is said.
            mode = page.get_by_label("Mode", exact=True)
            before = await mode.input_value()
            others = await mode.locator("option").evaluate_all("(all) => all.map((one) => one.value)")
            await mode.select_option(next(one for one in others if one != before))
            await expect(page.get_by_role("alert")).to_contain_text("nothing was changed")
            await expect(mode).to_have_value(before)
            async with restarted(web):
                await visit.connected()
                await expect(visit.messages).to_have_text(["You:first", "You:three", "You:two, but better"])
                await expect(waiting).to_have_count(0)

        in_browser(web, story)


def test_a_message_that_waited_for_more_than_an_hour_is_asked_about(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=reply(say("Hello."), when="hello") + DONE) as web:

        async def story(visit: Visit) -> None:
            page = visit.page
            await visit.begin()
            await visit.say("hello")
            await visit.idle()
            await asyncio.to_thread(web.end, 9)
            await visit.connected("lost")
            await visit.say("delete it all")
            await expect(page.get_by_text("Your message is queued")).to_be_visible()
            await page.evaluate(AGE_WHAT_WAITS)
            async with restarted(web):
                await page.reload()
                await visit.connected()
                waiting = page.get_by_role("article", name="Waits to be sent")
                await expect(waiting).to_contain_text("Send it now?")
                await expect(visit.transcript.get_by_text("Done.")).to_have_count(0)
                await waiting.get_by_role("button", name="Send").click()
                await expect(visit.transcript.get_by_text("Done.")).to_be_visible()
                await expect(visit.messages).to_have_text(["You:hello", "You:delete it all"])

        in_browser(web, story)


def test_a_message_with_half_a_character_is_sent_once(tmp_path: Path) -> None:
    """It is stored with another character in its place, and known again all the same after a crash in its turn."""
    script = reply(say("Begun."), "{ wait = 600 }", when="half") + DONE
    with crow_web(tmp_path, script=script) as web:

        async def story(visit: Visit) -> None:
            await visit.begin()
            await visit.composer.evaluate(HALF)
            await visit.composer.press("Enter")
            await expect(visit.transcript.get_by_text("Begun.")).to_be_visible()
            await asyncio.to_thread(web.end, 9)
            await visit.connected("lost")
            async with restarted(web):
                await visit.connected()
                await visit.idle()
                await expect(visit.messages).to_have_text(["You:half \ufffd of it"])

        in_browser(web, story)
