"""Functions that the script hands to a dataset are run there, and say how long the samples get."""

from __future__ import annotations

import pytest

from tests.sources.scripts import script, values

TEXT = """
    from functools import partial
    from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments

    tokenizer = AutoTokenizer.from_pretrained("gpt2")

    def cut(rows, length=100):
        return tokenizer(rows["text"], truncation=True, max_length=length)

    model = AutoModelForCausalLM.from_pretrained("gpt2")
    data = DATA
    Trainer(model=model, args=TrainingArguments("out"), train_dataset=data).train()
"""


@pytest.mark.parametrize(
    ("call", "length"),
    [
        ("read().map(cut)", 100),
        ('read()["train"].shuffle().map(cut, fn_kwargs={"length": 333})', 333),
        ("read().map(partial(cut, length=444), batched=True)", 444),
        ('read().map(lambda row: tokenizer(row["text"], max_length=555))', 555),
        ("read().map(lambda rows: cut(rows, 666))", 666),
    ],
)
def test_sequence_length_in_what_is_mapped(call: str, length: int) -> None:
    assert values(script(TEXT.replace("DATA", call))).get("seq_len") == length
