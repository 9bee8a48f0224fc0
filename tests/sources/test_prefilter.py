"""What is worth parsing as a training script."""

from __future__ import annotations

import pytest

from lintfit.sources.prefilter import maybe_training_script


@pytest.mark.parametrize(
    ("text", "worth"),
    [
        ("from transformers import Trainer\n", True),
        ("import torch\nloss.backward()\n", True),
        ("import deepspeed\nengine = deepspeed.initialize(model=model)\n", True),
        ("import torch\nprint(torch.__version__)\n", False),
        ("import django\nx = 'torchlight'\nloss.backward()\n", False),
    ],
)
def test_a_library_and_something_that_trains(text: str, worth: bool) -> None:
    assert maybe_training_script(text) is worth
