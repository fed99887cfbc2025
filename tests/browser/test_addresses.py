"""What stands in the address: a link that is pasted into an open tab, names of sessions that are none, and Back."""

from pathlib import Path

from tests.browser.page import PHONE, Visit, crow_web, expect, in_browser
from tests.support.scripts import DONE
from tests.support.web import Web

GO_TO = "(fragment) => { location.hash = fragment }"
"""As somebody does who pastes an address into this tab, of which nothing but the fragment is another."""


def fresh_link(web: Web) -> str:
    done = web.beside()
    return done.stdout.partition("#link=")[2].split()[0]


def test_a_link_that_is_pasted_into_the_tab_that_asks_for_one_is_taken(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=DONE) as web:

        async def story(visit: Visit) -> None:
            page = await visit.page.context.new_page()
            await page.goto(f"{web.origin}/#/s/none")
            await expect(page.get_by_role("alert")).to_contain_text("has to be opened by a link")
            await page.evaluate(GO_TO, f"link={fresh_link(web)}")
            await expect(page.locator('.app[data-connection="open"]')).to_be_attached()
            await expect(page).to_have_url(f"{web.origin}/#/s/none")

        in_browser(web, story)


def test_a_link_in_a_tab_that_is_connected_leaves_the_address(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=DONE) as web:

        async def story(visit: Visit) -> None:
            await visit.begin()
            shown = visit.page.url
            await visit.page.evaluate(GO_TO, "link=abc")
            await expect(visit.page).to_have_url(shown)
            await expect(visit.composer).to_be_visible()
            await visit.say("hello")
            await visit.idle()

        in_browser(web, story)


def test_an_address_that_means_nothing_shows_the_page(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=DONE) as web:

        async def story(visit: Visit) -> None:
            for fragment in ("/s/%", "/s/%ZZ", "/s/", "/s/%E0%A4%A"):
                await visit.page.evaluate(GO_TO, fragment)
                await expect(visit.page.get_by_text("Choose a session, or begin one.")).to_be_visible()
                await visit.page.reload()
                await visit.connected()
                await expect(visit.page.get_by_text("Choose a session, or begin one.")).to_be_visible()

        in_browser(web, story)


def test_back_leads_from_the_questions_of_a_phone_to_the_talk(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=DONE) as web:

        async def story(visit: Visit) -> None:
            await visit.begin()
            await visit.say("first")
            await visit.idle()
            first = visit.page.url
            await visit.page.get_by_role("button", name="All sessions").click()
            await visit.begin()
            await visit.say("second")
            await visit.idle()
            second = visit.page.url
            assert first != second
            views = visit.page.get_by_role("navigation", name="Views")
            await views.get_by_role("button", name="Questions").click()
            questions = visit.page.get_by_role("region", name="Questions")
            await expect(questions).to_be_visible()
            await visit.page.go_back()
            await expect(questions).to_have_count(0)
            await expect(visit.messages).to_have_text(["You:second"])
            await expect(visit.page).to_have_url(second)

        in_browser(web, story, viewport=PHONE)
