"""What the rules call an error, against DeepSpeed's own parser and Accelerate's own loader.

Over the real files of the corpus and over configs made from the schemas: what the libraries refuse is an error, and
what is an error they refuse, or stop at as soon as they use it.
"""

from __future__ import annotations

import copy
import json
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lintfit.checks.helpers.context import FileContext
from lintfit.checks.helpers.registry import run_file_checks
from lintfit.documents.json_reader import read_json
from lintfit.documents.model import DataDocument, FileText
from lintfit.documents.yaml_reader import read_yaml
from lintfit.findings.model import Severity
from lintfit.schema.sections import load
from lintfit.sources.accelerate import read_accelerate
from lintfit.sources.deepspeed import read_deepspeed
from tests.checks.test_verdicts import CONFIG_RULES
from tests.schema.configs import configs

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"

pytestmark = pytest.mark.peers

LATER = ('needs "nvme_path"',)
"""Errors of a DeepSpeed JSON that the parser lets pass and that stop the run as soon as ZeRO is set up."""

BY_MACHINE = ("aio.use_gds", "expert_parallel", "datastates_ckpt", "checkpoint.writer", "vocabulary_size")
"""What DeepSpeed judges by the machine, hands to code of its own that no schema describes, or merely divides by 8."""

BATCH = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")

Parse = Callable[[dict[str, Any]], str | None]


@pytest.fixture(scope="session")
def deepspeed_says() -> Parse:
    """DeepSpeed's verdict on a config, read as it reads a file, in one process: its error, None where it takes it."""
    os.environ.setdefault("DS_ACCELERATOR", "cpu")
    config = pytest.importorskip("deepspeed.runtime.config")
    hjson = pytest.importorskip("hjson")
    logging.disable(logging.CRITICAL)

    def parse(data: dict[str, Any]) -> str | None:
        try:
            config.DeepSpeedConfig(dict(hjson.loads(json.dumps(data))))
        except Exception as error:  # whatever it raises is its verdict
            return f"{type(error).__name__}: {error}"
        return None

    return parse


@pytest.fixture(scope="session")
def accelerate_says(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str | None]:
    """Accelerate's verdict on the text of a config file: its error, None where it loads it."""
    args = pytest.importorskip("accelerate.commands.config.config_args")
    path = tmp_path_factory.mktemp("accelerate") / "config.yaml"

    def parse(text: str) -> str | None:
        path.write_text(text, "utf-8")
        try:
            args.load_config_from_file(str(path))
        except Exception as error:  # whatever it raises is its verdict
            return f"{type(error).__name__}: {error}"
        return None

    return parse


def errors(document: DataDocument, dialect: str) -> list[str]:
    """The messages of the errors that the rules find in a document of the newest libraries."""
    read = read_deepspeed if dialect == "deepspeed" else read_accelerate
    source = None if document.root is None else read(document)
    found = run_file_checks(FileContext(document, source, (), named=True), lambda rule: rule.name in CONFIG_RULES)
    return [finding.message for finding in found if finding.severity is Severity.ERROR]


def deepspeed_errors(data: dict[str, Any]) -> list[str]:
    return errors(read_json(FileText(Path("ds.json"), json.dumps(data))), "deepspeed")


def prepared(data: dict[str, Any]) -> dict[str, Any]:
    """A config less what DeepSpeed judges by the machine, its batch filled as transformers does it."""
    kept = copy.deepcopy(data)
    for key in BATCH:
        # A fraction may come through the multiplications, and stops only where the loader is made.
        if key in kept and (kept[key] is None or kept[key] == "auto" or isinstance(kept[key], float)):
            del kept[key]
    if not {"train_batch_size", "train_micro_batch_size_per_gpu"} & kept.keys():
        kept["train_micro_batch_size_per_gpu"] = 1
    for name in BY_MACHINE:
        *sections, key = name.split(".")
        target: Any = kept
        for section in sections:
            target = target.get(section) if isinstance(target, dict) else None
        if isinstance(target, dict):
            target.pop(key, None)
    return kept


@pytest.mark.parametrize("wrong", [False, True], ids=["right", "wrong"])
@given(data=st.data())
@settings(max_examples=400, suppress_health_check=list(HealthCheck))
def test_deepspeed_agrees_on_made_up_configs(deepspeed_says: Parse, wrong: bool, data: st.DataObject) -> None:
    config = prepared(data.draw(configs(load("deepspeed"), wrong=wrong, largest=4)))
    verdict = deepspeed_says(config)
    found = [message for message in deepspeed_errors(config) if not any(words in message for words in LATER)]
    assert bool(found) == (verdict is not None), (config, verdict, found)


@pytest.mark.parametrize("wrong", [False, True], ids=["right", "wrong"])
@given(data=st.data())
@settings(max_examples=300, suppress_health_check=list(HealthCheck))
def test_accelerate_agrees_on_made_up_configs(
    accelerate_says: Callable[[str], str | None], wrong: bool, data: st.DataObject
) -> None:
    yaml = pytest.importorskip("yaml")
    config = data.draw(configs(load("accelerate"), wrong=wrong, largest=4))
    if not isinstance(config.get("compute_environment"), str):
        config.pop("compute_environment", None)  # anything but a string makes a SageMaker file of it, unread
    text = yaml.safe_dump(config)
    verdict = accelerate_says(text)
    found = errors(read_yaml(FileText(Path("accelerate.yaml"), text)), "accelerate")
    # The loader looks at keys and at two enumerations; everything else only fails where it is used.
    found = [message for message in found if not any(words in message for words in AT_LAUNCH)]
    assert bool(found) == (verdict is not None), (config, verdict, found)


AT_LAUNCH = (
    "cannot stand beside deepspeed_config_file",
    "never hands",
    "is one GPU for",
    '"mixed_precision":',
    '"gpu_ids":',
    '"num_machines":',
    '"main_process_port":',
)
"""Errors that ``accelerate launch`` and ``Accelerator()`` raise after the file is loaded."""


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of real configs is not here")
def test_deepspeed_agrees_on_real_files(deepspeed_says: Parse) -> None:
    compared = 0
    for path in sorted(CORPUS.glob("deepspeed*/*.json")):
        document = read_json(FileText(path, path.read_text("utf-8-sig")))
        if document.root is None or document.root.shape != "mapping" or _repeated(document):
            continue
        config = prepared(document.root.plain())
        enabled = document.root.get("autotuning", "enabled")
        if enabled is not None and enabled.value is True:
            continue
        verdict = deepspeed_says(config)
        found = [message for message in deepspeed_errors(config) if not any(words in message for words in LATER)]
        if verdict is not None and "Check batch related parameters" in verdict and not found:
            continue  # made for a certain number of ranks, and here is one
        assert bool(found) == (verdict is not None), (path.name, verdict, found)
        compared += 1
    assert compared > 450


def _repeated(document: DataDocument) -> bool:
    nodes = (node for _, node in document.root.walk()) if document.root is not None else ()
    return any(len({entry.key for entry in node.entries}) < len(node.entries) for node in nodes)


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of real configs is not here")
def test_accelerate_agrees_on_real_files(accelerate_says: Callable[[str], str | None]) -> None:
    compared = 0
    for path in sorted(CORPUS.glob("accelerate*/*.y*ml")):
        text = path.read_text("utf-8")
        verdict = accelerate_says(text)
        found = errors(read_yaml(FileText(path, text)), "accelerate")
        found = [message for message in found if not any(words in message for words in AT_LAUNCH)]
        assert bool(found) == (verdict is not None), (path.name, verdict, found)
        compared += 1
    assert compared > 150
