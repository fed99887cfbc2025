"""Custom commands and skills as files: names, descriptions, and what becomes of what was typed."""

import os

import pytest

from crow.project.folder_files import (
    LARGEST_FILE,
    MOST_FILES,
    MOST_FOLDERS,
    OF_PROJECT,
    OF_USER,
    Skill,
    WatchedFolder,
    prompt_files_in,
    read_command,
    read_skill,
)
from crow.project.trusted_sources import LONGEST_LISTING, skills_listing


@pytest.mark.parametrize(
    ("body", "arguments", "expanded"),
    [
        ("Review.", "", "Review."),
        ("Review.", "the parser", "Review.\n\nthe parser"),
        ("Review $ARGUMENTS now", "a b", "Review a b now"),
        ("$1 then $2, not $3.", "'a b' c", "a b then c, not ."),
        ("$2", '"x" "y z"', "y z"),
        ("$1", "$2 $ARGUMENTS", "$2"),
        ("costs $10, $ARGUMENTSX", "arg", "costs $10, $ARGUMENTSX\n\narg"),
    ],
)
def test_what_was_typed_goes_into_its_places_or_to_the_end(body, arguments, expanded):
    command = read_command("/x/a.md", "a.md", body.encode())
    assert command is not None
    assert command.expand(arguments) == expanded


@pytest.mark.parametrize(
    ("inner", "name"),
    [
        ("review.md", "review"),
        ("git/review.md", "git:review"),
        ("a b/c;d.md", "a-b:c-d"),
        ("größe.md", "größe"),
        ("x:y.md", "x-y"),
        ("a\nb.md", "a-b"),
    ],
)
def test_a_command_is_called_like_its_file_in_characters_that_can_be_typed(inner, name):
    command = read_command("/x", inner, b"text")
    assert command is not None
    assert command.name == name


def test_a_file_without_a_name_or_a_text_is_no_command():
    assert read_command("/x", "!!!.md", b"text") is None
    assert read_command("/x", "a.md", b"---\ndescription: x\n---\n") is None
    assert read_skill("/x", "a", b"   ") is None


def test_a_description_is_one_visible_line():
    command = read_command("/x", "a.md", "---\ndescription: a\u202eb\x1b[31m\n---\nbody".encode())
    assert command is not None
    assert command.description == "a⟨U+202E⟩b⟨U+001B⟩[31m"
    bare = read_command("/x", "a.md", b"# The title\n\nbody")
    assert bare is not None
    assert bare.description == "The title"


def test_the_list_of_skills_for_the_model_is_capped():
    skills = [Skill(f"s{number}", "d" * 200, "body", f"/skills/s{number}/SKILL.md") for number in range(50)]
    text = skills_listing(skills)
    assert len(text) < LONGEST_LISTING + 50
    assert "more are not listed" in text
    assert skills_listing([]) == ""


# --- the files


def write(path, text="text"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_only_a_change_makes_the_files_be_read_again(tmp_path):
    write(tmp_path / "commands/a.md")
    write(tmp_path / "skills/pdf/SKILL.md", "---\ndescription: PDFs\n---\nbody")
    write(tmp_path / "skills/pdf/other.md")
    folder = WatchedFolder(str(tmp_path), OF_USER)
    assert folder.refresh()
    files = prompt_files_in(folder.now, OF_USER)
    assert [command.name for command in files.commands] == ["a"]
    assert [(found.name, found.description) for found in files.skills] == [("pdf", "PDFs")]
    assert not folder.refresh()
    write(tmp_path / "commands/deep/er/b.md")
    assert folder.refresh()
    assert list(folder.now.files) == ["commands/a.md", "commands/deep/er/b.md", "skills/pdf/SKILL.md"]
    (tmp_path / "commands/a.md").unlink()
    assert folder.refresh()
    before = folder.now.digest
    write(tmp_path / "commands/deep/er/b.md", "txet")
    assert folder.refresh()
    assert folder.now.digest != before


def test_a_projects_links_are_not_followed_and_a_users_are(tmp_path):
    outside = tmp_path / "outside"
    write(outside / "key.md", "secret")
    write(outside / "skill/SKILL.md")
    root = tmp_path / "root"
    write(root / ".crow/commands/fine.md")
    (root / ".crow/commands/key.md").symlink_to(outside / "key.md")
    (root / ".crow/commands/folder").symlink_to(outside)
    (root / ".crow/skills").mkdir()
    (root / ".crow/skills/linked").symlink_to(outside / "skill")
    (root / ".mcp.json").symlink_to(outside / "key.md")
    project = WatchedFolder(str(root), OF_PROJECT)
    project.refresh()
    assert list(project.now.files) == [".crow/commands/fine.md"]
    assert all("symbolic link" in reason for reason in project.now.left_out)
    assert len(project.now.left_out) == 4

    (tmp_path / "commands").symlink_to(outside)
    users = WatchedFolder(str(tmp_path), OF_USER)
    users.refresh()
    assert list(users.now.files) == ["commands/key.md", "commands/skill/SKILL.md"]


def test_a_linked_crow_folder_of_a_project_brings_nothing(tmp_path):
    write(tmp_path / "elsewhere/commands/a.md")
    write(tmp_path / "elsewhere/config.toml")
    (tmp_path / "root").mkdir()
    (tmp_path / "root/.crow").symlink_to(tmp_path / "elsewhere")
    project = WatchedFolder(str(tmp_path / "root"), OF_PROJECT)
    project.refresh()
    assert project.now.files == {}


def test_pipes_huge_files_and_too_many_are_left_out(tmp_path):
    commands = tmp_path / "commands"
    write(commands / "huge.md", "x" * (LARGEST_FILE + 1))
    os.mkfifo(commands / "pipe.md")
    for number in range(MOST_FILES + 5):
        write(commands / f"z{number}.md")
    folder = WatchedFolder(str(tmp_path), OF_USER)
    folder.refresh()
    assert len(folder.now.files) == MOST_FILES - 2
    left_out = "\n".join(folder.now.left_out)
    assert "huge.md: larger than 64 kB" in left_out
    assert "pipe.md: not a regular file" in left_out
    assert "all files but 200" in left_out


def test_a_link_that_leads_back_is_not_followed_round_and_round(tmp_path):
    commands = tmp_path / "commands"
    write(commands / "a.md")
    (commands / "loop").symlink_to(".")
    write(tmp_path / "one/b.md")
    (tmp_path / "one/up").symlink_to(commands)
    (commands / "one").symlink_to(tmp_path / "one")
    folder = WatchedFolder(str(tmp_path), OF_USER)
    folder.refresh()
    assert list(folder.now.files) == ["commands/a.md", "commands/one/b.md"]


def test_a_look_stays_quick_whatever_a_folder_holds(tmp_path):
    deep = tmp_path / "commands"
    for number in range(MOST_FOLDERS + 20):
        write(deep / f"f{number:03}" / "a.md")
    folder = WatchedFolder(str(tmp_path), OF_USER)
    folder.refresh()
    assert len(folder.now.files) == MOST_FOLDERS - 1
