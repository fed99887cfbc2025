"""A turn that an editor began, seen in the page as it happens: asked there, answered there, and going on when the
editor is closed.
"""

import asyncio
from pathlib import Path

from tests.browser.page import Visit, crow_web, expect, in_browser
from tests.support.editor import SILENCE
from tests.web_server.test_home import SIDE_BY_SIDE, editing


def test_a_turn_of_an_editor_is_seen_answered_and_outlives_the_editor(tmp_path: Path) -> None:
    with (
        crow_web(tmp_path, script=SIDE_BY_SIDE) as web,
        editing(tmp_path, permit=lambda request: SILENCE) as editor,
    ):
        (web.workspace / "a.txt").write_text("one\n")

        async def story(visit: Visit) -> None:
            await asyncio.to_thread(editor.new_session)
            turn = editor.start_prompt("change it, then wait")
            await visit.page.locator(".session-rows .row").filter(has_text="change it").click()
            await expect(visit.messages).to_have_text(["You:change it, then wait"])
            await expect(visit.transcript).to_contain_text("I change it.")
            await visit.question.get_by_role("button", name="Allow once").click()
            await asyncio.to_thread(
                editor.wait_until, lambda: "Allowed in Browser" in str(editor.received), "who answered"
            )
            await expect(visit.question).to_contain_text("until [ -e go ]")
            await visit.question.get_by_role("button", name="Allow once").click()
            await expect(visit.transcript.locator(".call.is-in_progress")).to_be_visible()
            assert not turn.done
            editor.kill()
            (web.workspace / "go").touch()
            await visit.idle()
            await expect(visit.transcript).to_contain_text("Done.")
            assert (web.workspace / "a.txt").read_text() == "two\n"

        in_browser(web, story)
