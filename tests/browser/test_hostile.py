"""Text of a model, of files and of commands that wants to be more than text. It is shown, and nothing else happens."""

from pathlib import Path

from playwright.async_api import FilePayload

from tests.browser.page import Visit, crow_web, expect, in_browser, until
from tests.support.scripts import DONE, call, edit, reply, run, say

IMAGE = "<img src=x onerror=alert(1)>"
PROSE = f"""\
{IMAGE} <script>alert(2)</script> <svg onload=alert(3)></svg> <iframe src="https://evil.example/"></iframe>

[a link](javascript:alert(4)) [another](data:text/html,<script>alert(5)</script>) [third](JaVaScRiPt:alert(6))
![picture](https://evil.example/leak.png) ![data](data:image/svg+xml,<svg/onload=alert(7)>)
[good](https://example.org/)

<style>*{{display:none}}</style> <base href="https://evil.example/"> <meta http-equiv=refresh content="0;url=https://evil.example/">

```html
{IMAGE}
```

| {IMAGE} | b |
|---|---|
| <svg/onload=alert(8)> | \u202egnp.exe\u202c |
"""
NAME = "<b onmouseover=alert(9)>.html"
OUTPUT = (
    r"printf '\033]0;title\007\033]52;c;aGVsbG8=\007\033]8;;javascript:alert(1)\007click\033]8;;\007"
    r"\033[31m<img src=x onerror=alert(10)>\033[0m\033[999999;999999H\033Pq#0\033\\done\n'"
)
SCRIPT = (
    reply(f"{{ thought = '{IMAGE}' }}", say(PROSE), call("read", path=NAME))
    + reply(edit("page.txt", "old", f"<p>{IMAGE}</p>\n<script>alert(11)</script>"), run(OUTPUT))
    + DONE
)


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=SCRIPT) as web:
        (web.workspace / "page.txt").write_text("old\n")
        (web.workspace / NAME).write_text(f"{IMAGE}\n\u202e\u2066</code>\n")

        async def story(visit: Visit) -> None:
            page = visit.page
            await visit.begin()
            await visit.say(f"{IMAGE} [x](javascript:alert(12))")
            for shown in (IMAGE, "onerror=alert(10)"):
                await expect(visit.question).to_contain_text(shown)
                answer = visit.question.get_by_role("button", name="Allow once")
                await expect(answer).to_be_enabled()
                before = await visit.question.get_attribute("data-question")
                await answer.click()
                await expect(page.locator(f'[data-question="{before}"]')).to_have_count(0)
            await visit.idle()
            folded = visit.transcript.locator(
                'details:not([open]) > summary, .call-head[aria-expanded="false"]:enabled'
            )

            async def is_unfolded() -> bool:
                return await folded.count() == 0

            await until(is_unfolded, "all is unfolded", folded.first.click)
            await expect(visit.transcript.locator(".command")).to_contain_text("done")
            await page.keyboard.press("Escape")
            # Each is there, as text.
            for text in ("<script>alert(2)</script>", "<svg onload=alert(3)>", "<svg/onload=alert(8)>", "<style>"):
                await expect(visit.transcript).to_contain_text(text)
            made = page.locator(
                "script:not([src='/page.js']), iframe, base, object, embed, "
                ".prose img, .prose svg:not(button > .icon), .prose style"
            )
            await expect(made).to_have_count(0)
            links = await visit.transcript.locator("a[href]").evaluate_all("all => all.map(one => [one.href, one.rel])")
            assert [href for href, _ in links] == ["https://evil.example/leak.png", "https://example.org/"]
            assert all("noopener" in rel for _, rel in links)
            await expect(page.locator(".session-rows")).to_contain_text("<img src=x")

        in_browser(web, story)


def test_a_name_of_an_attachment_cannot_be_read_as_another(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=DONE) as web:

        async def story(visit: Visit) -> None:
            page = visit.page
            await visit.begin()
            text: FilePayload = {"name": "100%\u202egpj.sh", "mimeType": "text/plain", "buffer": b"echo"}
            await page.get_by_label("Files", exact=True).set_input_files([text])
            await expect(page.locator(".composer .attachment")).to_contain_text("100%⟨U+202E⟩gpj.sh")
            await visit.say("look")
            await visit.idle()
            await expect(visit.messages.last).to_contain_text("100%⟨U+202E⟩gpj.sh")

        in_browser(web, story)
