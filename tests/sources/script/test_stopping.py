"""Calls at which a training stops with an error, options that a project keeps in a class, lengths in two parts."""

from __future__ import annotations

import pytest

from tests.sources.scripts import script, values

HEAD = "from transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n"
LOAD = 'model = AutoModelForCausalLM.from_pretrained("m", load_in_4bit=True)\n'
ARGS = 'args = TrainingArguments("out", bf16=True, eval_strategy="steps")\n'


@pytest.mark.parametrize(
    ("trainer", "stops"),
    [
        ("Trainer(model=model, args=args, train_dataset=data).train()", True),
        ("Trainer(model=model, args=args, train_dataset=data, eval_dataset=None).train()", True),
        ("Trainer(model, args, collate, data, held_out).train()", False),
        ("Trainer(model=model, args=args, **data_of(args)).train()", False),
        ("t = Trainer(model=model, args=args, train_dataset=data)\nt.eval_dataset = held_out\nt.train()", False),
    ],
)
def test_an_evaluation_needs_data(trainer: str, stops: bool) -> None:
    assert (script(HEAD + LOAD + ARGS + trainer, "").evaluates_nothing is not None) == stops


TRAIN = "Trainer(model=model, args=args, train_dataset=data, eval_dataset=held_out).train()"


@pytest.mark.parametrize(
    ("text", "loads"),
    [
        (LOAD + ARGS, 1),
        (LOAD + LOAD.replace("model =", "reference =") + ARGS, 2),
        (ARGS + LOAD, 0),
        ("from accelerate import Accelerator\nAccelerator()\n" + LOAD + ARGS, 0),
        (LOAD.replace("True)", "True, device_map={'': 0})") + ARGS, 0),
    ],
)
def test_a_load_goes_to_the_current_gpu(text: str, loads: int) -> None:
    assert len(script(HEAD + text + TRAIN, "").loads_on_current_gpu) == loads


CLASS = """
import fire
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
class options:
    name: str = "PATH/to/model"
    batch: int = 4
class others:
    bf16: bool = False
def update(config, **kwargs):
    if isinstance(config, (tuple, list)):
        for each in config:
            update(each, **kwargs)
    else:
        for key, value in kwargs.items():
            if hasattr(config, key):
                setattr(config, key, value)
def main(**kwargs):
    update((options, others), **kwargs)
    model = AutoModelForCausalLM.from_pretrained(options.name)
    args = TrainingArguments("out", per_device_train_batch_size=options.batch, bf16=others.bf16)
    Trainer(model=model, args=args, train_dataset=data).train()
fire.Fire(main)
"""


def test_options_that_are_attributes_of_a_class() -> None:
    found = values(script(CLASS, "--name some/model --batch 1 --bf16"))
    assert (found["model"], found["micro_batch_size"], found["bf16"]) == ("some/model", 1, True)


PARTS = """
import argparse
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments
parser = argparse.ArgumentParser()
parser.add_argument("--source_max_len", type=int, default=384)
parser.add_argument("--target_max_len", type=int, default=128)
args = parser.parse_args()
tokenizer = AutoTokenizer.from_pretrained("m")
def preprocess(rows):
    source = tokenizer(rows["text"], max_length=args.source_max_len{cut})["input_ids"]
    target = tokenizer(rows["answer"], max_length=args.target_max_len{cut})["input_ids"]
    return source + target
data = load("d").map(preprocess)
Trainer(model=AutoModelForCausalLM.from_pretrained("m"), args=TrainingArguments("out"), train_dataset=data).train()
"""


@pytest.mark.parametrize(("cut", "kind"), [(", truncation=True", "file"), ("", "assumed")])
def test_two_parts_that_are_cut_and_put_together(cut: str, kind: str) -> None:
    setting = script(PARTS.format(cut=cut), "").settings["seq_len"]
    assert (setting.value, setting.provenance.kind) == (512, kind)
