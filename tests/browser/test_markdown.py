"""What models write is drawn as they mean it: no character is lost, and live it looks as it does when it is loaded."""

import random
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Page

from tests.browser.chromium import play
from tests.browser.page import PHONE, Visit, crow_web, expect, in_browser
from tests.support.page_parts import bundled
from tests.support.scripts import DONE, reply, say

TEXT = """\
# Names

Set a[i] = b[j] for snake_case_name in `__init__.py`; [WARN] it costs $5, 2 * 3 * 4 = 24.
**Bold**, *so*, ~~gone~~, ~5 min.
See https://example.org/a_b_c, (https://example.org/x) and [docs](https://example.org/y_(z) "title")[^1].

- one
  - two
    - three

    still two
- four

  more of four
1) first
2) second
   ```make
   all:
   \techo $x
   ```
3) third

name | size
--- | --:
`a|b` | 1
c \\| d | 2 | too | many

> quoted
> - in a list

- [x] done
- [ ] to do

[^1]: The note.

שלום, world

~~~
not **bold** here
~~~

An *unclosed thing, and `another

```python
never = "closed"
"""
SEEN = (
    "a[i] = b[j] for snake_case_name in",
    "[WARN] it costs $5, 2 * 3 * 4 = 24.",
    "~5 min.",
    "too | many",
    "not **bold** here",
    "An *unclosed thing, and `another",
)
LINES = """(one) => {
    const range = document.createRange();
    range.selectNodeContents(one);
    return range.getClientRects().length;
}"""


def test_markdown_is_what_was_meant_live_and_loaded(tmp_path: Path) -> None:
    with crow_web(tmp_path, script=reply(say(TEXT)) + DONE) as web:

        async def story(visit: Visit) -> None:
            await visit.begin()
            await visit.say("write")
            await visit.idle()
            prose = visit.transcript.locator(".prose")

            async def seen() -> str:
                for text in SEEN:
                    await expect(prose).to_contain_text(text)
                await expect(prose.locator("strong, em, s")).to_have_text(["Bold", "so", "gone"])
                await expect(prose.locator("ul ul ul li")).to_have_text(["three"])
                await expect(prose.locator("ul ul > li > p").last).to_have_text("still two")
                await expect(prose.locator("ul > li", has_text="four").last).to_contain_text("more of four")
                await expect(prose.locator("ol > li")).to_have_count(3)
                await expect(prose.locator("ol > li pre")).to_have_text("all:\n\techo $x", use_inner_text=True)
                await expect(prose.locator("tbody td")).to_have_text(["a|b", "1", "c | d", "2 | too | many"])
                await expect(prose.locator("blockquote li")).to_have_text("in a list")
                await expect(prose.locator(".task input:checked")).to_have_count(1)
                await expect(prose.locator("pre").last).to_have_text('never = "closed"')
                links = await prose.locator("a").evaluate_all("all => all.map(one => one.getAttribute('href'))")
                assert links == [f"https://example.org/{path}" for path in ("a_b_c", "x", "y_(z)")]
                assert await prose.get_by_text("שלום").evaluate("one => getComputedStyle(one).direction") == "rtl"
                await expect(prose.locator(".hljs-string, [class*=string]").last).to_be_visible()  # coloured, at last
                return await prose.evaluate("one => one.innerHTML")

            live = await seen()
            await visit.page.reload()
            await visit.connected()
            assert await seen() == live

        in_browser(web, story)


def test_a_wide_table_keeps_its_words_on_a_phone(tmp_path: Path) -> None:
    row = "| " + " | ".join(f"considerable {column}" for column in range(8)) + " |\n"
    text = row + "|---" * 8 + "|\n" + row * 3
    with crow_web(tmp_path, script=reply(say(text)) + DONE) as web:

        async def story(visit: Visit) -> None:
            await visit.begin()
            await visit.say("write")
            await visit.idle()
            cell = visit.transcript.locator("td").first
            assert await cell.evaluate(LINES) <= 2
            assert await visit.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
            assert await visit.transcript.locator(".table").evaluate("one => one.scrollWidth > one.clientWidth")

        in_browser(web, story, viewport=PHONE)


LONG = 40_000
HOSTILE = (
    "http://a" + ")" * LONG,
    "[a" * (LONG // 6) + "](x)" * (LONG // 6),
    "*a " * (LONG // 6) + "a*" * (LONG // 6),
    "[a](" + " " * LONG + "x",
    "# a" + " " * LONG + "b",
    "a|b\n|-" + " " * LONG + "x",
    "` " + "a" * LONG + "`",
    "- ```\n" + "  x\n\n" * (LONG // 5) + "  ```",
    "-\n" * (LONG // 2),
    "- a\n" + "b\n" * (LONG // 2),
    "> a\n" + "b\n" * (LONG // 2),
)
"""Each takes a time that grows with the square of its length, if one looks at it naively."""


def test_nothing_that_a_model_writes_holds_up_the_page(tmp_path: Path) -> None:
    text = "\n\n".join(HOSTILE) + "\n\nThe very end."
    with crow_web(tmp_path, script=reply(say(text)) + DONE) as web:

        async def story(visit: Visit) -> None:
            await visit.begin()
            devtools = await visit.page.context.new_cdp_session(visit.page)
            # The processor's time: how long the page waits for it on a busy machine is not its own work.
            await devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
            await visit.say("write")
            await expect(visit.transcript.get_by_text("The very end.")).to_be_attached()
            metrics = await devtools.send("Performance.getMetrics")
            took = next(one["value"] for one in metrics["metrics"] if one["name"] == "ScriptDuration")
            assert took < 8, f"{took:.1f} s of script"

        in_browser(web, story)


# --- the stream itself, without Crow

STREAM = """
import { markdownInto } from "page/markdown/stream";
const { setTimeout } = globalThis;
Object.assign(globalThis, {
  begin() {
    document.body.replaceChildren(document.createElement("div"));
    return markdownInto(document.body.firstElementChild as HTMLElement);
  },
  /** `isRested`: each piece is drawn at once, however long the one before took. */
  drawn(pieces: string[], isRested = true, stream = (globalThis as any).begin(), isEnd = true) {
    if (isRested) globalThis.setTimeout = ((draw: () => void) => draw()) as any;
    for (const piece of pieces) stream.write(piece);
    globalThis.setTimeout = setTimeout;
    if (isEnd) stream.end();
    return document.body.firstElementChild!;
  },
});
"""


def with_stream(folder: Path, story: Callable[[Page], Coroutine[Any, Any, None]]) -> None:
    bundle = bundled(STREAM, folder, "--format=iife")

    async def open_page(browser: Browser) -> None:
        async with await browser.new_page() as page:
            await page.add_script_tag(path=bundle)
            await story(page)

    play(open_page)


TALE = """1. Do:
   ```sh
   make all

     indented

   ```python
   more
   ```
2. Then:

   > ~~~
   > quoted
   >
   > code
   not code
3. Nothing
"""
WHOLE = {
    "everything": TEXT,
    "code": "Before\n```\na\n\n  ``\n\tb\n``` no end\n\n\n```\nafter\n```py\nnever closed\n\n",
    "longer marks": "````md\n```py\nx = 1\n```\n~~~\n   ````  \ntext\n",
    "carriage returns": "```\r\na\r\n\r\nb\r\n```\r\n- x\r\n- y\r\n- z\r\n\r\nend\r",
    "code in other blocks": TALE,
    "code that ends its list": "- a\n  ```\n  b\n\n c\n- d\n  ```\n  e\n\n\n",
    "list": "Words:\n" + "- item\n  more *of* it\n" * 9 + "\n- loose\n- [x] done\n-- none\n",
    "numbers": "7. a\n8. b\n9. c\n10. d\n12",
    "loose, then long": "- a\n\n- b\n" + "- c\n" * 6 + "\n* other\n* list\n* again\n* * *\nend",
    "table": "a|b\n-|-:\n" + "`x|y` | 1\n" * 6 + "no row\n\n| c |\n|---|\n| d |\n| e |\n| f |\n| g",
    "from the right": "- שלום\n- world\n\n> مرحبا\n\n1. world\n   - שלום\n",
}


DIFFERING = """([text, cuts]) => {
    const expected = drawn([text]);
    expected.normalize(); // into how many nodes a text is divided is of no account
    const differs = (node) => {
        node.normalize();
        return node.isEqualNode(expected) ? [] : [node.innerHTML, expected.innerHTML];
    };
    return cuts.flatMap((pieces) => [...differs(drawn(pieces)), ...differs(drawn(pieces, false))]).slice(0, 2);
}"""


def test_text_drawn_piece_by_piece_is_the_text_drawn_at_once(tmp_path: Path) -> None:
    def pieces(text: str, longest: int, chance: random.Random) -> list[str]:
        found, at = list[str](), 0
        while at < len(text):
            found.append(text[at : (at := at + chance.randint(1, longest))])
        return found

    async def story(page: Page) -> None:
        for name, text in WHOLE.items():
            chance = random.Random(name)
            cuts = [pieces(text, longest, chance) for longest in [*range(1, 9)] * 4]
            assert await page.evaluate(DIFFERING, [text, [*cuts, text.splitlines(keepends=True)]]) == [], name

    with_stream(tmp_path, story)


COUNT = """([begin, line, count, end]) => {
    const { split } = String.prototype;
    let read = 0;
    String.prototype.split = function (...given) {
        read += this.length;
        return split.apply(this, given);
    };
    const text = begin + line.repeat(count) + end;
    drawn(text.match(/[^]{1,40}/g));
    String.prototype.split = split;
    const longest = [...document.querySelectorAll("code")].map((code) => code.childNodes.length);
    return { read, nodes: Math.max(0, ...longest), length: document.body.textContent.length };
}"""
GROWING = {
    "code": ("```\n", "    value = compute(left, right)  # and so on\n", "```\n"),
    "code that is never closed": ("~~~ text\n", "and so on, and so on\n\n", ""),
    "code in a list": ("1. Do:\n   ```\n", "   some code, which is in a list\n\n", "   ```\n"),
    "code in a quote": ("> ```\n", "> some code, which is in a quote\n", ""),
    "code in one line": ("```\n", "no end of line ", "\n```\n"),
    "list": ("Words:\n", "- an item of the list, with some words\n", ""),
    "table": ("name | size\n--- | ---\n", "some name here | 12345 and more words\n", ""),
    "paragraphs": ("", "Some words, and then\nsome more.\n\n", ""),
}


def test_what_is_drawn_is_not_read_again(tmp_path: Path) -> None:
    async def story(page: Page) -> None:
        for name, (begin, line, end) in GROWING.items():
            few, many = [await page.evaluate(COUNT, [begin, line, count, end]) for count in (200, 2000)]
            assert many["length"] > 9 * few["length"], name
            assert many["read"] < 11 * few["read"], name
            assert many["nodes"] < 2 + many["length"] / 4000, name  # not one for each piece

    with_stream(tmp_path, story)


SELECT = """([text, words]) => {
    globalThis.stream = begin();
    drawn([text], true, stream, false);
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
        const at = walk.currentNode.data.indexOf(words);
        if (at >= 0) getSelection().setBaseAndExtent(walk.currentNode, at, walk.currentNode, at + words.length);
    }
    return String(getSelection());
}"""
SELECTED = {
    "paragraph": ("These words *are* selected", " and more, *with* `signs` [in](https://example.org) it\n\nNext."),
    "heading": ("# A title: these words", " and `more`\n"),
    "code": ("```\nthese words\n", "more\n```\n\nNext"),
    "item": ("- one\n- two\n- three: these words", " go *on*\n- four\n- five\n"),
    "cell": ("a | b\n--- | ---\n1 | these words", " go on | and on\n2 | 3\n"),
}


def test_what_is_selected_stays_so_while_more_is_written(tmp_path: Path) -> None:
    async def story(page: Page) -> None:
        for name, (before, after) in SELECTED.items():
            words = "These words" if "These words" in before else "these words"
            assert await page.evaluate(SELECT, [before, words]) == words, name
            for sign in after:
                await page.evaluate("sign => drawn([sign], true, stream, false) && null", sign)
                assert await page.evaluate("String(getSelection())") == words, name
            await page.evaluate("stream.end()")

    with_stream(tmp_path, story)


def test_a_list_is_read_from_the_side_of_its_first_letter(tmp_path: Path) -> None:
    async def story(page: Page) -> None:
        await page.evaluate("drawn(['- שלום\\n- world\\n\\n> مرحبا\\n\\n1. world\\n'])")
        sides = "['ul', 'blockquote', 'ol'].map(one => getComputedStyle(document.querySelector(one)).direction)"
        assert await page.evaluate(sides) == ["rtl", "rtl", "ltr"]

    with_stream(tmp_path, story)
