"""The runner of the tests: what runs in this process must be what a process of its own would print."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

import lintfit as package
from tests.support import OF_FILES, ROOT, lintfit, process

OF_PATHS_ALONE = {
    "lintfit.options.config._absolute",
    "lintfit.options.rules_catalog.load_rules",
    "lintfit.sources.script.interpreter.modules._candidates",
}
"""They are asked for a path, but read no file of the user's."""


def _caches() -> Iterator[tuple[str, Any]]:
    for module in pkgutil.walk_packages(package.__path__, "lintfit."):
        if not module.name.endswith("__main__"):
            for found in vars(importlib.import_module(module.name)).values():
                if isinstance(found, type(lru_cache(len))):
                    yield f"{found.__module__}.{found.__name__}", found.__wrapped__


def test_every_cache_of_files_is_emptied() -> None:
    caches = dict(_caches())
    assert len(caches) > 30
    of_paths = {name for name, asked in caches.items() if "Path" in str({**asked.__annotations__, "return": ""})}
    assert of_paths - OF_PATHS_ALONE <= set(OF_FILES) <= set(caches)


MEDICAL = ROOT / "examples" / "medicalgpt"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "arguments"),
    [
        (MEDICAL, ("check", ".", "--output-format", "concise")),
        (MEDICAL, ("check", ".", "--diff")),
        (MEDICAL, ("check", "nowhere.json")),
        (MEDICAL, ("estimate", ".", "--output-format", "json")),
        (MEDICAL, ("estimate", "--spec", "-")),
        (MEDICAL, ("fit", ".")),
        (MEDICAL, ("check", "--fx")),
        (ROOT, ("rule", "LF001", "--color", "always")),
        (ROOT, ("--version",)),
        (ROOT, ()),
    ],
)
def test_both_runners_say_the_same(folder: Path, arguments: tuple[str, ...]) -> None:
    stdin = b'{"model": "gpt2", "gpu": "A100", "seq_len": 1024}'
    assert lintfit(*arguments, cwd=folder, stdin=stdin) == process(*arguments, cwd=folder, stdin=stdin)


def test_a_file_that_has_changed_is_read_again(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}}}')
    assert lintfit("check", "ds.json", cwd=tmp_path).status == 1
    (tmp_path / "lintfit.toml").write_text('fail-on = "error"\n')
    assert lintfit("check", "ds.json", cwd=tmp_path).status == 0
    assert lintfit("check", "ds.json", cwd=tmp_path, env={"FORCE_COLOR": "1", "NO_COLOR": ""}).out.count("\x1b[") > 0
