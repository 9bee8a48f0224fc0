"""A tokenizer's ``model_max_length``: the length where something pads or cuts by it, else taken for it."""

from __future__ import annotations

import pytest

from tests.sources.scripts import script

HEAD = """
import transformers
from dataclasses import dataclass, field
@dataclass
class TrainingArguments(transformers.TrainingArguments):
    model_max_length: int = field(default=2048)
(args,) = transformers.HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
model = transformers.AutoModelForCausalLM.from_pretrained("a/b")
{}
transformers.Trainer(model=model, args=args, train_dataset=data).train()
"""
LOADED = 'tokenizer = transformers.AutoTokenizer.from_pretrained("a/b", model_max_length=args.model_max_length)\n'
SET = (
    'tokenizer = transformers.AutoTokenizer.from_pretrained("a/b")\n'
    "tokenizer.model_max_length = args.model_max_length\n"
)


@pytest.mark.parametrize("limit", [LOADED, SET])
@pytest.mark.parametrize(
    ("use", "kind"),
    [
        ("data = [tokenizer(text, truncation=True) for text in texts]", "file"),
        (
            'data = [tokenizer(text, padding="max_length", max_length=tokenizer.model_max_length) for text in texts]',
            "file",
        ),
        ("data = [tokenizer(text).input_ids[:tokenizer.model_max_length] for text in texts]", "file"),
        ("data = [tokenizer(text) for text in texts]", "assumed"),
        ("data = [tokenizer(text, truncation=False) for text in texts]", "assumed"),
    ],
)
def test_what_cuts_by_it(limit: str, use: str, kind: str) -> None:
    found = script(HEAD.format(limit + use), "--model_max_length 1024 --output_dir out").settings["seq_len"]
    assert (found.value, found.provenance.kind) == (1024, kind)


def test_a_length_of_another_name_needs_no_cut_in_sight() -> None:
    text = HEAD.replace("model_max_length", "max_seq_length").format("data = load(max_seq_length=args.max_seq_length)")
    found = script(text, "--max_seq_length 512 --output_dir out").settings["seq_len"]
    assert (found.value, found.provenance.kind) == (512, "file")


BLOCKS = """
import transformers
from dataclasses import dataclass, field
@dataclass
class Data:
    source: int = field(default=256)
    answer: int = field(default=256)
(args, data_args) = transformers.HfArgumentParser(
    (transformers.TrainingArguments, Data)).parse_args_into_dataclasses()
tokenizer = transformers.AutoTokenizer.from_pretrained("a/b")
model = transformers.AutoModelForCausalLM.from_pretrained("a/b")
def tokenize(examples):
    block_size = data_args.source + data_args.answer
    ids = [token for text in examples["text"] for token in tokenizer(text, max_length=4096)["input_ids"]]
    return {"input_ids": [ids[i : i + block_size] for i in range(0, len(ids), block_size)]}
transformers.Trainer(model=model, args=args, train_dataset=load().map(tokenize, batched=True)).train()
"""


def test_texts_that_are_cut_to_blocks_have_the_length_of_a_block() -> None:
    assert script(BLOCKS).settings["seq_len"].value == 512
