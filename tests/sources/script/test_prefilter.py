"""What is worth parsing as a training script."""

from __future__ import annotations

import pytest

from lintfit.sources.script import prefilter
from lintfit.sources.script.prefilter import is_test, maybe_training_script, only_defines


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


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("test_merge.py", "def test_merge():\n    trainer.train()\n", True),
        ("merge_test.py", "class MergeTest(TestCase):\n    def test_it(self): ...\n", True),
        ("test_run.py", "trainer = Trainer(model)\ntrainer.train()\n", False),
        ("train.py", "def test_model(model):\n    ...\n", False),
    ],
)
def test_a_file_of_tests_by_its_name_and_its_content(name: str, text: str, expected: bool) -> None:
    assert is_test(name, text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"""Text."""\nimport a\nX = a.b()\n\n\ndef f():\n    a.c()\n', True),
        ("try:\n    import a\nexcept ImportError:\n    a = None\n\n\nclass C:\n    pass\n", True),
        ('def main():\n    pass\n\n\nif __name__ == "__main__":\n    main()\n', False),
        ("def main():\n    pass\n\n\nX = main()\n", False),
        ("for batch in loader:\n    step(batch)\n", False),
        ("trainer.train()\n", False),
        ("def f(:\n", False),
        ("import logging\nlogger = logging.getLogger()\nlogger.setLevel(1)\ndef f():\n    pass\n", True),
        ("import torch\ndef f(rank):\n    pass\ntorch.multiprocessing.spawn(f)\n", False),
    ],
)
def test_a_module_that_does_nothing_when_it_is_run(text: str, expected: bool) -> None:
    assert only_defines(text) is expected


@pytest.mark.parametrize(
    "word",
    [
        *("MyTrainer", "TrainingArguments", "x.backward(", "deepspeed.initialize", "Accelerator(", "Fabric("),
        "HfArgumentParser",
    ],
)
@pytest.mark.parametrize("library", [*prefilter._LIBRARIES, "pytorch_lightning"])
def test_every_word_of_a_training(word: str, library: str) -> None:
    assert maybe_training_script(f"import {library}\n{word}\n")
