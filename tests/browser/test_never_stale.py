"""What the page shows stays true: after a lost network, a server that was started again, an answer given elsewhere."""

import asyncio
from pathlib import Path

from tests.browser.chromium import chromium
from tests.browser.page import Visit, crow_web, expect, in_browser, visiting
from tests.support.scripts import DONE, edit, reply, run, say
from tests.support.warm import CROW, warm
from tests.support.web import Web

TALK = reply(say("One."), when="first") + reply(say("Two."), when="second") + DONE


async def restarted(web: Web) -> Web:
    """The same `crow web` again, on its port, as after a crash."""
    return await asyncio.to_thread(Web, web.folder, "--port", str(web.port), program=warm(CROW))


def test_after_a_restart_everything_is_there_once_and_the_draft_is_kept(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=TALK) as web:

        async def story(visit: Visit) -> None:
            await visit.begin()
            await visit.say("first")
            await visit.idle()
            await expect(visit.transcript.get_by_text("One.")).to_have_count(1)
            await visit.transcript.get_by_text("One.").evaluate("node => node.dataset.drawn = 'before'")
            await visit.composer.fill("half a thought")
            await asyncio.to_thread(web.end, 9)
            await visit.connected("lost")
            await expect(visit.transcript.get_by_text("One.")).to_be_visible()  # what is known stays
            await visit.composer.fill("second")
            await visit.composer.press("Enter")
            await expect(visit.page.get_by_text("Your message waits for the connection")).to_be_visible()
            await visit.composer.fill("a draft")
            again = await restarted(web)
            try:
                await visit.connected()
                await expect(visit.transcript.get_by_text("Two.")).to_have_count(1)
                await expect(visit.messages).to_have_text(["You:first", "You:second"])
                # Nothing was drawn anew: the node is the one from before.
                await expect(visit.transcript.get_by_text("One.")).to_have_attribute("data-drawn", "before")
                await expect(visit.composer).to_have_value("a draft")
                await visit.page.reload()
                await visit.connected()
                await expect(visit.messages).to_have_text(["You:first", "You:second"])
                await expect(visit.composer).to_have_value("a draft")
            finally:
                await asyncio.to_thread(again.close)

        in_browser(web, story)


def test_a_network_that_is_gone_in_mid_turn_leaves_no_gap(tmp_path: Path) -> None:
    words = " ".join(f"w{number}" for number in range(40))
    script = reply(say("Before."), run("until [ -e go ]; do sleep 0.05; done")) + reply(say(words)) + DONE
    rule = '[[permission.rules]]\ntool = "terminal"\ndecision = "allow"\n'
    with crow_web(tmp_path, script=script, config=rule) as web:

        async def story(visit: Visit) -> None:
            await visit.begin()
            await visit.say("go")
            await expect(visit.transcript.locator(".call.is-in_progress")).to_be_visible()
            for _ in range(3):
                await visit.page.context.set_offline(True)
                await expect(visit.page.locator('.app:not([data-connection="open"])')).to_be_attached()
                await visit.page.context.set_offline(False)
                await visit.connected()
            # The last time for so long that the socket is given up: the turn goes on, and ends, without any client.
            await visit.page.context.set_offline(True)
            await visit.connected("lost")
            (web.workspace / "go").touch()
            await visit.page.context.set_offline(False)
            await visit.connected()
            await visit.idle()
            await expect(visit.transcript.get_by_text(words)).to_have_count(1)
            await expect(visit.transcript.get_by_text("Before.")).to_have_count(1)
            await expect(visit.messages).to_have_text(["You:go"])

        in_browser(web, story)


def test_a_question_is_shown_everywhere_and_vanishes_everywhere(tmp_path: Path) -> None:
    script = reply(edit("a.txt", "one", "two")) + DONE
    with crow_web(tmp_path, script=script) as web:
        (web.workspace / "a.txt").write_text("one\n")

        async def play() -> None:
            async with chromium() as browser, visiting(web, browser) as visit:
                await visit.begin()
                await visit.say("change it")
                await expect(visit.question).to_be_visible()
                link = (await asyncio.to_thread(web.beside)).stdout
                context = await browser.new_context()
                other = Visit(await context.new_page(), web)
                await other.page.goto(link.split()[-1])
                await other.connected()
                # The other page has nothing open, and is asked all the same.
                await expect(other.question).to_contain_text("a.txt")
                assert (await other.page.title()).startswith("(1)")
                await other.question.get_by_role("button", name="Allow once").click()
                await expect(visit.question).to_have_count(0)
                await visit.idle()
                assert (web.workspace / "a.txt").read_text() == "two\n"
                await context.close()
                assert other.faults == []

        asyncio.run(play())


def test_a_page_that_is_not_known_any_more_says_so(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=DONE) as web:

        async def story(visit: Visit) -> None:
            await asyncio.to_thread(web.beside, "--forget", "all")
            await visit.page.reload()
            await visit.connected("refused")
            await expect(visit.page.get_by_role("alert")).to_contain_text("crow web")

        in_browser(web, story)


def test_a_session_that_is_loaded_is_whole_to_its_last_character(tmp_path: Path) -> None:
    """The parser of Markdown holds a character back that could still become something else."""
    with crow_web(tmp_path, script=reply(say("It is the end.")) + DONE) as web:

        async def story(visit: Visit) -> None:
            await visit.begin()
            await visit.say("go")
            await visit.idle()
            await visit.page.reload()
            await expect(visit.transcript.locator(".prose")).to_have_text("It is the end.")

        in_browser(web, story)
