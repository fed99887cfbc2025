"""Forms of servers: the browser checks them, and what was filled in stays until it is sent."""

import re
from pathlib import Path

from tests.browser.page import Visit, crow_web, expect, in_browser
from tests.mcp.guests import asking, configured
from tests.support.scripts import DONE, call, reply

IS_RIGHT = "(field) => field.checkValidity()"


def test_a_form_is_sent_once_the_browser_finds_nothing_wrong_with_it(tmp_path: Path) -> None:
    config = configured(asking("strictly"))
    script = reply(call("mcp__asking__go"), when="bake") + DONE
    with crow_web(tmp_path, script=script, config=config) as web:

        async def story(visit: Visit) -> None:
            page, asked = visit.page, visit.question
            await visit.begin()
            await visit.say("bake")
            first = page.url
            await asked.get_by_role("button", name="Allow once").click()
            send = asked.get_by_role("button", name="Send")
            name, mail, site = (asked.get_by_label(label) for label in ("Your name", "E-mail", "Site"))
            day, age, many = (asked.get_by_label(label) for label in ("Day", "Age", "With"))
            types = [await field.get_attribute("type") for field in (mail, site, day)]
            assert types == ["email", "url", "date"]
            await name.press_sequentially("Al")
            await mail.press_sequentially("nobody")
            await expect(send).to_be_disabled()
            await many.select_option(["nuts"])
            await expect(send).to_be_enabled()
            await site.fill("here")
            await age.fill("3")
            await send.click()
            assert [await field.evaluate(IS_RIGHT) for field in (name, mail, site, age)] == [False] * 4
            await expect(name).to_be_focused()
            # Another session is looked at meanwhile: what was filled in is still there.
            await visit.begin()
            await page.goto(first)
            await expect(name).to_have_value("Al")
            await expect(age).to_have_value("3")
            await expect(many).to_have_values(["nuts"])
            await name.press_sequentially("an")
            await mail.fill("al@example.org")
            await site.fill("https://example.org/")
            await day.fill("2026-01-31")
            await expect(asked.get_by_label("Moment")).to_have_value(re.compile(r"^2026-0[12]-\d\dT\d\d:30$"))
            await age.fill("18")
            await send.click()
            await expect(asked).to_have_count(0)
            await visit.idle()
            await visit.transcript.locator(".call-head").last.click()
            told = visit.transcript.locator(".call-body").last
            moment = "2026-01-31T10:30:00.000Z"
            for value in ("Alan", "al@example.org", "https://example.org/", "2026-01-31", moment, "18", "nuts"):
                await expect(told).to_contain_text(value)

        in_browser(web, story)
