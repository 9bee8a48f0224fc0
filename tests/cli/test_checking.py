"""The flags of ``lintfit check`` come to the same whether click reads them or :func:`lintfit.cli.checking.plain`."""

from __future__ import annotations

from typing import Any

import click
import pytest

from lintfit.cli import checking
from lintfit.cli.main import check


def _by_click(words: list[str]) -> tuple[tuple[str, ...], dict[str, Any]]:
    flags = dict(check.make_context("check", list(words)).params)
    return flags.pop("paths"), flags


@pytest.mark.parametrize(
    "words",
    [
        "",
        "recipe.yaml --gpu 3090 --gpus 8 --isolated",
        "--gpu=A100 a b --select x,y --select z --gpu H100",
        "- --stdin-filename ds.json",
        "a --output-format json --output-format text:out.txt --quiet --margin=-1",
    ],
)
def test_plain_flags(words: str) -> None:
    assert checking.plain(words.split()) == _by_click(words.split())


@pytest.mark.parametrize(
    "words", ["-h", "--help", "-q", "--gpu", "--gpu --fix", "--fix=1", "--no-such", "--", "--add-ignores", "--color x"]
)
def test_the_rest_is_left_to_click(words: str) -> None:
    assert checking.plain(words.split()) is None


def test_every_flag_is_declared_as_the_command_has_it() -> None:
    options = [each for each in check.params if isinstance(each, click.Option)]
    names = {each.opts[-1].removeprefix("--"): each for each in options}
    assert set(checking.SWITCHES) == {name for name, each in names.items() if each.is_flag}
    assert set(checking.LISTS) == {name for name, each in names.items() if each.multiple}
    others = set(names) - set(checking.SWITCHES) - set(checking.LISTS)
    assert set(checking.VALUES) == others - {"add-ignores", "color"}
