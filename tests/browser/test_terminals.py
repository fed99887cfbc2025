"""Commands in the page: colours, how they ended, stopping them, typing, all of a long output, hostile output."""

from pathlib import Path

from playwright.async_api import Locator

from tests.browser.page import Visit, crow_web, expect, in_browser, until
from tests.support.scripts import DONE, allowing, reply, run, say

ALLOWED = allowing("terminal")


async def is_readable(text: Locator) -> None:
    """Plain output has the colour of the terminal's text, and not that of what is behind it."""
    both = "(text) => [text.querySelector('.out-block'), text.closest('.command')]"
    block, terminal = await text.evaluate(f"(text) => ({both})(text).map((one) => getComputedStyle(one).color)")
    assert block == terminal


def test_a_failed_command_is_shown_in_colours_with_its_exit_code(tmp_path: Path) -> None:
    script = reply(run("printf 'plain \\033[31mred\\033[0m \\033[38;2;0;160;0mgreen\\033[0m\\n'; exit 3")) + DONE
    with crow_web(tmp_path, script=script, config=ALLOWED) as web:

        async def story(visit: Visit) -> None:
            await visit.begin()
            await visit.say("run it")
            await visit.idle()
            command = visit.transcript.locator(".command")
            await expect(command.locator(".chip")).to_have_text("exit 3")
            rows = command.locator(".xterm-rows")
            await expect(rows).to_contain_text("plain red green")
            colours = await rows.evaluate(
                "(rows) => [...rows.querySelectorAll('span')].map((span) =>"
                " [span.textContent.trim(), getComputedStyle(span).color])"
            )
            shown = {text: colour for text, colour in colours if text}
            assert len({shown["red"], shown["green"], shown["plain"]}) == 3, shown

        in_browser(web, story)


def test_a_command_of_many_lines_can_be_read_whole_once_it_ran(tmp_path: Path) -> None:
    command = "cat <<'EOF'\n" + "".join(f"<b>{number}</b> \tof a long text\n" for number in range(60)) + "EOF\nexit 1"
    with crow_web(tmp_path, script=reply(run(command)) + DONE, config=ALLOWED) as web:

        async def story(visit: Visit) -> None:
            await visit.begin()
            await visit.say("run it")
            for _ in ("live", "loaded"):
                await visit.idle()
                whole = visit.transcript.get_by_label("Command", exact=True)
                await expect(whole).to_have_text(command, use_inner_text=True)
                await visit.page.reload()
                await visit.connected()

        in_browser(web, story)


def test_output_arrives_while_the_command_runs_and_a_button_stops_it(tmp_path: Path) -> None:
    script = reply(run("echo begun; sleep 600; echo never")) + reply(say("It was stopped."))
    with crow_web(tmp_path, script=script, config=ALLOWED) as web:

        async def story(visit: Visit) -> None:
            await visit.begin()
            await visit.say("run it")
            command = visit.transcript.locator(".command")
            await expect(command.locator(".xterm-rows")).to_contain_text("begun")
            await expect(command.locator(".chip")).to_have_text("running")
            await command.get_by_role("button", name="Stop").click()
            await visit.idle()
            await expect(visit.transcript).to_contain_text("It was stopped.")
            await expect(command.locator(".xterm-rows")).not_to_contain_text("never")

        in_browser(web, story)


def test_a_command_that_asks_is_typed_into(tmp_path: Path) -> None:
    """In the terminal itself, and in the line below it, which phones and screen readers use."""
    script = reply(run("read -p 'Name? ' name; read -p 'Sure? ' sure; echo $name is $sure; exit 1")) + DONE
    with crow_web(tmp_path, script=script) as web:

        async def story(visit: Visit) -> None:
            await visit.begin()
            await visit.say("run it")
            await visit.question.get_by_label("Let me type into it").check()
            await visit.question.get_by_role("button", name="Allow once").click()
            command = visit.transcript.locator(".command")
            await expect(command.locator(".xterm-rows")).to_contain_text("Name?")
            line = command.get_by_label("Type into")
            await line.fill("crow")
            await line.press("Enter")
            await expect(command.locator(".xterm-rows")).to_contain_text("Sure?")
            await command.locator(".xterm-helper-textarea").focus()
            await visit.page.keyboard.type("certain")
            await visit.page.keyboard.press("Enter")
            await visit.idle()
            await expect(command.locator(".xterm-rows")).to_contain_text("crow is certain")
            await expect(command.get_by_label("Type into")).to_have_count(0)

        in_browser(web, story)


def test_all_of_a_long_output_is_shown_piece_by_piece(tmp_path: Path) -> None:
    """100,000 lines: what is near is drawn, the rest is fetched as somebody scrolls, and the terminal keeps its end."""
    script = reply(run("seq -f 'line %.0f of many' 100000; exit 1")) + DONE
    with crow_web(tmp_path, script=script, config=ALLOWED) as web:

        async def story(visit: Visit) -> None:
            await visit.begin()
            await visit.say("run it")
            await visit.idle()
            command = visit.transcript.locator(".command")
            await expect(command.locator(".xterm-rows")).to_contain_text("line 100000 of many")
            await command.get_by_role("button", name="All output").click()
            await expect(command.get_by_text("line 1 of many", exact=False).first).to_be_visible()
            text = command.locator(".terminal-text")
            await is_readable(text)
            status = command.get_by_role("status")

            async def to_the_end() -> None:
                await text.evaluate("(element) => element.scrollTo(0, element.scrollHeight)")

            async def is_whole() -> bool:
                return "so far" not in await status.inner_text()

            await until(is_whole, "all lines were fetched", to_the_end)
            await expect(status).to_have_text("100,000 lines")
            await to_the_end()
            await expect(text.locator(".out-block").last).to_contain_text("line 100000 of many")
            assert await text.locator(".out-block.built").count() < 12

        in_browser(web, story)


def test_a_session_that_is_loaded_shows_what_a_command_printed(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=reply(run("echo printed; exit 2")) + DONE, config=ALLOWED) as web:

        async def story(visit: Visit) -> None:
            await visit.begin()
            await visit.say("run it")
            await visit.idle()
            await visit.page.reload()
            command = visit.transcript.locator(".command")
            await expect(command.locator(".terminal-text")).to_contain_text("printed")
            await is_readable(command.locator(".terminal-text"))
            await expect(command.locator(".chip")).to_have_text("exit 2")

        in_browser(web, story)


HOSTILE = "; ".join(
    (
        r"printf '\033]8;;http://evil.example/\033\\click\033]8;;\033\\ '",
        r"printf '\033]52;c;ZXZpbA==\007\033]0;owned\007\033]2;owned\007'",
        r"printf '<img src=x onerror=alert(1)> http://evil.example/ javascript:alert(2)\n'",
        r"printf '\033[c\033[6n\033[>c\033]10;?\007\033P$q q\033\\\033[21t'",
        r"printf '\033[8mhidden\033[0m end\n'",
        "exit 1",
    )
)


def test_hostile_output_can_only_be_seen(tmp_path: Path) -> None:
    """No link, no clipboard, no title, no HTML; nothing leaves the page (see Visit)."""
    with crow_web(tmp_path, script=reply(run(HOSTILE)) + DONE, config=ALLOWED) as web:

        async def story(visit: Visit) -> None:
            await visit.begin()
            await visit.say("run it")
            await visit.idle()
            rows = visit.transcript.locator(".xterm-rows")
            await expect(rows).to_contain_text("click <img src=x onerror=alert(1)> http://evil.example/")
            screen = await visit.transcript.locator(".xterm-screen").bounding_box()
            assert screen is not None
            await visit.page.mouse.click(screen["x"] + 15, screen["y"] + 8)  # where "click" stands
            assert "owned" not in await visit.page.title()
            assert await visit.page.locator(".command a, .command img, .xterm-underline-1").count() == 0
            await visit.transcript.get_by_role("button", name="All output").click()
            text = visit.transcript.locator(".terminal-text")
            await expect(text).to_contain_text("click <img src=x onerror=alert(1)> http://evil.example/")
            await expect(text).to_contain_text("hidden end")
            assert await text.locator("a, img").count() == 0
            assert len(visit.page.context.pages) == 1

        in_browser(web, story)


def test_terminals_that_are_far_away_are_taken_away(tmp_path: Path) -> None:
    """Each costs megabytes: in a long session only those near to what is seen are there."""
    script = "".join(reply(run(f"seq 1 40; echo number {number}; exit 1")) for number in range(12)) + DONE
    with crow_web(tmp_path, script=script, config=ALLOWED) as web:

        async def story(visit: Visit) -> None:
            await visit.begin()
            await visit.say("run them")
            await visit.idle()
            terminals = visit.transcript.locator(".xterm")
            await expect(visit.transcript.locator(".command")).to_have_count(12)
            first, last = visit.transcript.locator(".command").first, visit.transcript.locator(".command").last
            await expect(last.locator(".xterm-rows")).to_contain_text("number 11")
            assert await terminals.count() < 10

            async def up() -> None:
                await visit.page.locator(".scroller").evaluate("(element) => element.scrollBy(0, -600)")

            await until(first.locator(".xterm-rows").count, "the first terminal is drawn", up)
            await first.scroll_into_view_if_needed()  # a terminal out of sight draws nothing
            await expect(first.locator(".xterm-rows")).to_contain_text("number 0")
            await expect(last.locator(".xterm-rows")).to_have_count(0)

        in_browser(web, story, viewport={"width": 900, "height": 700})
