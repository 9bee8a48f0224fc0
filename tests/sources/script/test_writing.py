"""Settings of a script are written where they live, and nowhere else."""

from __future__ import annotations

import pytest

from lintfit.documents.edits import apply
from lintfit.documents.model import Edit, FileEdit, Span
from lintfit.errors import CannotWrite
from lintfit.settings.values import AS_LOADED, Adapters, Fsdp
from lintfit.sources.script.source import ScriptSource
from tests.sources.scripts import ARGPARSE, PARSED, script, trained, values

LITERAL = """
    import torch
    from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

    BATCH = 8
    model = AutoModelForCausalLM.from_pretrained("a/b")
    arguments = TrainingArguments(
        output_dir="out",
        per_device_train_batch_size=BATCH,
        gradient_accumulation_steps=2,
        fp16=True,
    )
    Trainer(model=model, args=arguments).train()
"""


def changed(source: ScriptSource, name: str, value: object) -> tuple[str, str]:
    """The text of the script and of the launch line after a change."""
    edits = source.write(name, value)
    assert edits is not None
    mine = [e.edit for e in edits if e.document is source.document]
    others = [e for e in edits if e.document is not source.document]
    line = apply(others[0].document.text, [e.edit for e in others]) if others and others[0].document else ""
    return apply(source.document.text, mine), line


def again(source: ScriptSource, name: str, value: object) -> dict[str, object]:
    """The settings of the script as it reads after a change."""
    text, line = changed(source, name, value)
    return values(script(text, line or None))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("micro_batch_size", 1),
        ("gradient_accumulation_steps", 16),
        ("gradient_checkpointing", True),
        ("bf16", True),
        ("fp16", False),
        ("optimizer", "adamw_8bit"),
        ("deepspeed", "ds.json"),
        ("weights_dtype", "bf16"),
        ("attention", "flash_attention_2"),
    ],
)
def test_what_is_written_is_read_again(name: str, value: object) -> None:
    source = script(LITERAL)
    found = again(source, name, value)
    assert found[name] == value
    before = values(source)
    assert {k: v for k, v in found.items() if k not in (name, "use_reentrant")} == {
        k: v for k, v in before.items() if k not in (name, "use_reentrant")
    }


def test_a_constant_is_changed_where_it_is_written() -> None:
    text, _ = changed(script(LITERAL), "micro_batch_size", 1)
    assert "BATCH = 1\n" in text and "per_device_train_batch_size=BATCH" in text


def test_an_absent_field_becomes_a_keyword_on_its_own_line() -> None:
    text, _ = changed(script(LITERAL), "gradient_checkpointing", True)
    assert "    fp16=True,\n    gradient_checkpointing=True,\n)" in text


def test_the_loss_kernel() -> None:
    text, _ = changed(script(LITERAL), "loss", "liger")
    assert "use_liger_kernel=True" in text


def test_the_name_of_the_dtype_follows_the_version_and_the_name_in_use() -> None:
    assert 'from_pretrained("a/b", torch_dtype=torch.bfloat16)' in changed(script(LITERAL), "weights_dtype", "bf16")[0]
    both = script(LITERAL, versions={"transformers": "4.56.0"})
    assert 'from_pretrained("a/b", torch_dtype=torch.bfloat16)' in changed(both, "weights_dtype", "bf16")[0]
    modern = script(LITERAL, versions={"transformers": "5.0"})
    assert 'from_pretrained("a/b", dtype=torch.bfloat16)' in changed(modern, "weights_dtype", "bf16")[0]
    named = script(trained(""), versions={"transformers": "5.0"})
    assert "torch_dtype=torch.float16)" in changed(named, "weights_dtype", "fp16")[0]


def test_a_flag_is_changed_on_the_launch_line_only() -> None:
    source = script(PARSED, "--model_name_or_path a/b --per_device_train_batch_size 4 --torch_dtype float16")
    text, line = changed(source, "micro_batch_size", 1)
    assert text == source.document.text
    assert line == "--model_name_or_path a/b --per_device_train_batch_size 1 --torch_dtype float16"
    text, line = changed(source, "weights_dtype", "bf16")
    assert text == source.document.text and line.endswith("--torch_dtype bfloat16")


def test_a_new_flag_where_a_parser_fills_the_arguments() -> None:
    asked: list[tuple[str, str | None]] = []

    def add(name: str, value: str | None) -> tuple[FileEdit, ...]:
        asked.append((name, value))
        return ()

    source = script(PARSED, "--model_name_or_path a/b", add_flag=add)
    (opened,) = source.write("gradient_checkpointing", True) or ()
    assert "enable_input_require_grads" in opened.edit.text, "its adapters get no gradient else in transformers 4"
    assert source.write("deepspeed", "ds.json") == ()
    assert asked == [("gradient_checkpointing", "True"), ("deepspeed", "ds.json")]
    assert script(PARSED, "--model_name_or_path a/b").write("deepspeed", "ds.json") is None


def test_no_input_is_opened_where_a_switch_of_the_script_has_checkpoints_not_reenter() -> None:
    switch = (
        "        if training_args.gradient_checkpointing:\n"
        "            training_args.gradient_checkpointing_kwargs = {'use_reentrant': False}\n"
    )
    text = PARSED.replace("        dtype = (", f"{switch}        dtype = (", 1)
    asked: list[str] = []

    def add(name: str, value: str | None) -> tuple[FileEdit, ...]:
        asked.append(name)
        return ()

    assert script(text, "--model_name_or_path a/b", add_flag=add).write("gradient_checkpointing", True) == ()
    assert asked == ["gradient_checkpointing"]


def test_a_flag_with_dashes_is_spelled_as_declared() -> None:
    asked: list[tuple[str, str | None]] = []

    def add(name: str, value: str | None) -> tuple[FileEdit, ...]:
        asked.append((name, value))
        return ()

    text = ARGPARSE.replace('"--deepspeed"', '"--deep-speed", dest="deepspeed"')
    script(text, "--micro-batch-size 4", add_flag=add).write("deepspeed", "ds.json")
    assert asked == [("deep-speed", "ds.json")]


def test_a_default_of_the_command_line_is_changed_where_it_stands() -> None:
    text, _ = changed(script(ARGPARSE, "--upcast"), "micro_batch_size", 1)
    assert '"--micro-batch-size", type=int, default=1)' in text


def test_arithmetic_is_replaced_where_it_is_used() -> None:
    text, _ = changed(script(ARGPARSE, "--micro-batch-size 4"), "gradient_accumulation_steps", 16)
    assert "gradient_accumulation_steps=16," in text


def test_a_dict_of_keywords_is_changed_in_place() -> None:
    source = script(
        """
        from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
        options = {"per_device_train_batch_size": 8, "bf16": True}
        model = AutoModelForCausalLM.from_pretrained("a/b")
        Trainer(model=model, args=TrainingArguments(output_dir="x", **options)).train()
        """
    )
    assert values(source)["micro_batch_size"] == 8
    text, _ = changed(source, "micro_batch_size", 2)
    assert '{"per_device_train_batch_size": 2, "bf16": True}' in text


@pytest.mark.parametrize(
    ("call", "again", "inside"),
    [("**options", "", True), ('output_dir="x", **options', "", False), ("**options", "print(dict(**options))", False)],
)
def test_a_new_keyword_goes_into_the_dict_that_has_all_of_them(call: str, again: str, inside: bool) -> None:
    source = script(
        f"""
        from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
        options = {{
            "output_dir": "x",
            "bf16": True,
        }}
        {again}
        model = AutoModelForCausalLM.from_pretrained("a/b")
        Trainer(model=model, args=TrainingArguments({call})).train()
        """
    )
    text, _ = changed(source, "gradient_checkpointing", True)
    assert ('    "bf16": True,\n    "gradient_checkpointing": True,\n}' in text) is inside
    assert ("gradient_checkpointing=True" in text) is not inside


def test_unknown_keywords_may_hold_it_already() -> None:
    source = script(
        "from transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n"
        "Trainer(model=AutoModelForCausalLM.from_pretrained('a/b'), args=TrainingArguments(**load())).train()\n"
    )
    assert source.write("bf16", True) is None


@pytest.mark.parametrize(
    ("before", "left"),
    [
        ("model = model.float()", ""),
        ("model.float()", ""),
        ("if True:\n    model.float()", "if True:\n    pass\n"),
        ("x = 1; model.float()", "x = 1\n"),
    ],
)
def test_a_forced_cast_is_deleted(before: str, left: str) -> None:
    source = script(trained(before))
    text, _ = changed(source, "weights_dtype", AS_LOADED)
    assert text == trained("").replace("bfloat16)\n\n", f"bfloat16)\n{left}")
    assert source.remove_statement(source.facts.upcasts[0]) == source.write("weights_dtype", AS_LOADED) or len(text) > 0


def test_weights_dtype_takes_the_cast_away() -> None:
    text, _ = changed(script(trained("model.float()")), "weights_dtype", "fp16")
    assert "model.float()" not in text and "torch_dtype=torch.float16" in text


def test_a_chained_move_is_deleted() -> None:
    source = script(trained("").replace("torch.bfloat16)", "torch.bfloat16).to('cuda')"))
    edits = source.remove_statement(source.facts.moves[0])
    assert [(edit.edit.span, edit.edit.text) for edit in edits] == [(source.facts.moves[0].lines.span, "")]
    assert isinstance(edits[0].edit, Edit) and isinstance(edits[0].edit.span, Span)


def test_checkpointing_of_a_hand_written_loop() -> None:
    source = script(
        """
        from accelerate import Accelerator
        from transformers import AutoModelForCausalLM
        accelerator = Accelerator()
        model = AutoModelForCausalLM.from_pretrained("a/b")
        model = accelerator.prepare(model)
        accelerator.backward(model(x).loss)
        """
    )
    text, _ = changed(source, "gradient_checkpointing", True)
    assert 'from_pretrained("a/b")\nmodel.gradient_checkpointing_enable()\n' in text
    assert values(script(text))["gradient_checkpointing"] is True
    assert again(source, "gradient_accumulation_steps", 8)["gradient_accumulation_steps"] == 8


def test_what_a_script_cannot_say_is_refused() -> None:
    assert script(LITERAL).write("zero_stage", 3) is None
    assert script("x = 1\n").write("bf16", True) is None
    with pytest.raises(CannotWrite, match="not read to its end"):
        script("x = 1\n").write("method", Adapters(16, "single"))


def test_what_is_assigned_after_parsing_is_written_there() -> None:
    parsed = "script_args = parser.parse_args_into_dataclasses()\n"
    text = PARSED.replace(parsed, f'{parsed}        training_args.optim = "adafactor"\n')
    assert text != PARSED
    written, line = changed(script(text, "--model_name_or_path a/b"), "optimizer", "adamw_torch")
    assert 'training_args.optim = "adamw_torch"' in written and not line


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('fsdp=["full_shard", "auto_wrap"]', 'fsdp=["full_shard", "auto_wrap", "offload"]'),
        ('fsdp="full_shard auto_wrap"', 'fsdp="full_shard auto_wrap offload"'),
    ],
)
def test_the_offload_of_fsdp_is_written_as_the_words_beside_it_are(before: str, after: str) -> None:
    text, _ = changed(script(LITERAL.replace("fp16=True", before)), "fsdp", Fsdp(1, "FULL_SHARD", True))
    assert after in text
