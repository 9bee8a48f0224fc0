"""Loops of a script's own: plain Accelerate and DeepSpeed."""

from __future__ import annotations

import textwrap

import pytest

from lintfit.settings.model import AUTO
from tests.sources.scripts import script, values


def test_an_accelerate_loop() -> None:
    source = script(
        """
        import torch
        from accelerate import Accelerator
        from torch.utils.data import DataLoader
        from transformers import AutoModelForCausalLM

        def main():
            accelerator = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=4)
            model = AutoModelForCausalLM.from_pretrained("a/b")
            model.gradient_checkpointing_enable()
            model.to(accelerator.device)
            train = DataLoader(data, shuffle=True, batch_size=3)
            optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
            model, optimizer, train = accelerator.prepare(model, optimizer, train)
            for batch in train:
                loss = model(**batch).loss
                accelerator.backward(loss)
                optimizer.step()

        if __name__ == "__main__":
            main()
        """
    )
    found = values(source)
    assert source.facts.trains and source.facts.trained_model == "model"
    assert found["mixed_precision"] == "bf16"
    assert found["micro_batch_size"] == 3 and found["gradient_accumulation_steps"] == 4
    assert (found["optimizer"], found["learning_rate"]) == ("adamw_torch", 1e-4)
    assert found["gradient_checkpointing"] is True
    assert found["weights_dtype"] is AUTO
    assert len(source.facts.moves) == 1
    assert source.facts.initialize.name == "prepare" and source.facts.accelerator is not None


def test_deepspeed_initialize_with_a_dict() -> None:
    source = script(
        """
        import deepspeed
        from transformers import AutoModelForCausalLM
        config = {"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 3}, "bf16": {"enabled": True}}
        model = AutoModelForCausalLM.from_pretrained("a/b").cuda()
        engine, optimizer, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
        for batch in data:
            loss = engine(batch)
            engine.backward(loss)
            engine.step()
        """
    )
    assert values(source)["deepspeed"]["zero_optimization"] == {"stage": 3}
    assert values(source)["micro_batch_size"] == 2
    assert source.facts.moves[0].call.order < source.facts.initialize.order


def test_deepspeed_config_from_its_own_flag() -> None:
    source = script(
        """
        import argparse, deepspeed
        from transformers import AutoModelForCausalLM
        parser = argparse.ArgumentParser()
        parser = deepspeed.add_config_arguments(parser)
        args = parser.parse_args()
        model = AutoModelForCausalLM.from_pretrained("a/b")
        engine, *_ = deepspeed.initialize(args=args, model=model)
        engine.backward(loss)
        """,
        "--deepspeed_config ds.json",
    )
    assert values(source)["deepspeed"] == "ds.json"


class TestWhoCountsTheSteps:
    LOOP = (
        "import torch\nfrom accelerate import Accelerator\nfrom transformers import AutoModelForCausalLM\n"
        "accelerator = Accelerator({told})\nmodel = AutoModelForCausalLM.from_pretrained('a/b')\n"
        "optimizer = torch.optim.AdamW(model.parameters())\n"
        "model, optimizer = accelerator.prepare(model, optimizer)\n"
        "for step, batch in enumerate(loader):\n{body}"
    )
    STEP = "    accelerator.backward(model(**batch).loss)\n    optimizer.step()\n"
    COUNTED = "    accelerator.backward(model(**batch).loss)\n    if step % 8 == 0:\n        optimizer.step()\n"
    WITHIN = "    with accelerator.accumulate(model):\n" + STEP.replace("    ", "        ")

    @pytest.mark.parametrize("told", ["", "gradient_accumulation_steps=8"])
    @pytest.mark.parametrize(("body", "every"), [(STEP, True), (WITHIN, False)])
    def test_accelerate_counts_within_accumulate_alone(self, told: str, body: str, every: bool) -> None:
        assert script(self.LOOP.format(told=told, body=body)).steps_every_batch is every

    def test_a_loop_that_counts_itself(self) -> None:
        source = script(self.LOOP.format(told="", body=self.COUNTED))
        assert not source.steps_every_batch and values(source)["gradient_accumulation_steps"] == 8


@pytest.mark.parametrize(
    ("arguments", "optimizer"),
    [
        ("", "adamw_torch"),
        (", fused=True", "adamw_torch_fused"),
        (", fused=False", "adamw_torch"),
        (", fused=unknown()", "adamw_torch"),
    ],
)
def test_torch_steps_fused_where_it_is_asked_to(arguments: str, optimizer: str) -> None:
    text = f"""
    import torch
    from transformers import AutoModelForCausalLM
    model = AutoModelForCausalLM.from_pretrained("m").cuda()
    optimizer = torch.optim.AdamW(model.parameters(){arguments})
    for batch in loader:
        model(**batch).loss.backward()
        optimizer.step()
    """
    assert values(script(text))["optimizer"] == optimizer


@pytest.mark.parametrize(
    "search",
    [
        """
        found = False
        for file in os.listdir(path):
            if file.endswith(".bin"):
                found = True
                break
        """,
        """
        found = False
        for file in ("a.bin", "b.bin"):
            if os.path.exists(file):
                found = True
                continue
        """,
        """
        found = False
        for _, _, files in os.walk(path):
            for file in files:
                if file.endswith(".bin"):
                    found = True
                    break
        """,
        """
        found = False
        while not done():
            if os.path.isdir(path):
                found = True
                break
        """,
        """
        found = True
        for file in sorted(glob.glob(path + "/*.bin")):
            found = False
        """,
    ],
    ids=["break", "continue", "inner", "while", "no file"],
)
def test_what_a_search_through_a_folder_finds_is_not_known(search: str) -> None:
    beginning, end = (
        "import glob, os\nfrom transformers import AutoModelForCausalLM\npath = 'out'",
        """
        if found:
            model = AutoModelForCausalLM.from_pretrained(path)
        else:
            model = AutoModelForCausalLM.from_pretrained("a/b", device_map="auto")
        """,
    )
    source = script("\n".join((beginning, textwrap.dedent(search), textwrap.dedent(end))))
    assert [load.taken for load in source.facts.loads] == [None, None]


def test_a_loop_that_is_not_cut_short_decides() -> None:
    source = script(
        """
        from transformers import AutoModelForCausalLM

        found = False
        for file in files:
            if False:
                found = True
                break
        if not found:
            model = AutoModelForCausalLM.from_pretrained("a/b", device_map="auto")
        """
    )
    assert [load.taken for load in source.facts.loads] == [True]
