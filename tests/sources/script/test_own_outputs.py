"""What a training loop of the script's own holds of the model's outputs, and how the name is let go of."""

from __future__ import annotations

import pytest

from tests.sources.scripts import after, script, values

SCRIPT = """
import torch
from accelerate import Accelerator
from transformers import AutoModelForCausalLM

accelerator = Accelerator(mixed_precision="bf16")
model = AutoModelForCausalLM.from_pretrained("some/model")
optimizer = torch.optim.AdamW(model.parameters())
model, optimizer = accelerator.prepare(model, optimizer)

for batch in loader:
{body}
    optimizer.step()
"""


def loop(*lines: str) -> str:
    return SCRIPT.format(body="\n".join(f"    {line}" for line in lines))


HELD = ("outputs = model(**batch)", "loss = outputs.loss", "accelerator.backward(loss)")


@pytest.mark.parametrize(
    ("lines", "becomes"),
    [
        (HELD, "held"),
        (("outputs = model(**batch)", "accelerator.backward(outputs.loss)"), "held"),
        (("outputs = model(**batch)", "loss = outputs[0] / 4", "accelerator.backward(loss)"), "held"),
        (("outputs = model(**batch)", "loss = outputs.loss", "loss = loss / 4", "loss.backward()"), "held"),
        (("with accelerator.accumulate(model):", *(f"    {line}" for line in HELD)), "held"),
        (("logits = model(**batch).logits", "loss = criterion(logits, batch)", "loss.backward()"), "held"),
        ((*HELD, "del outputs"), "backward"),
        ((*HELD, "outputs = None"), "backward"),
        ((*HELD[:2], "del outputs", HELD[2]), "dropped"),
        ((*HELD[:2], "outputs = None", HELD[2]), "dropped"),
        ((*HELD[:2], "del loss_of, outputs", HELD[2]), "dropped"),
        (("loss = model(**batch).loss", "accelerator.backward(loss)"), "dropped"),
        (("loss = model(**batch)[0]", "accelerator.backward(loss)"), "dropped"),
        (("outputs = model(**batch).loss", "accelerator.backward(outputs)"), "dropped"),
        (("loss = compute_loss(model, batch)", "accelerator.backward(loss)"), "dropped"),
        (("ids = batch['ids'][:, :-1]", "outputs = model(ids)", "loss = outputs[0]", "loss.backward()"), "held"),
        (("outputs = model(batch['ids'], labels=ids[:, :9])", "outputs.loss.backward()"), "held"),
        (("outputs = model(batch['ids'][:, :10])", "outputs.loss.backward()"), "dropped"),
        (
            (
                "ids = batch['ids']",
                "if long(ids):",
                "    ids = ids[:, :10]",
                "outputs = model(ids)",
                "outputs[0].backward()",
            ),
            "dropped",
        ),
        (("with torch.no_grad():", "    outputs = model(**batch)", "loss = f(outputs)", "loss.backward()"), "dropped"),
    ],
)
def test_what_becomes_of_the_outputs(lines: tuple[str, ...], becomes: str) -> None:
    assert values(script(loop(*lines)))["loop_outputs"] == becomes


def test_a_functions_name_is_gone_when_it_returns() -> None:
    text = SCRIPT.format(body="    step(batch)").replace(
        "for batch", "def step(batch):\n" + "".join(f"    {line}\n" for line in HELD) + "\n\nfor batch"
    )
    assert values(script(text))["loop_outputs"] == "backward"


def test_the_name_and_its_place() -> None:
    setting = script(loop(*HELD)).settings["loop_outputs"]
    assert setting.provenance.detail == "outputs holds what the model gives"
    assert setting.provenance.place is not None and setting.provenance.place.text == "model(**batch)"


def test_a_trainer_has_no_such_loop() -> None:
    source = script(
        "from transformers import AutoModelForCausalLM, Trainer\n"
        "model = AutoModelForCausalLM.from_pretrained('a/b')\nTrainer(model=model).train()\n"
    )
    assert "loop_outputs" not in source.settings


@pytest.mark.parametrize(("made", "copied"), [("Accelerator(mixed_precision='bf16')", True), ("None", False)])
def test_who_copies_the_outputs(made: str, copied: bool) -> None:
    text = loop(*HELD).replace('Accelerator(mixed_precision="bf16")', made)
    if not copied:
        text = text.replace("model, optimizer = accelerator.prepare(model, optimizer)", "model.cuda()")
        text = text.replace("accelerator.backward(loss)", "loss.backward()")
    assert values(script(text))["upcast_outputs"] is copied


@pytest.mark.parametrize(
    ("line", "said"), [("", None), ("model.config.use_cache = False", False), ("logits = model(**batch).logits", False)]
)
def test_the_cache_that_goes_with_them(line: str, said: bool | None) -> None:
    if line.startswith("logits"):
        text = loop(line, "loss = criterion(logits, batch)", "loss.backward()")
    else:
        text = loop(*HELD).replace("for batch", f"{line}\nfor batch")
    assert values(script(text)).get("use_cache") is said


class TestLettingGo:
    def test_in_front_of_the_backward_pass(self) -> None:
        source = script(loop(*HELD))
        edits = source.write("loop_outputs", "dropped")
        assert edits is not None
        text = after(source, edits)
        assert "    del outputs\n    accelerator.backward(loss)\n" in text
        assert values(script(text))["loop_outputs"] == "dropped"

    @pytest.mark.parametrize(
        "lines",
        [
            (*HELD, "seen = outputs.logits.argmax(-1)"),
            ("outputs = model(**batch)", "accelerator.backward(outputs.loss)"),
            ("outputs = model(**batch)", "logits = outputs.logits", "loss = f(logits)", "accelerator.backward(loss)"),
            ("if batch:", "    outputs = model(**batch)", "loss = outputs.loss", "accelerator.backward(loss)"),
        ],
    )
    def test_not_where_the_name_is_needed(self, lines: tuple[str, ...]) -> None:
        assert script(loop(*lines)).write("loop_outputs", "dropped") is None

    def test_another_loop_may_have_the_same_name(self) -> None:
        evaluation = "\nfor batch in held_out:\n    outputs = model(**batch)\n    total += outputs.loss.item()\n"
        assert script(loop(*HELD) + evaluation).write("loop_outputs", "dropped") is not None

    def test_not_where_it_is_used_behind_the_loop(self) -> None:
        assert script(loop(*HELD) + "\nprint(outputs.loss)\n").write("loop_outputs", "dropped") is None


def test_a_loop_that_drops_them_says_so_of_its_cache_too() -> None:
    lines = ("loss = model(**batch, use_cache=False).loss", "accelerator.backward(loss)")
    assert values(script(loop(*lines)))["use_cache"] is False
    assert "use_cache" not in values(script(loop("loss = model(**batch).loss", "accelerator.backward(loss)")))
