"""What is read from real files, compared with what DeepSpeed and Accelerate themselves read."""

from __future__ import annotations

import argparse
import logging
import os
from pathlib import Path
from typing import Any

import pytest

from lintfit.documents.json_reader import read_json
from lintfit.documents.model import FileText
from lintfit.documents.yaml_reader import read_yaml
from lintfit.settings.model import AUTO
from lintfit.sources.accelerate import read_accelerate
from lintfit.sources.deepspeed import read_deepspeed
from lintfit.sources.launchers.command_line import GRAMMARS

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"

pytestmark = [
    pytest.mark.peers,
    pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of real configs is not here"),
]

DEFAULTS = {
    "zero_stage": 0,
    "offload_optimizer": "none",
    "offload_param": "none",
    "reduce_bucket_size": 500_000_000,
    "allgather_bucket_size": 500_000_000,
    "sub_group_size": 1_000_000_000,
    "stage3_prefetch_bucket_size": 50_000_000,
    "stage3_param_persistence_threshold": 100_000,
    "stage3_max_live_parameters": 1_000_000_000,
    "stage3_max_reuse_distance": 1_000_000_000,
}
"""DeepSpeed 0.19.8's defaults, which "auto" comes to without transformers."""


def test_zero_settings_are_those_of_deepspeed() -> None:
    os.environ.setdefault("DS_ACCELERATOR", "cpu")
    hjson = pytest.importorskip("hjson")
    config = pytest.importorskip("deepspeed.runtime.zero.config")
    logging.disable(logging.CRITICAL)
    compared = 0
    for path in sorted(CORPUS.glob("deepspeed*/*.json")):
        text = path.read_text(encoding="utf-8-sig")
        try:
            zero = config.get_zero_config(hjson.loads(text))
        except (ValueError, TypeError, AttributeError):
            continue
        expected = {
            "zero_stage": int(zero.stage),
            "offload_optimizer": _device(zero.offload_optimizer),
            "offload_param": _device(zero.offload_param),
            "reduce_bucket_size": zero.reduce_bucket_size,
            "allgather_bucket_size": zero.allgather_bucket_size,
            "sub_group_size": zero.sub_group_size,
            "stage3_prefetch_bucket_size": zero.prefetch_bucket_size,
            "stage3_param_persistence_threshold": zero.param_persistence_threshold,
            "stage3_max_live_parameters": zero.max_live_parameters,
            "stage3_max_reuse_distance": zero.max_reuse_distance,
        }
        stated = read_deepspeed(read_json(FileText(path, text))).settings
        said = {name: stated[name].value if name in stated else default for name, default in DEFAULTS.items()}
        assert {name: DEFAULTS[name] if value is AUTO else value for name, value in said.items()} == expected, path
        compared += 1
    assert compared > 400


def _device(section: Any) -> str:
    return "none" if section is None else str(getattr(section.device, "value", section.device))


def test_accelerate_settings_are_those_of_accelerate() -> None:
    args = pytest.importorskip("accelerate.commands.config.config_args")
    engines = {"NO": "single", "MULTI_GPU": "ddp", "DEEPSPEED": "deepspeed", "FSDP": "fsdp"}
    compared = 0
    for path in sorted(CORPUS.glob("accelerate*/*.y*ml")):
        try:
            real = args.load_config_from_file(str(path))
        except (ValueError, TypeError, AttributeError):
            continue
        found = read_accelerate(read_yaml(FileText(path, path.read_text(encoding="utf-8"))))
        stated = {name: setting.value for name, setting in found.settings.items()}
        kind = str(getattr(real.distributed_type, "value", real.distributed_type))
        engine = engines.get("NO" if kind == "False" else kind)
        if engine is None:
            continue
        assert stated["engine"] == engine, path
        processes = getattr(real, "num_processes", -1)
        if engine != "single" and isinstance(processes, int):
            assert stated.get("gpus", -1) == processes, path
        assert stated.get("nodes", 1) == real.num_machines, path
        assert stated.get("mixed_precision", "no") == (real.mixed_precision or "no"), path
        if engine == "deepspeed" and isinstance(real.deepspeed_config, dict):
            assert stated.get("zero_stage") == real.deepspeed_config.get("zero_stage"), path
        compared += 1
    assert compared > 100


def _options(parser: Any) -> tuple[set[str], set[str]]:
    """The options of an argparse parser that take a value and those that do not, long names with ``_``."""
    valued, bare = set(), set()
    for action in parser._actions:
        names = {name.lstrip("-").replace("-", "_") for name in action.option_strings if name.startswith("--")}
        (bare if action.nargs == 0 else valued).update(names)
    return valued, bare


def test_torchruns_options_are_known() -> None:
    run = pytest.importorskip("torch.distributed.run")
    valued, bare = _options(run.get_args_parser())
    assert valued == set(GRAMMARS["torchrun"].valued)
    assert bare <= set(GRAMMARS["torchrun"].bare)


def test_accelerates_bare_options_are_known() -> None:
    launch = pytest.importorskip("accelerate.commands.launch")
    valued, bare = _options(launch.launch_command_parser())
    assert bare <= set(GRAMMARS["accelerate"].bare)
    assert not valued & set(GRAMMARS["accelerate"].bare)


def test_deepspeeds_options_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = pytest.importorskip("deepspeed.launcher.runner")
    made: list[argparse.ArgumentParser] = []

    def parse(self: argparse.ArgumentParser, *_: Any, **__: Any) -> argparse.Namespace:
        made.append(self)
        raise RuntimeError("only the parser is wanted")

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse)
    with pytest.raises(RuntimeError, match="only the parser"):
        runner.parse_args([])
    valued, bare = _options(made[0])
    assert valued <= set(GRAMMARS["deepspeed"].valued)
    assert bare <= set(GRAMMARS["deepspeed"].bare)
