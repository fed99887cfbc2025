"""The path globs of rules: what they match, as a matcher does that tries everything, and that they always come back."""

import random
from fnmatch import fnmatchcase
from functools import cache

import pytest

from crow.policy.rule_matching import PathGlob

PARTS = ["**", "**", "a", "b", "*", "a*", "?", "*a*b", "a*b*", "*?*", "a?*b"]
NAMES = ["a", "b", "ab", "aab", "abab", "root"]


def matches_plainly(glob: str, path: str) -> bool:
    parts, names = glob.split("/")[1:], path.split("/")[1:]

    @cache
    def fits(part: int, name: int) -> bool:
        if part == len(parts):
            return name == len(names)
        if parts[part] == "**":
            return fits(part + 1, name) or (name < len(names) and fits(part, name + 1))
        return name < len(names) and fnmatchcase(names[name], parts[part]) and fits(part + 1, name + 1)

    return fits(0, 0)


def test_globs_match_what_a_plain_matcher_matches():
    rng = random.Random(20260901)
    matched = 0
    for _ in range(5000):
        glob = "".join(f"/{rng.choice(PARTS)}" for _ in range(rng.randint(1, 6)))
        path = "".join(f"/{rng.choice(NAMES)}" for _ in range(rng.randint(1, 7)))
        expected = matches_plainly(glob, path)
        assert PathGlob(glob, ["/root"], generous=False).matches(path) == expected, (glob, path)
        matched += expected
    assert matched > 300


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("/w/" + "**/" * 30 + "z", "/w" + "/a" * 200),
        ("/w/" + "**/a/" * 30 + "z", "/w" + "/a" * 200),
        ("/w/" + "*a" * 60 + "b", "/w/" + "a" * 255),
        ("/w/**/" + "*a*/" * 20 + "z", "/w" + "/aaa" * 200),
    ],
)
def test_a_glob_with_many_stars_says_no_without_trying_every_way(glob, path):
    """One that tried them would not come back before the test's time is over."""
    for generous in (True, False):
        assert not PathGlob(glob, ["/w"], generous=generous).matches(path)
