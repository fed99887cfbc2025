"""The head of a Markdown file."""

import pytest

from crow.project.folder_files import split_head


@pytest.mark.parametrize(
    ("text", "head", "body"),
    [
        ("just text", {}, "just text"),
        ("---\nname: pdf\ndescription: Makes PDFs\n---\nbody\n", {"name": "pdf", "description": "Makes PDFs"}, "body"),
        ('---\r\ndescription: "a: b"\r\n---\r\nbody', {"description": "a: b"}, "body"),
        ("\ufeff---\nName: x\n---\n", {"name": "x"}, ""),
        ("---\ndescription: >\n  two\n  lines\n---\nbody", {"description": "two lines"}, "body"),
        ("---\n# a remark: yes\nlist:\n- one\nname: x\n---\n", {"list": "", "name": "x"}, ""),
        ("---\nnever: closed\n", {}, "---\nnever: closed"),
        ("", {}, ""),
    ],
)
def test_key_value_lines_between_two_fences_are_the_head(text, head, body):
    assert split_head(text) == (head, body)
