"""Which flags transformers' parser refuses alone, against the installed transformers and TRL."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from lintfit.checks.bare_optional_flag import _OF_SFT, _TRL, _WITHOUT_DEFAULT

pytestmark = pytest.mark.peers


def refused(cls: Any) -> set[str]:
    """Flags that stop ``HfArgumentParser((cls,))`` where they stand alone."""
    transformers = pytest.importorskip("transformers")
    parser = transformers.HfArgumentParser((cls,))
    found = set()
    for action in parser._actions:
        if action.type is not None and action.type.__name__ == "string_to_bool" and action.nargs is None:
            with pytest.raises(SystemExit):
                argparse.ArgumentParser.parse_known_args(parser, [f"--{action.dest}"])
            found.add(action.dest)
    return found


def test_of_training_arguments() -> None:
    transformers = pytest.importorskip("transformers")
    of_all = refused(transformers.TrainingArguments)
    assert of_all >= _WITHOUT_DEFAULT
    assert "bf16" not in of_all


def test_of_trls_configs() -> None:
    trl = pytest.importorskip("trl")
    tried = [name for name in _TRL if hasattr(trl, f"{name}Config")]
    assert {"SFT", "DPO", "GRPO"} <= set(tried)
    for name in tried:
        assert refused(getattr(trl, f"{name}Config")) >= {"bf16", *_WITHOUT_DEFAULT}
    assert refused(trl.SFTConfig) >= _OF_SFT
