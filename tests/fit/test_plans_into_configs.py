"""What plans change is written into real configs: the settings come out as asked, every other value stays equal.

The files are real DeepSpeed and Accelerate configs beside the repository; the test skips where they are missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lintfit.documents.data_edits import read_again
from lintfit.documents.edits import apply
from lintfit.documents.model import DataDocument, Kind, Node
from lintfit.documents.workspace import Workspace
from lintfit.settings.model import AUTO
from lintfit.sources.accelerate import read_accelerate
from lintfit.sources.deepspeed import read_deepspeed
from tests.fit.test_fixes_over_configs import CORPUS, _configs

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="the real configs are not here")

INTO_DEEPSPEED: dict[str, Any] = {
    "zero_stage": 3,
    "offload_optimizer": "cpu",
    "offload_param": "cpu",
    "reduce_bucket_size": 50_000_000,
    "stage3_prefetch_bucket_size": 10_000_000,
    "micro_batch_size": 1,
    "gradient_accumulation_steps": 64,
}
INTO_ACCELERATE: dict[str, Any] = {
    "zero_stage": 3,
    "offload_optimizer": "cpu",
    "gpus": 16,
    "mixed_precision": "bf16",
    "gradient_accumulation_steps": 64,
}


@pytest.mark.parametrize(
    ("folder", "asked", "read"),
    [
        ("deepspeed", INTO_DEEPSPEED, read_deepspeed),
        ("deepspeed_history", INTO_DEEPSPEED, read_deepspeed),
        ("accelerate", INTO_ACCELERATE, read_accelerate),
        ("accelerate_history", INTO_ACCELERATE, read_accelerate),
    ],
)
def test_a_setting_is_written_and_nothing_else(folder: str, asked: dict[str, Any], read: Any) -> None:
    written = 0
    for path in _configs(folder):
        kind = Kind.JSON if path.suffix == ".json" else Kind.YAML
        document = Workspace().read(path, kind)
        if not isinstance(document, DataDocument) or document.root is None or document.root.shape != "mapping":
            continue
        source = read(document)
        for name, value in asked.items():
            edits = source.write(name, value)
            if not edits:
                continue
            where = f"{path.name}: {name}"
            again = read_again(document, apply(document.text, [edit.edit for edit in edits]))
            assert again.root is not None and len(again.problems) <= len(document.problems), where
            found = read(again).settings[name].value
            assert found == value or found is AUTO, where
            assert not read(again).write(name, value), f"{where}: what is written is not written again"
            before, after = dict(_leaves(document.root)), dict(_leaves(again.root))
            changed = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
            assert len(changed) <= 3, (where, changed)
            kept = set(document.text.splitlines()) - set(again.text.splitlines())
            assert len(kept) <= 3 or "\n" not in document.text.strip(), where
            written += 1
    assert written > 10 or folder == "accelerate_history"


def _leaves(node: Node, path: tuple[object, ...] = ()) -> Iterator[tuple[tuple[object, ...], object]]:
    if node.shape == "scalar":
        yield path, repr(node.value)
    for entry in node.entries:
        yield from _leaves(entry.value, (*path, entry.key))
    for index, element in enumerate(node.elements):
        yield from _leaves(element, (*path, index))


def test_the_configs_are_many() -> None:
    assert sum(1 for folder in ("deepspeed", "accelerate") for _ in _configs(folder)) > 100
    assert Path(CORPUS, "index.jsonl").is_file()
