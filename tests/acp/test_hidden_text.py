"""What hides in a text that a person approves or answers is shown, and they are warned of it: a real `crow acp`."""

from tests.support.editor import EVERYTHING, chose
from tests.support.scripts import DONE, call, reply, run

TE = "\u0442"  # a Cyrillic letter that looks like a Latin one
BLANKS = " " * 400


def everything(value) -> str:
    """All texts of a message."""
    if isinstance(value, dict):
        return "\n".join(map(everything, value.values()))
    if isinstance(value, list):
        return "\n".join(map(everything, value))
    return str(value)


def test_commands_and_their_folders(open_editor):
    crow = open_editor(
        script=reply(run(f"gi{TE} status{BLANKS}; rm x\n\n\n\n\n\n\n\n\nrm y", cwd=f"src\u202e{TE}x")) + DONE
    )
    (crow.workspace / f"src\u202e{TE}x").mkdir()
    crow.new_session()
    crow.prompt("go")
    [request] = crow.permissions
    shown = everything(request["toolCall"]["content"])
    assert f"gi⟨{TE} U+0442⟩ status⟨400 blanks⟩; rm x\n⟨8 empty lines⟩\nrm y" in shown
    assert f"in src⟨U+202E⟩⟨{TE} U+0442⟩x" in shown
    assert "⟨400 blanks⟩; rm x" in request["toolCall"]["title"]
    assert (
        "Careful: contains a long run of blanks, many empty lines, look-alike letters or signs and "
        "invisible characters." in shown
    )


def test_a_warning_stands_alone_where_nothing_else_is_to_be_said(open_editor):
    crow = open_editor(script=reply(run(f"echo a{BLANKS}; rm x")) + DONE)
    crow.new_session()
    crow.prompt("go")
    [request] = crow.permissions
    said = [block["content"]["text"] for block in request["toolCall"]["content"]]
    assert said == ["```bash\necho a⟨400 blanks⟩; rm x\n```", "Careful: contains a long run of blanks."]


def test_paths_hosts_and_names_of_tools(open_editor):
    script = reply(
        call("write", path=f"read{TE}me.txt", content="x"),
        call("unheard\u202eof", x=1),
        call("write", path="b.txt", content="a = 1" + BLANKS + "evil()\n"),
    )
    crow = open_editor(script=script + DONE)
    crow.new_session()
    crow.prompt("go")
    first, second = crow.permissions
    assert f"read⟨{TE} U+0442⟩me.txt" in first["toolCall"]["title"]
    assert "look-alike letters or signs" in everything(first)
    assert "far to the right" in everything(second)
    opened = [update for update in crow.updates if update["sessionUpdate"] == "tool_call"]
    assert "\u202e" not in everything([{**update, "rawInput": None} for update in opened])


def test_questions_options_and_plans(open_editor):
    script = reply(
        call("ask", question=f"Delete{BLANKS}everything? <!-- yes -->", options=["k\u0435ep", "remove\u200b"]),
        call("plan", entries=[{"content": f"s{TE}ep \u202eone [x](http://evil)"}]),
    )
    crow = open_editor(
        script=script + DONE,
        capabilities=EVERYTHING,
        answers={"elicitation/create": lambda request: {"action": "accept", "content": {"answer": "keep"}}},
    )
    crow.new_session()
    crow.prompt("go")
    asked = next(e.message["params"] for e in crow.conversation if e.message.get("method") == "elicitation/create")
    assert "⟨400 blanks⟩" in asked["message"]
    assert "< !-- yes" in asked["message"]
    assert "Careful: contains" in asked["message"]
    assert asked["requestedSchema"]["properties"]["answer"]["enum"] == ["k⟨\u0435 U+0435⟩ep", "remove⟨U+200B⟩"]
    plan = next(update for update in crow.updates if update["sessionUpdate"] == "plan")
    assert plan["entries"][0]["content"] == f"s⟨{TE} U+0442⟩ep ⟨U+202E⟩one [x] (http://evil)"


def test_a_plan_to_agree_to(open_editor):
    plan = f"1. tidy up{BLANKS}and more\n<!-- then rm -rf -->\n\n\n\n\n\n\n\n2. p\u0430y"
    crow = open_editor(script=reply(call("leave_plan", plan=plan)) + DONE, environment={"CROW_MODE": "plan"})
    crow.new_session()
    crow.prompt("go")
    shown = everything(crow.permissions[0]["toolCall"]["content"])
    assert "tidy up⟨400 blanks⟩and more" in shown
    assert "< !-- then rm" in shown
    assert "⟨7 empty lines⟩" in shown
    assert "p⟨\u0430 U+0430⟩y" in shown
    assert "Careful: contains" in shown


def test_a_plan_hides_nothing_while_it_arrives(open_editor):
    """Every update on its way, not the last one alone: a person reads along."""
    plan = "1. tidy\x1b[2J up\u202e and\U000e0041 more\x07\x9b\n" * 20 + "<!-- rm -->"
    script = reply(call("leave_plan", plan=plan, pieces=50), call("task", kind="work", prompt=plan, pieces=50))
    crow = open_editor(script=script + DONE, environment={"CROW_MODE": "plan"})
    crow.new_session()
    crow.prompt("go")
    calls = [{**update, "rawInput": None} for update in crow.updates if "toolCallId" in update]
    shown = everything([*calls, *crow.permissions])
    assert "tidy⟨U+001B⟩[2J up⟨U+202E⟩" in shown
    assert sorted({character for character in shown if character in "\x1b\x07\x9b\u202e\U000e0041"}) == []
    assert "<!--" not in shown


def test_what_an_always_grants_is_shown_in_full_or_not_offered(open_editor):
    crow = open_editor(script=reply(run("unheard-of " + "a" * 400), run("unheard-of " + "a" * 100)) + DONE)
    crow.new_session()
    crow.prompt("go")
    offered = [[option["name"] for option in request["options"]] for request in crow.permissions]
    assert offered[0] == ["Allow once", "Reject"]
    assert any("a" * 100 in name for name in offered[1])
    assert not any("…" in name for names in offered for name in names)


def test_no_always_is_offered_whose_label_would_hide_something(open_editor):
    hiding = [f"a{BLANKS[:40]}b", "a\u202eb", "a\u200db", "a\u2800b", f"gi{TE}", "`<!-- x -->`", "`[x](http://evil)`"]
    crow = open_editor(script=reply(*(run(f"unheard-of '{text}'") for text in hiding)) + DONE)
    crow.new_session()
    crow.prompt("go")
    assert [len(request["options"]) for request in crow.permissions] == [2] * len(hiding)


def test_an_always_for_a_folder_is_about_the_root_that_it_was_given_for(open_editor, tmp_path):
    other = tmp_path / "other"
    (other / "src").mkdir(parents=True)
    writes = (call("write", path="src/b.txt", content="x"), call("write", path=f"{other}/src/b.txt", content="x"))
    script = reply(call("write", path="src/a.txt", content="x"), when="first") + DONE.replace(
        "repeat", 'when = "first"\nrepeat'
    )
    crow = open_editor(script=script + reply(*writes, when="second") + DONE, permit=lambda request: chose("project"))
    (crow.workspace / "src").mkdir()
    crow.new_session()
    crow.prompt("first")
    crow.permit = lambda request: chose("reject")
    crow.new_session(additionalDirectories=[str(other)])
    crow.prompt("second")
    assert [request["toolCall"]["locations"][0]["path"] for request in crow.permissions[1:]] == [f"{other}/src/b.txt"]


def test_commands_and_skills_that_become_prompts(open_editor):
    """What a file tells the model when it is called by name is what a person can read in it."""
    crow = open_editor(script=DONE * 2)
    for name in ("commands/review.md", "skills/tidy/SKILL.md"):
        (crow.home / name).parent.mkdir(parents=True, exist_ok=True)
        (crow.home / name).write_text("Look closely.\u200d\u200c\u3164 👩\u200d💻\U000e0041\n")
    crow.new_session()
    for command in ("/review", "/tidy"):
        crow.prompt(command)
        sent = everything(crow.model_requests()[-1]["messages"][-1])
        assert "closely.⟨U+200D⟩⟨U+200C⟩⟨U+3164⟩ 👩\u200d💻⟨U+E0041⟩" in sent
