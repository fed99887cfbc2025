"""Every view, light and dark, is free of what axe-core calls serious; and a phone gets a layout of its own."""

from pathlib import Path
from typing import Any

from playwright.async_api import Page

from tests.browser.page import PHONE, Visit, crow_web, expect, in_browser
from tests.support.page_build import ROOT
from tests.support.scripts import DONE, call, edit, reply, run, say

AXE = ROOT / "page/node_modules/axe-core/axe.min.js"
PROSE = """\
# Head

A *word*, `code`, [a link](https://example.org/).

```python
def f(x): return x  # so
```

- one
- two

| a | b |
|---|---|
| 1 | 2 |
"""
PLAN = call(
    "plan", entries=[{"content": "Look", "status": "completed"}, {"content": "Change", "status": "in_progress"}]
)
SCRIPT = (
    reply("{ thought = 'Hm.' }", say(PROSE), PLAN, edit("a.py", "x = 1", "x = 2"))
    + reply(run("printf '\\033[31mred\\033[0m\\n'; exit 3"))
    + DONE
)


async def serious(page: Page, view: str) -> list[str]:
    """What axe-core finds serious or critical in what is seen, light and dark."""
    found: list[str] = []
    for scheme in ("light", "dark"):
        await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        await expect(page.locator(f'html[data-theme="{scheme}"]')).to_be_attached()
        result: dict[str, Any] = await page.evaluate(
            "async () => await axe.run(document, {resultTypes: ['violations']})"
        )
        for one in result["violations"]:
            if one["impact"] in ("serious", "critical"):
                found += [
                    f"{view}, {scheme}: {one['id']}: {node['html'][:160]} {node['failureSummary'][-200:]}"
                    for node in one["nodes"]
                ]
    return found


async def prepared(visit: Visit) -> None:
    await visit.page.evaluate(AXE.read_text())


def test_no_view_has_a_serious_fault(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=SCRIPT) as web:
        (web.workspace / "a.py").write_text("x = 1\n")

        async def story(visit: Visit) -> None:
            page = visit.page
            await prepared(visit)
            found = await serious(page, "nothing open")
            for key, name in (("n", "New session"), ("?", "Keys"), ("Control+k", "Command palette")):
                await page.keyboard.press(key)
                await expect(page.get_by_role("dialog", name=name)).to_be_visible()
                found += await serious(page, name)
                await page.keyboard.press("Escape")
            await visit.begin()
            await visit.say("change it")
            await expect(visit.question.get_by_role("button", name="Allow once")).to_be_enabled()
            await expect(visit.question.locator(".add")).to_be_visible()
            found += await serious(page, "a question with a diff")
            await visit.question.get_by_role("button", name="Allow once").click()
            await expect(visit.question).to_contain_text("printf")
            await expect(visit.question.get_by_role("button", name="Allow once")).to_be_enabled()
            found += await serious(page, "a question with a command")
            await visit.question.get_by_role("button", name="Allow once").click()
            await visit.idle()
            await page.get_by_role("button", name="Changed files").first.click()
            await visit.transcript.get_by_text("Thought").click()
            await page.locator(".plan summary").click()
            found += await serious(page, "talk")
            await page.set_viewport_size({"width": 390, "height": 800})
            found += await serious(page, "phone")
            assert not found, "\n".join(found)

        in_browser(web, story)


def test_a_phone_shows_one_thing_at_a_time_and_enter_is_a_new_line(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=SCRIPT) as web:
        (web.workspace / "a.py").write_text("x = 1\n")

        async def story(visit: Visit) -> None:
            page = visit.page
            await page.get_by_role("button", name="New session").click()
            await page.get_by_label("Folder").fill(str(web.workspace))
            await page.get_by_role("button", name="Begin").tap()
            await expect(page.get_by_role("navigation", name="Sessions")).to_be_hidden()
            await visit.composer.fill("change")
            await visit.composer.press("Enter")
            await visit.composer.press_sequentially("it")
            await expect(visit.composer).to_have_value("change\nit")
            await page.get_by_role("button", name="Send").tap()
            views = page.get_by_role("navigation", name="Views")
            await expect(views.get_by_role("button", name="Questions")).to_contain_text("1")
            await views.get_by_role("button", name="Questions").tap()
            await expect(visit.transcript).to_be_hidden()
            answer = visit.question.get_by_role("button", name="Allow once")
            await expect(answer).to_be_enabled()
            box = await answer.bounding_box()
            assert box is not None
            assert box["height"] >= 44  # what a thumb can hit
            assert box["width"] > PHONE["width"] * 0.8
            await answer.tap()
            await expect(visit.question).to_contain_text("printf")
            await views.get_by_role("button", name="Talk").tap()
            await expect(visit.transcript).to_be_visible()
            await views.get_by_role("button", name="Changes").tap()
            await expect(page.get_by_role("complementary", name="Changed files")).to_be_visible()
            await expect(visit.transcript).to_be_hidden()
            await views.get_by_role("button", name="Talk").tap()
            await page.get_by_role("button", name="All sessions").tap()
            await expect(page.get_by_role("navigation", name="Sessions")).to_be_visible()
            width = await page.evaluate("document.documentElement.scrollWidth")
            assert width == PHONE["width"]  # nothing sticks out

        in_browser(web, story, viewport=PHONE, has_touch=True, is_mobile=True)
