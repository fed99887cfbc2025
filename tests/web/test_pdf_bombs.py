"""PDF files that were made to do harm: each costs a bounded amount of memory and processor time, and says what came."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crow.web.conversion_process import MOST_CPU
from tests.support.patience import DEADLINE
from tests.web import pdf_file

MOST_MEMORY = 512 * 1024
"""Kilobytes. Half of what the process is allowed, which the system sees to."""
MEASURE = """
import asyncio, json, resource, sys
from crow.errors import WebError
from crow.web.conversion_process import Job
from crow.web.page_content import convert_page

content = open(sys.argv[1], "rb").read()
try:
    done = asyncio.run(convert_page(Job("pdf", len(content), "http://example.com/"), content, float(sys.argv[2])))
    told = {"text": done.text[:100], "note": done.note, "problem": ""}
except WebError as error:
    told = {"text": "", "note": "", "problem": str(error)}
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps(told | {"memory": used.ru_maxrss, "seconds": used.ru_utime + used.ru_stime}))
"""
"""In a process of its own: the system counts the memory of whoever starts a process to the process."""

CUT = "too complex"
DAMAGED = "damaged"
HELLO = "--- page 1 of 1 ---\nHello crow"
LARGE: dict[str, tuple[Callable[[], bytes], str]] = {
    "a stream of zeros": (pdf_file.huge_content, CUT),
    "a stream of drawing": (lambda: pdf_file.huge_content(pdf_file.HELLO, 300), CUT),
    "a stream of drawing that just fits": (lambda: pdf_file.huge_content(pdf_file.HELLO, 60), CUT),
    "a stream packed twice": (pdf_file.packed_twice, CUT),
    "a stream of objects": (pdf_file.huge_object_stream, DAMAGED),
    "a deep tree of pages": (pdf_file.deep_tree, DAMAGED),
    "a doubling tree of pages": (pdf_file.doubling_tree, DAMAGED),
    "a circular tree of pages": (pdf_file.circular_tree, DAMAGED),
}
SLOW = ("a stream of zeros", "a stream of drawing that just fits", "a stream packed twice", "a stream of objects")


def measured(content: bytes, folder: Path) -> dict[str, Any]:
    path = folder / "bomb.pdf"
    path.write_bytes(content)
    done = subprocess.run([sys.executable, "-c", MEASURE, str(path), str(DEADLINE)], capture_output=True, check=True)
    told = json.loads(done.stdout)
    assert told["memory"] < MOST_MEMORY
    assert told["seconds"] < MOST_CPU["pdf"] + 2  # the system ends it at the limit; starting counts as well
    return told


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in LARGE]
)
def test_a_bomb_is_refused_in_words(name: str, tmp_path: Path):
    make, said = LARGE[name]
    content = make()
    assert len(content) < 8 * 1024 * 1024, "it would not be fetched whole"
    assert said in measured(content, tmp_path)["problem"]


@pytest.mark.slow
def test_of_pages_that_would_take_minutes_those_are_given_that_could_be_read_in_time(tmp_path: Path):
    told = measured(pdf_file.slow_pages(200), tmp_path)
    assert told["text"].startswith("--- page 1 of 201 ---\nHello crow")
    assert told["note"].startswith("only the first ")


def test_a_number_of_pages_that_is_not_true_is_not_believed(tmp_path: Path):
    assert measured(pdf_file.false_count(), tmp_path)["text"] == HELLO


def test_a_page_that_cannot_be_read_does_not_cost_the_others(tmp_path: Path):
    bomb = pdf_file.stream(pdf_file.packed(b"", b"\\0", 300), "/Filter /FlateDecode")
    pages = {2: pdf_file.folder(4, 6), 4: pdf_file.leaf(5), 5: bomb, 6: pdf_file.leaf(7)}
    objects = {1: pdf_file.CATALOG, 3: pdf_file.FONT, **pages, 7: pdf_file.stream(pdf_file.HELLO)}
    told = measured(pdf_file.file_of(objects), tmp_path)
    assert told["text"] == "--- page 1 of 2 ---\n(this page cannot be read)\n\n--- page 2 of 2 ---\nHello crow"
