"""A visitor without a key walks the whole tour of the scripted model in the page, and sees every kind of display."""

import sys
from pathlib import Path

from tests.browser.page import Visit, crow_web, expect, in_browser

QUICKLY = """
import re, sys
import crow.model.scripted
crow.model.scripted.WORD = re.compile("(?s).+")
from crow.__main__ import main
sys.exit(main())
"""
"""Crow as it is, except that the scripted model says all its words at once."""


def test_a_visitor_without_a_key_sees_every_kind_of_display(tmp_path: Path) -> None:
    with crow_web(tmp_path, program=[sys.executable, "-c", QUICKLY]) as web:
        assert list(web.home.glob("*.toml")) == []

        async def story(visit: Visit) -> None:
            page, shown, asked = visit.page, visit.transcript, visit.question

            async def answer(name: str) -> None:
                """One question is answered, and gone."""
                this = await asked.get_attribute("data-question")
                await asked.get_by_role("button", name=name).click()
                await expect(page.locator(f'[data-question="{this}"]')).to_have_count(0)

            # A folder is offered: the one in which `crow web` was started.
            await page.get_by_role("button", name="New session").first.click()
            await page.get_by_role("dialog").get_by_role("button", name=str(web.workspace)).click()
            await page.get_by_role("button", name="Try without a key").click()

            await visit.say("hello")
            await visit.idle()
            await expect(shown.locator(".prose strong")).to_have_text("Crow")
            await expect(shown.locator(".prose ol li")).to_have_count(5)
            await expect(shown.locator(".thought")).to_have_count(1)
            await expect(shown.locator(".item.is-call")).to_have_count(1)

            await visit.say("next")
            await expect(asked).to_contain_text("building")
            await expect(page.locator(".plan")).to_contain_text("0 of 6")
            await answer("Allow once")
            await visit.idle()
            await expect(page.locator(".plan")).to_contain_text("1 of 6")
            await expect(shown).not_to_contain_text("Now a new file")  # that is for the next prompt
            await shown.locator(".item.is-call .call-head", has_text="building").click()
            await expect(shown.locator(".command")).to_contain_text("built a nest of 5 twigs")

            await visit.say("next")
            await expect(asked.locator(".add").first).to_contain_text("A crow's day")
            await answer("Allow once")
            await expect(asked.locator(".add")).to_have_count(2)
            await asked.get_by_role("checkbox").nth(1).uncheck()
            await answer("Allow 1 of 2 changes")
            await visit.idle()
            text = (web.workspace / "crow-tour.md").read_text()
            assert "*fat* ones" in text
            assert "Nothing shines here." in text
            await expect(shown.locator(".prose table")).to_contain_text("every change and command")
            await expect(shown.locator(".prose pre")).to_contain_text("def reply")

            await visit.say("next")
            await answer("Allow once")
            await visit.idle()
            await expect(shown.locator("img.picture")).to_be_visible()

            await visit.say("next")
            await expect(asked).to_contain_text("What shall I collect?")
            await answer("Coins")
            await visit.idle()
            looked = shown.locator(".item.is-call", has_text="Look around")
            await looked.locator(".call-head").click()
            await expect(looked).to_contain_text("Find *")
            await expect(looked).to_contain_text("that is all that lies here")

            await visit.say("next")
            await expect(page.locator(".turn-line")).to_contain_text("too many crows")
            await expect(asked).to_contain_text("rm -f")
            await answer("Allow once")
            await visit.idle()
            await expect(page.locator(".plan")).to_have_count(0)
            assert not (web.workspace / "crow-tour.md").exists()

            await visit.say("next")
            await visit.idle()
            await expect(shown).to_contain_text("I have only this left to say")
            await expect(visit.messages).to_have_count(7)

        in_browser(web, story)
