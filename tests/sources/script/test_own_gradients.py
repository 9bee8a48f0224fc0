"""When a training loop of the script's own lets go of its gradients."""

from __future__ import annotations

import pytest

from tests.sources.scripts import after, script, values

SCRIPT = """
import torch
from transformers import AutoModelForCausalLM

model = AutoModelForCausalLM.from_pretrained("some/model").cuda()
optimizer = torch.optim.AdamW(model.parameters())

for step, batch in enumerate(loader):
{body}
"""
FORWARD, BACKWARD, STEP = "loss = model(**batch).loss", "loss.backward()", "optimizer.step()"
ZERO = "optimizer.zero_grad()"


def when(*lines: str, before: str = "", versions: dict[str, str] | None = None) -> object:
    text = SCRIPT.format(body="\n".join(f"    {line}" for line in lines)).replace("\nfor step", f"{before}\nfor step")
    return values(script(text, versions=versions)).get("zero_grad")


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ((FORWARD, BACKWARD, STEP, ZERO), "step"),
        ((FORWARD, BACKWARD, STEP, "model.zero_grad()"), "step"),
        ((FORWARD, BACKWARD, "if step % 8 == 0:", f"    {STEP}", f"    {ZERO}"), "step"),
        ((ZERO, FORWARD, BACKWARD, STEP), "forward"),
        ((FORWARD, ZERO, BACKWARD, STEP), "backward"),
        ((FORWARD, BACKWARD, STEP, "optimizer.zero_grad(set_to_none=False)"), "never"),
        ((FORWARD, ZERO.replace("()", "(set_to_none=True)"), BACKWARD, STEP), "backward"),
        ((FORWARD, BACKWARD, STEP), None),
    ],
)
def test_by_the_order_of_the_calls(lines: tuple[str, ...], found: str | None) -> None:
    assert when(*lines) == found


def test_once_in_front_of_the_loop_is_not_every_time() -> None:
    assert when(FORWARD, BACKWARD, STEP, ZERO, before=ZERO) == "step"


def test_torch_1_fills_with_zeros() -> None:
    assert when(FORWARD, BACKWARD, STEP, ZERO, versions={"torch": "1.13.1"}) == "never"
    assert when(FORWARD, BACKWARD, STEP, ZERO, versions={"torch": "2.1.0"}) == "step"


def test_a_trainer_has_no_such_loop() -> None:
    source = script(
        "from transformers import AutoModelForCausalLM, Trainer\n"
        "model = AutoModelForCausalLM.from_pretrained('a/b')\nTrainer(model=model).train()\n"
    )
    assert "zero_grad" not in source.settings


class TestBehindTheStep:
    @staticmethod
    def moved(*lines: str) -> str | None:
        source = script(SCRIPT.format(body="\n".join(f"    {line}" for line in lines)))
        edits = source.write("zero_grad", "step")
        return None if edits is None else after(source, edits)

    @pytest.mark.parametrize("lines", [(FORWARD, ZERO, BACKWARD, STEP), (ZERO, FORWARD, BACKWARD, STEP)])
    def test_a_statement_of_its_own_is_moved(self, lines: tuple[str, ...]) -> None:
        text = self.moved(*lines)
        wanted = SCRIPT.format(body="\n".join(f"    {line}" for line in (FORWARD, BACKWARD, STEP, ZERO)))
        assert text is not None and text.strip() == wanted.strip()
        assert values(script(text))["zero_grad"] == "step"

    def test_zeros_become_none(self) -> None:
        text = self.moved(FORWARD, BACKWARD, STEP, "optimizer.zero_grad(set_to_none=False)")
        assert text is not None and f"    {STEP}\n    {ZERO}" in text

    @pytest.mark.parametrize("lines", [(FORWARD, ZERO, BACKWARD, STEP), (FORWARD, BACKWARD, STEP, ZERO)])
    def test_torch_1_has_to_be_asked(self, lines: tuple[str, ...]) -> None:
        old = {"torch": "1.13.1"}
        source = script(SCRIPT.format(body="\n".join(f"    {line}" for line in lines)), versions=old)
        edits = source.write("zero_grad", "step")
        assert edits is not None
        text = after(source, edits)
        assert f"    {STEP}\n    optimizer.zero_grad(set_to_none=True)" in text
        assert values(script(text, versions=old))["zero_grad"] == "step"

    @pytest.mark.parametrize(
        "lines",
        [
            (FORWARD, ZERO, BACKWARD, STEP, "log(model.weight.grad.norm())"),
            (FORWARD, ZERO, BACKWARD, "if step % 8 == 0:", f"    {STEP}"),
            (FORWARD, "if step % 8 == 0:", f"    {ZERO}", BACKWARD, STEP),
            (ZERO, FORWARD, ZERO, BACKWARD, STEP),
            (FORWARD, ZERO, BACKWARD, STEP, "other_optimizer.step()"),
            (f"{ZERO}; {FORWARD}", BACKWARD, STEP),
        ],
    )
    def test_not_where_it_may_matter(self, lines: tuple[str, ...]) -> None:
        assert self.moved(*lines) is None
