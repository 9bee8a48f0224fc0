"""What a forward pass of the project's own runs of the model: one pass as is counted, or something else."""

from __future__ import annotations

from pathlib import Path

import pytest

from lintfit.settings.model import UNKNOWN
from tests.run.test_beside import put
from tests.sources.scripts import script
from tests.support import lintfit

INHERITS = """
import torch
from transformers import AutoModelForCausalLM, LlamaForCausalLM, Trainer, TrainingArguments

class Own(LlamaForCausalLM):
    def layers_of(self, part):
        return self.model(part)

    def forward(self, input_ids, labels=None):
{body}

model = Own.from_pretrained("some/model")
Trainer(model=model, args=TrainingArguments("out")).train()
"""
WRAPS = """
import torch
from torch import nn
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

class Heads(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.inner = model

    def forward(self, input_ids, labels=None):
{body}

model = Heads(AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B"))
Trainer(model=model, args=TrainingArguments("out", bf16=True)).train()
"""


def said(source: str, *lines: str) -> tuple[bool, bool]:
    """Whether the pass is not counted, and whether only the model's outputs are open."""
    settings = script(source.format(body="\n".join(f"        {line}" for line in lines))).settings
    return "forward_pass" in settings, "own_head" in settings


@pytest.mark.parametrize(
    "lines",
    [
        ("return super().forward(input_ids, labels=labels)",),
        ("hidden = self.model(input_ids)", "return self.lm_head(hidden)"),
        ("return self.layers_of(input_ids)",),
        ("return self.lm_head(self.model.forward(input_ids))",),
        ("if labels is None:", "    return super().forward(input_ids)", "return self.model(input_ids)"),
    ],
)
def test_a_class_that_makes_one_pass_is_counted_as_the_library_s(lines: tuple[str, ...]) -> None:
    assert said(INHERITS, *lines) == (False, False)


@pytest.mark.parametrize(
    "lines",
    [
        ("for part in input_ids:", "    out = self.layers_of(part)", "return out"),
        ("outs = [self.model(part) for part in input_ids]", "return outs[-1]"),
        ("with torch.no_grad():", "    hidden = self.model(input_ids)", "return self.lm_head(hidden)"),
        ("with torch.no_grad():", "    hidden = self.layers_of(input_ids)", "return self.lm_head(hidden)"),
        ("return self.head(input_ids)",),
    ],
)
def test_what_is_no_single_pass_with_gradients_is_not(lines: tuple[str, ...]) -> None:
    assert said(INHERITS, *lines) == (True, False)


def test_of_several_passes_one_is_a_lower_bound() -> None:
    lines = ("first = self.model(input_ids)", "return self.model(first)")
    settings = script(INHERITS.format(body="\n".join(f"        {line}" for line in lines))).settings
    assert settings["uncounted"].value == "the 2 passes of the model that Own.forward makes before it goes backward"
    assert "forward_pass" not in settings


MODULE = """
import torch
from transformers import AutoModel

class Own(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = AutoModel.from_pretrained("some/model")
        self.head = torch.nn.Linear(10, 1)

    def encode(self, batch):
        return self.encoder(**batch)[0]

    def forward(self, first, second):
        return self.head({forward})

model = Own().cuda()
optimizer = torch.optim.AdamW(model.parameters())
for first, second in loader:
    loss = criterion(model(first, second))
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("forward", "uncounted"),
    [
        ("self.encoder(**first)[0]", None),
        ("self.encoder(**first)[0] if second is None else self.encoder(**second)[0]", None),
        (
            "self.encoder(**first)[0] * self.encoder(**second)[0]",
            "the 2 passes of the model that Own.forward makes before it goes backward",
        ),
        ("self.encode(first)", None),
        (
            "self.encode(first) * self.encode(second)",
            "the 2 passes of the model that Own.forward makes before it goes backward",
        ),
        ("encode(self, first)", None),
    ],
)
def test_a_module_that_a_loop_trains(forward: str, uncounted: str | None) -> None:
    settings = script(MODULE.format(forward=forward)).settings
    found = settings.get("uncounted")
    assert (found.value if found is not None else None) == uncounted
    assert ("forward_pass" in settings) is forward.startswith("encode(self")


def test_a_module_around_the_model_decides_what_becomes_of_its_outputs() -> None:
    assert said(WRAPS, "return self.inner(input_ids).hidden_states") == (False, True)
    assert said(WRAPS, "with torch.no_grad():", "    return self.inner(input_ids)") == (True, False)


def test_a_package_s_class_around_the_model_may_freeze_what_it_likes() -> None:
    body = "        return self.inner(input_ids)"
    source = (
        WRAPS.format(body=body)
        .replace("nn.Module", "IntervenableModel")
        .replace("from torch import nn", "from pyvene import IntervenableModel")
    )
    settings = script(source).settings
    assert "method" not in settings or settings["method"].value is UNKNOWN


def verdict(folder: Path, *lines: str, gpu: str) -> tuple[str, int]:
    """The verdict on a full fine-tuning of 7B, and the logits that are counted."""
    put(folder, {"train.py": WRAPS.format(body="\n".join(f"        {line}" for line in lines))})
    found = lintfit("check", "train.py", "--gpu", gpu, "--gpus", "1", "--output-format", "json", cwd=folder)
    (run,) = found.json["runs"]
    return run["verdict"], run["estimate"]["components"]["logits"]


def test_weights_and_states_alone_can_be_too_much(tmp_path: Path) -> None:
    no_gradients = ("with torch.no_grad():", "    return self.inner(input_ids)")
    assert verdict(tmp_path, *no_gradients, gpu="3090") == ("does-not-fit", 0)
    assert verdict(tmp_path, *no_gradients, gpu="B200")[0] == "unknown"
    assert verdict(tmp_path, "return self.inner(input_ids)[0]", gpu="3090")[1] == 0


@pytest.mark.parametrize(
    ("loss", "own"),
    [
        ("low_memory_loss(hidden, self.lm_head.weight, labels)", True),
        ("loss_fct(self.lm_head(hidden), labels)", False),
        ("torch.nn.functional.cross_entropy(self.lm_head(hidden), labels)", False),
        ("self.loss_function(self.lm_head(hidden), labels)", False),
    ],
)
def test_a_loss_that_the_class_makes_in_a_way_of_its_own(loss: str, own: bool) -> None:
    assert said(INHERITS, "hidden = self.model(input_ids)", f"loss = {loss}", "return loss") == (False, own)


@pytest.mark.parametrize(
    ("lines", "loss"),
    [
        (
            ("hidden = self.model(input_ids)[0]", "return linear_cross_entropy(hidden, self.lm_head.weight, labels)"),
            "liger",
        ),
        (
            (
                "hidden = self.model(input_ids)[0]",
                "return LigerFusedLinearCrossEntropyLoss()(self.head, hidden, labels)",
            ),
            "liger",
        ),
        (
            (
                "hidden = self.model(input_ids)[0]",
                "if labels is None:",
                "    return self.lm_head(hidden)",
                "return linear_cross_entropy(hidden, self.lm_head.weight, labels)",
            ),
            UNKNOWN,
        ),
        (("return cross_entropy(self.lm_head(self.model(input_ids)[0]), labels)",), None),
    ],
)
def test_a_loss_that_is_computed_with_the_output_layer(lines: tuple[str, ...], loss: object) -> None:
    text = INHERITS.format(body="\n".join(f"        {line}" for line in lines))
    found = script(text, "").settings.get("loss")
    assert (found.value if found is not None else None) == loss


@pytest.mark.parametrize(
    ("made", "loss"), [("LigerFusedLinearCrossEntropyLoss(reduction='sum')", "liger"), ("CrossEntropyLoss()", None)]
)
def test_a_loss_with_the_output_layer_that_the_class_holds(made: str, loss: object) -> None:
    body = "        return self.fused(self.lm_head.weight, self.model(input_ids)[0], labels)"
    held = f"    def __init__(self, config):\n        super().__init__(config)\n        self.fused = {made}\n\n"
    text = INHERITS.replace("    def layers_of", f"{held}    def layers_of").format(body=body)
    found = script(text, "").settings.get("loss")
    assert (found.value if found is not None else None) == loss
