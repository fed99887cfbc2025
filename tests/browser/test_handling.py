"""Small things that people do with the page: copying, commands in a running turn, folders, narrow windows, output."""

import asyncio
from pathlib import Path

from tests.browser.page import Visit, crow_web, expect, in_browser, until
from tests.support.scripts import DONE, edit, reply, run, say

ALLOWED = '[[permission.rules]]\ntool = "terminal"\ndecision = "allow"\n'
WORD = "A" * 200_000
"""In most fonts these letters are kerned."""


def test_a_reply_and_its_code_can_be_copied(tmp_path: Path) -> None:
    said = "Look:\n\n```python\nprint(1)\n```\n\nThat is **all**."
    with crow_web(tmp_path, script=reply(say(said)) + DONE) as web:

        async def story(visit: Visit) -> None:
            page = visit.page
            await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
            await visit.begin()
            await visit.say("go")
            await visit.idle()
            copied = "navigator.clipboard.readText()"
            code = page.get_by_role("button", name="Copy this code")
            await code.focus()
            await page.keyboard.press("Enter")
            await expect(page.get_by_role("button", name="Copied")).to_be_visible()
            assert await page.evaluate(copied) == "print(1)"
            await page.get_by_role("button", name="Copy this reply").click()
            await expect(page.get_by_role("button", name="Copied").last).to_be_visible()
            assert await page.evaluate(copied) == said
            # What is selected by hand has no words of a button in it.
            text = "(pre) => { getSelection().selectAllChildren(pre); return getSelection().toString() }"
            assert (await visit.transcript.locator("pre").evaluate(text)).strip() == "print(1)"

        in_browser(web, story)


def test_one_long_word_does_not_hold_up_the_page(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=reply(say(WORD), when="word") + DONE) as web:

        async def story(visit: Visit) -> None:
            await visit.begin()
            await visit.say("word")
            await visit.idle()
            prose = visit.transcript.locator(".prose p")
            lengths = await prose.evaluate("(p) => [...p.childNodes].map((one) => one.data.length)")
            assert max(lengths) <= 400
            took = await prose.evaluate("""(p) => {
                const word = p.textContent, whole = document.createElement("p");
                whole.textContent = word;
                const measured = (one) => {
                    p.parentElement.append(one);
                    const began = performance.now();
                    void one.offsetHeight;
                    const took = performance.now() - began;
                    one.remove();
                    return took;
                };
                return [word.length, measured(p.cloneNode(true)), measured(whole)];
            }""")
            assert took[0] == len(WORD)
            assert took[1] < took[2] / 2, took

        in_browser(web, story)


def test_commands_are_offered_all_and_only_while_no_turn_runs(tmp_path: Path) -> None:
    script = reply(run("until [ -e go ]; do sleep 0.05; done"), when="wait") + DONE
    with crow_web(tmp_path, script=script, config=ALLOWED) as web:

        async def story(visit: Visit) -> None:
            page = visit.page
            offered = page.get_by_role("listbox", name="Suggestions")
            await visit.begin()
            await visit.composer.press_sequentially("/")
            await expect(offered.get_by_role("option").filter(has_text="/undo")).to_have_count(1)
            assert await offered.get_by_role("option").count() > 12
            await visit.say("wait")
            await expect(visit.transcript.locator(".call.is-in_progress")).to_be_visible()
            await visit.composer.press_sequentially("/un")
            await page.keyboard.press("Control+k")
            commands = page.get_by_role("listbox", name="Commands")
            await expect(commands.get_by_role("option").filter(has_text="Stop")).to_have_count(1)
            await expect(commands.get_by_role("option").filter(has_text="/undo")).to_have_count(0)
            await page.keyboard.press("Escape")
            await expect(offered).to_have_count(0)
            (web.workspace / "go").touch()
            await visit.idle()
            await visit.composer.fill("/und")
            await expect(offered.get_by_role("option").filter(has_text="/undo")).to_have_count(1)

        in_browser(web, story)


def test_a_folder_may_be_named_from_home_and_what_is_wrong_is_said_plainly(tmp_path: Path) -> None:
    home = tmp_path / "person"
    (home / "project").mkdir(parents=True)
    (home / "notes").write_text("a file")
    with crow_web(tmp_path, script=DONE, environment={"HOME": str(home)}) as web:

        async def story(visit: Visit) -> None:
            page = visit.page
            await page.get_by_role("button", name="New session").first.click()
            folder, told = page.get_by_label("Folder"), page.get_by_role("dialog").get_by_role("alert")
            for typed, words in (
                ("project", "Type the whole path of the folder, from / or ~ on."),
                ("~/notes", f"'{home}/notes' is a file, not a folder"),
                ("~/nothing", f"there is no folder '{home}/nothing'"),
            ):
                await folder.fill(typed)
                await page.keyboard.press("Enter")
                await expect(told).to_have_text(words)
            await folder.fill("~/project")
            await page.keyboard.press("Enter")
            await expect(visit.composer).to_be_focused()
            await expect(page.locator(".talk-title").get_by_title(f"{home}/project")).to_be_visible()

        in_browser(web, story)


def test_beside_changed_files_a_narrow_window_shows_a_lost_connection_and_the_way_to_the_list(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=DONE) as web:

        async def story(visit: Visit) -> None:
            page = visit.page
            await visit.begin()
            await visit.say("go")
            await visit.idle()
            await page.get_by_role("button", name="Changed files").click()
            await asyncio.to_thread(web.end, 9)
            await visit.connected("lost")
            await expect(page.get_by_text("Connection lost").locator("visible=true")).to_have_count(1)
            await page.get_by_role("button", name="All sessions").click()
            await expect(page.get_by_role("navigation", name="Sessions")).to_be_visible()

        in_browser(web, story, viewport={"width": 900, "height": 800})


def test_yes_and_no_are_in_sight_on_a_small_phone(tmp_path: Path) -> None:
    script = reply(run("git status && npm install && make all")) + DONE
    with crow_web(tmp_path, script=script) as web:

        async def story(visit: Visit) -> None:
            await visit.begin()
            await visit.say("go")
            for name in ("Allow once", "Reject"):
                answer = visit.question.get_by_role("button", name=name)
                await expect(answer).to_be_enabled()
                await expect(answer).to_be_in_viewport(ratio=1)

        in_browser(web, story, viewport={"width": 360, "height": 640})


def test_the_head_of_a_changed_file_says_what_its_row_says(tmp_path: Path) -> None:
    rule = '[[permission.rules]]\ntool = "edit"\ndecision = "allow"\n'
    deep = "a-folder-with-a-long-name/" * 8 + "the-name-of-the-file.txt"
    script = reply(edit("a.txt", "one", "two"), edit(deep, "one", "two")) + DONE
    with crow_web(tmp_path, script=script, config=rule) as web:
        for name in ("a.txt", deep):
            (web.workspace / name).parent.mkdir(parents=True, exist_ok=True)
            (web.workspace / name).write_text("one\n")

        async def story(visit: Visit) -> None:
            page = visit.page
            await visit.begin()
            await visit.say("go")
            await visit.idle()
            await page.get_by_role("button", name="Changed files").click()
            panel = page.get_by_role("complementary", name="Changed files")
            await panel.locator("button.file").first.click()
            head = panel.locator(".diff-head .diff-path")
            await expect(head).to_have_text("a.txt")
            # Of a long path the name is what is seen.
            name = visit.transcript.locator(".diff-head .diff-path b").filter(has_text="the-name-of-the-file.txt")
            assert await name.evaluate("(one) => one.scrollWidth <= one.clientWidth")

        in_browser(web, story)


def test_a_command_that_was_typed_into_stays_open(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=reply(run("read -r name; echo hello $name")) + DONE) as web:

        async def story(visit: Visit) -> None:
            await visit.begin()
            await visit.say("go")
            await visit.question.get_by_label("Let me type into it").check()
            await visit.question.get_by_role("button", name="Allow once").click()
            line = visit.page.get_by_label("Type into")
            await line.fill("Ada")
            await line.press("Enter")
            await visit.idle()
            head = visit.transcript.locator(".call-head")
            await expect(head).to_have_attribute("aria-expanded", "true")
            await head.focus()
            # Beyond its item nothing is drawn: the ring is inside.
            await visit.page.keyboard.press("Shift")
            assert await head.evaluate("(one) => parseFloat(getComputedStyle(one).outlineOffset)") < 0

        in_browser(web, story)


def test_the_end_of_a_long_output_is_one_press_away(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=reply(run("seq 60000")) + DONE, config=ALLOWED) as web:

        async def story(visit: Visit) -> None:
            await visit.begin()
            await visit.say("go")
            await visit.idle()
            await visit.transcript.locator(".call-head").click()
            await visit.page.get_by_role("button", name="All output").click()
            await visit.page.get_by_role("button", name="To the end").last.click()
            await expect(visit.page.get_by_text("60,000 lines")).to_be_visible()
            last = visit.page.get_by_label("All output").get_by_text("60000", exact=False).last
            await expect(last).to_be_in_viewport()

        in_browser(web, story)


def test_the_end_of_the_talk_is_one_press_away(tmp_path: Path) -> None:
    long = "\n\n".join(f"Paragraph {number}." for number in range(80))
    with crow_web(tmp_path, script=reply(say(long)) + DONE) as web:

        async def story(visit: Visit) -> None:
            page, last = visit.page, visit.transcript.get_by_text("Paragraph 79.")
            await visit.begin()
            await visit.say("tell me")
            await visit.idle()
            to_end, scroller = page.get_by_role("button", name="To the end"), page.locator(".scroller")

            async def scroll() -> None:
                await scroller.evaluate("(one) => one.scrollTo(0, 400)")

            for press in (to_end.click, lambda: to_end.press("Enter")):
                await until(to_end.is_visible, "leaving the end", scroll)  # the page may still follow what it drew last
                await expect(last).not_to_be_in_viewport()
                await press()
                await expect(to_end).to_have_count(0)
                await expect(last).to_be_in_viewport()

        in_browser(web, story)
