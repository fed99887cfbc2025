"""What goes along with a message, what is found again, and what is taken back."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

from playwright.async_api import FilePayload, WebSocketRoute

from tests.browser.page import Visit, crow_web, expect, in_browser
from tests.support.scripts import DONE, allowing, call, edit, reply, run, say

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d4944415478da63fccf"
    "c0500f0004850180a9a4d4f50000000049454e44ae426082"
)
DROP = """(place) => {
    const data = new DataTransfer();
    data.items.add(new File(["from a drop"], "dropped.txt", {type: "text/plain"}));
    place.dispatchEvent(new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true}));
}"""
PASTE = """(area) => {
    const data = new DataTransfer();
    data.items.add(new File(["pasted"], "pasted.md", {type: "text/markdown"}));
    area.dispatchEvent(new ClipboardEvent("paste", {clipboardData: data, bubbles: true, cancelable: true}));
}"""


def test_files_go_along_by_picker_paste_drop_and_name(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=DONE) as web:
        (web.workspace / "notes.md").write_text("some notes\n")

        async def story(visit: Visit) -> None:
            page = visit.page
            await visit.begin()
            picked: FilePayload = {"name": "dot.png", "mimeType": "image/png", "buffer": PIXEL}
            await page.get_by_label("Files", exact=True).set_input_files([picked])
            await visit.composer.evaluate(PASTE)
            await visit.transcript.evaluate(DROP)
            attached = page.get_by_role("list", name="Attachments").get_by_role("listitem")
            await expect(attached).to_have_text([" dot.png", " pasted.md", " dropped.txt"])
            await page.get_by_role("button", name="Remove pasted.md").click()
            await page.reload()
            await visit.connected()
            await expect(attached).to_have_text([" dot.png", " dropped.txt"])  # drafts are kept, with what is in them
            await visit.composer.press_sequentially("look at @not")
            await expect(page.get_by_role("listbox", name="Suggestions")).to_contain_text("notes.md")
            await page.get_by_role("option", name="notes.md").click()
            await expect(visit.composer).to_have_value("look at @notes.md ")
            await visit.composer.press("Enter")
            await visit.idle()
            said = visit.messages
            await expect(said.locator("img")).to_have_count(1)
            await expect(said).to_contain_text("dropped.txt")
            await expect(said).to_contain_text("notes.md")
            await expect(said).not_to_contain_text("pasted.md")
            await expect(attached).to_have_count(0)

        in_browser(web, story)


def test_a_file_that_is_named_before_the_session_is_loaded_is_completed_then(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=DONE) as web:
        (web.workspace / "notes.md").write_text("some notes\n")

        async def story(visit: Visit) -> None:
            refused = asyncio.Event()
            held: asyncio.Future[Callable[[], None]] = asyncio.get_running_loop().create_future()

            def opened(page: WebSocketRoute) -> None:
                crow = page.connect_to_server()

                def from_page(text: str | bytes) -> None:
                    if json.loads(text).get("method") == "session/load":
                        held.set_result(lambda: crow.send(text))
                    else:
                        crow.send(text)

                def from_crow(text: str | bytes) -> None:
                    page.send(text)
                    if json.loads(text).get("error"):
                        refused.set()

                page.on_message(from_page)
                crow.on_message(from_crow)

            await visit.begin()
            await visit.page.route_web_socket("**/acp", opened)
            await visit.page.reload()
            await visit.connected()
            await visit.composer.press_sequentially("look at @not")

            await refused.wait()  # Crow knows no files of a session that is not open
            (await held)()
            await expect(visit.page.get_by_role("option", name="notes.md")).to_be_visible()

        in_browser(web, story)


def test_a_turn_is_taken_back_after_a_look_at_what_that_changes(tmp_path: Path) -> None:
    script = reply(edit("a.txt", "one", "two")) + reply(run("true")) + DONE
    with crow_web(tmp_path, script=script, config=allowing("terminal")) as web:
        (web.workspace / "a.txt").write_text("one\n")

        async def story(visit: Visit) -> None:
            await visit.begin()
            await visit.say("change it")
            await visit.question.get_by_role("button", name="Allow once").click()
            await visit.idle()
            await visit.page.get_by_role("button", name="Changed files").first.click()
            changes = visit.page.get_by_role("complementary", name="Changed files")
            await expect(changes).to_contain_text("a.txt")
            await visit.page.get_by_role("button", name="Undo turn").click()
            preview = visit.page.get_by_role("dialog", name="Undo the last turn")
            await expect(preview.locator(".add")).to_contain_text("one")
            await expect(preview).to_contain_text("commands. Their effects are not undone")
            assert (web.workspace / "a.txt").read_text() == "two\n"
            await visit.page.keyboard.press("Escape")
            await expect(preview).to_have_count(0)
            await visit.page.get_by_role("button", name="Undo turn").click()
            await preview.get_by_role("button", name="Undo it").click()
            await expect(visit.messages.last).to_contain_text("/undo")
            await visit.idle()
            assert (web.workspace / "a.txt").read_text() == "one\n"
            await expect(changes).not_to_contain_text("a.txt")

        in_browser(web, story)


def test_whoever_has_no_model_tries_crow_and_finds_it_again(tmp_path: Path) -> None:
    """The scripted model is chosen once; it is there after the page was loaded anew, and so is what was said."""
    with crow_web(tmp_path) as web:

        async def story(visit: Visit) -> None:
            page = visit.page
            await page.keyboard.press("n")
            await page.get_by_label("Folder").fill(str(web.workspace))
            await page.keyboard.press("Enter")
            await page.get_by_role("button", name="Try without a key").click()
            await visit.say("hello")
            await visit.idle()
            await page.reload()
            await visit.connected()
            await expect(visit.messages).to_have_text(["You:hello"])
            await page.get_by_label("Search all sessions").fill("played by a script")
            await expect(page.locator(".match mark").first).to_be_visible()
            await page.locator(".session-rows .row-open").click()
            await visit.say("next")
            await expect(visit.messages).to_have_text(["You:hello", "You:next"])
            await visit.idle()

        in_browser(web, story)


def test_a_command_that_ended_before_is_shown_as_a_terminal(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=reply(say("I run it."), run("echo out; exit 4")) + DONE) as web:

        async def story(visit: Visit) -> None:
            await visit.begin()
            await visit.say("run it")
            await visit.question.get_by_role("button", name="Allow once").click()
            await visit.idle()
            await visit.page.reload()
            await expect(visit.transcript.locator(".command")).to_contain_text("out")
            await expect(visit.transcript.locator(".command")).to_contain_text("exit 4")

        in_browser(web, story)


def test_one_file_that_is_refused_is_named_beside_others_that_are_not(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=DONE) as web:

        async def story(visit: Visit) -> None:
            await visit.begin()
            names = ("bytes.bin", "words.txt")
            files: list[FilePayload] = [
                {"name": name, "mimeType": "", "buffer": text}
                for name, text in zip(names, (b"\xff\x00", b"ok"), strict=True)
            ]
            await visit.page.get_by_label("Files", exact=True).set_input_files(files)
            attached = visit.page.get_by_role("list", name="Attachments").get_by_role("listitem")
            await expect(attached).to_have_text([" words.txt"])
            await expect(visit.page.get_by_role("alert")).to_contain_text("bytes.bin")

        in_browser(web, story)


def test_a_picture_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=DONE) as web:

        async def story(visit: Visit) -> None:
            await visit.begin()
            await visit.page.evaluate("() => { Blob.prototype.arrayBuffer = () => Promise.reject(new Error('gone')); }")
            picked: FilePayload = {"name": "dot.png", "mimeType": "image/png", "buffer": PIXEL}
            await visit.page.get_by_label("Files", exact=True).set_input_files([picked])
            await expect(visit.page.get_by_role("alert")).to_have_text("dot.png cannot be read.")

        in_browser(web, story)


def test_a_long_plan_leaves_room_for_what_is_asked_and_for_the_composer(tmp_path: Path) -> None:
    steps = [{"content": f"Step {number}", "status": "completed" if number < 30 else "pending"} for number in range(50)]
    script = reply(call("plan", entries=steps), run("echo one\n" * 60)) + DONE
    with crow_web(tmp_path, script=script) as web:
        (web.workspace / "notes.md").write_text("some notes\n")

        async def story(visit: Visit) -> None:
            page = visit.page
            await visit.begin()
            await visit.say("plan it")
            await page.locator(".plan summary").click()
            for height in (800, 430):  # the second with a keyboard over the page
                await page.set_viewport_size({"width": 390, "height": height})
                await expect(visit.question.get_by_text("May this command run?")).to_be_in_viewport(ratio=1)
                await expect(visit.composer).to_be_in_viewport(ratio=1)
                await visit.question.get_by_role("button", name="Reject").click(trial=True)
                await visit.composer.click(trial=True)
            await page.set_viewport_size({"width": 390, "height": 800})
            await visit.composer.press_sequentially("@not")
            await page.get_by_role("option", name="notes.md").click()
            await expect(visit.composer).to_have_value("@notes.md ")
            await visit.question.get_by_role("button", name="Reject").click()
            await visit.question.get_by_role("button", name="Skip").click()
            await visit.idle()
            await page.locator(".plan summary").click()
            await page.locator(".plan summary").click()
            await expect(page.get_by_text("Step 30", exact=True).last).to_be_in_viewport(ratio=1)
            await expect(page.get_by_text("Step 49", exact=True)).not_to_be_in_viewport()

        in_browser(web, story)


def test_a_session_that_is_deleted_leaves_nothing_in_the_browser(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=DONE) as web:

        async def story(visit: Visit) -> None:
            page = visit.page
            await visit.begin()
            await visit.say("first")
            await visit.idle()
            await visit.composer.fill("a secret draft")
            address = page.url
            visit.expects_dialogs = True
            page.once("dialog", lambda dialog: dialog.accept())
            await page.locator(".row").hover()
            await page.get_by_role("button", name="Delete first").click()
            await expect(page.locator(".row")).to_have_count(0)
            assert "secret" not in await page.evaluate("JSON.stringify(localStorage)")
            await page.goto(address)
            await page.reload()
            await visit.connected()
            await expect(page.get_by_text("This session is no longer there.")).to_be_visible()

        in_browser(web, story)
