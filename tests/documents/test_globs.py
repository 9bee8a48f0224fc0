"""Patterns of paths: what they match, as git has it, and in what time."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from lintfit.documents.globs import LONGEST, compiled, names_of
from tests.repository import CLEAN


def matches(pattern: str, path: str, *, full: bool = True, below: bool = False) -> bool:
    body = pattern.removeprefix("/")
    return compiled(body, "/" in pattern, full).matches(path.split("/"), below)


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("*.py", "a/b.py", True),
        ("*.py", "a/b.pyc", False),
        ("a*b*c", "aXbXbXc", True),
        ("a*b*c", "aXcXb", False),
        ("*ab", "aab", True),
        ("*a?*b", "axyb", True),
        ("*aa", "a", False),
        ("ab*ba", "aba", False),
        ("**/b", "b", True),
        ("**/b/**", "a/b", False),
        ("**/b/**", "a/b/c/d", True),
        ("a/**/b/**/c", "a/x/b/c", True),
        ("a/**/b/**/c", "a/c/b", False),
        ("a/**/**/b", "a/b", True),
        ("***/b", "b", True),
        ("a/***", "a/b/c", True),
        ("a/***", "a", False),
        ("a**b", "a/b", False),
        ("a**b", "axxb", True),
        ("/*", "a/b", False),
        ("[a-c]x", "bx", True),
        ("[!a-c]x", "bx", False),
        ("[^a-c]x", "dx", True),
        ("[]a]x", "]x", True),
        ("[z-a]x", "zx", False),
        ("[!z-a]x", "zx", True),
        ("[[:digit:]x]", "7", True),
        ("[[:nothing:]]", "n", False),
        ("[a", "a", False),
        (r"\*", "*", True),
        (r"\*", "a", False),
        (r"[\]]", "]", True),
        ("a\\", "a", False),
        ("x" * (LONGEST + 1), "x", False),
    ],
)
def test_what_matches(pattern: str, path: str, expected: bool) -> None:
    assert matches(pattern, path) is expected


def test_without_classes_all_but_stars_stands_for_itself() -> None:
    assert matches("[a]*", "[a]b", full=False)
    assert matches(r"a\b", r"a\b", full=False)


def test_what_lies_below() -> None:
    assert matches("a", "x/a/b", below=True)
    assert matches("/a", "a/b", below=True)
    assert not matches("/a", "x/a", below=True)


PIECES = st.lists(st.sampled_from(["a", "b", "*", "?", "**", "/", "[ab]", "[!a]", "\\a", "!"]), max_size=9).map("".join)
PATHS = st.lists(st.sampled_from(["a", "b", "ab", "ba", "aab"]), min_size=1, max_size=4).map("/".join)


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "--quiet", folder], check=True, env=CLEAN | {"PATH": "/usr/bin:/bin"})
    return folder


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pattern=PIECES, paths=st.lists(PATHS, min_size=6, max_size=12, unique=True))
@example(pattern="***/a", paths=["a", "a/a", "a/b", "b", "b/a", "b/b/a"])
@example(pattern="a/**/b", paths=["a/b", "a/a/b", "b", "a/b/a"])
def test_as_git_matches(pattern: str, paths: list[str], empty: Path) -> None:
    """Of single patterns over paths that are no folders, in a repository that holds none of them."""
    from lintfit.run.gitignore import _line

    line = _line(pattern)
    # git cuts off what precedes the first wildcard, and takes what is left of "b**/a" for "**/a": it ignores "ba"
    assume(not re.match(r"[^*?\[\\]*[^/*?\[\\]\*\*+(/|$)", pattern))
    if pattern.startswith("!") or "\\" in pattern[-1:]:
        return
    (empty / ".gitignore").write_text(f"{pattern}\n")
    asked = subprocess.run(
        ["git", "check-ignore", "--no-index", "--stdin", "-z"],
        cwd=empty,
        input="\0".join(paths).encode(),
        capture_output=True,
        check=False,
    )
    by_git = set(asked.stdout.decode().split("\0")) - {""}

    def ignored(path: str) -> bool:
        parts = path.split("/")
        above = (parts[:end] for end in range(1, len(parts)))
        if line is None:
            return False
        return (not line.folders and line.pattern.matches(parts)) or any(line.pattern.matches(each) for each in above)

    assert {path for path in paths if ignored(path)} == by_git


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*a" * 2000 + "b", "a" * 250),
        ("*a" * 120 + "b", "a" * 4000),
        ("?*" * 2000 + "b", "a" * 250),
        ("/" + "**/a/" * 800 + "b", "/".join(["a"] * 2000)),
        ("/" + "**/*a*a*a*b/" * 300 + "b", "/".join(["a" * 20] * 190)),
        ("[a-z]*" * 600 + "0", "a" * 250),
        ("[" * 4000, "["),
        ("[a" * 2000, "a"),
    ],
    ids=range(8),
)
def test_no_pattern_takes_long(pattern: str, path: str) -> None:
    before = time.process_time()
    assert not matches(pattern, path)
    assert time.process_time() - before < 5


def test_a_name_that_is_the_last_part_of_no_pattern_is_told_by_one_expression() -> None:
    patterns = [compiled(body, "/" in body, True) for body in ("*.pyc", "a/**/x*y", "b/c", "d/**")]
    last = names_of(patterns)
    assert all(last.fullmatch(name) for name in ("m.pyc", "x1y", "c", "what is below d"))
    assert names_of(patterns[:3]).fullmatch("m.py") is None and names_of(()).fullmatch("") is None
