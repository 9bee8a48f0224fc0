"""What a script freezes, by whatever statement, and what then trains."""

from __future__ import annotations

import pytest

from lintfit.settings.model import AUTO, UNKNOWN
from tests.sources.scripts import script, values

LOAD = """
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments
model = AutoModelForCausalLM.from_pretrained("m"{more})
{between}
Trainer(model=model, args=TrainingArguments("out")).train()
"""


def read(between: str = "", more: str = "") -> dict[str, object]:
    return values(script(LOAD.format(between=between, more=more)))


def test_nobody_knows_what_is_trained_where_layers_are_added_beside_a_frozen_part() -> None:
    frozen = "for layer in model.model.layers[:24]:\n    layer.requires_grad_(False)"
    assert read(frozen)["method"] == "full"
    added = read(f"{frozen}\nimport torch\nmodel.head2 = torch.nn.Linear(8, 8)")
    assert (added["method"], added.get("partly_frozen"), added.get("frozen_modules")) == (UNKNOWN, None, None)


TURNS = """
from transformers import AutoModelForCausalLM, Trainer, TrainerCallback, TrainingArguments
class Turns({base}):
    def {method}(self, *given, **named):
        for name, parameter in self.other.named_parameters():
            parameter.requires_grad = {switch}
model = AutoModelForCausalLM.from_pretrained("m")
{train}
"""
BY_TRAINER = "Turns(model=model, args=TrainingArguments('out')).train()"
BY_CALLBACK = "Trainer(model=model, args=TrainingArguments('out'), callbacks=[Turns()]).train()"
BY_ADDED = (
    "trainer = Trainer(model=model, args=TrainingArguments('out'))\ntrainer.add_callback(Turns())\ntrainer.train()"
)


@pytest.mark.parametrize(
    ("base", "method", "switch", "train", "known"),
    [
        ("Trainer", "training_step", "name in self.group", BY_TRAINER, UNKNOWN),
        ("TrainerCallback", "on_step_begin", "True", BY_CALLBACK, UNKNOWN),
        ("TrainerCallback", "on_step_begin", "name in self.group", BY_ADDED, UNKNOWN),
        ("Trainer", "freeze_reference", "False", BY_TRAINER, "full"),
        ("TrainerCallback", "on_step_begin", "True", BY_TRAINER.replace("Turns", "Trainer"), "full"),
    ],
)
def test_layers_that_are_trained_by_turns(base: str, method: str, switch: str, train: str, known: object) -> None:
    text = TURNS.format(base=base, method=method, switch=switch, train=train)
    assert values(script(text))["method"] == known


@pytest.mark.parametrize(
    "statement",
    ["model.vision_tower.requires_grad_(False)", "model.requires_grad_(True)", "other.requires_grad_(False)"],
)
def test_what_does_not_freeze_the_language_model(statement: str) -> None:
    assert read(statement)["method"] == "full"


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("model.vision_tower.requires_grad_(False)", ("vision_tower",)),
        ("model.model.visual.requires_grad_(False)", ("visual",)),
        ("for p in model.visual.merger.parameters():\n    p.requires_grad = False", ("visual.merger",)),
        (
            "model.vision_tower.requires_grad_(False)\nmodel.multi_modal_projector.requires_grad_(False)",
            ("vision_tower", "multi_modal_projector"),
        ),
        (
            "model.vision_tower.requires_grad_(False)\nmodel.vision_tower.requires_grad_(True)",
            ("vision_tower", "!vision_tower"),
        ),
        ("model.vision_tower.requires_grad_(True)", None),
        (
            "model.vision_tower.requires_grad_(False)\nif x:\n    model.vision_tower.requires_grad_(True)",
            ("vision_tower", "!vision_tower"),
        ),
        ("model.model.embed_tokens.requires_grad_(False)", ("embed_tokens",)),
        ("model.lm_head.requires_grad_(False)", ("lm_head",)),
        ("if x:\n    model.vision_tower.requires_grad_(False)", None),
        ("other.vision_tower.requires_grad_(False)", None),
    ],
)
def test_parts_beside_the_language_model_that_are_frozen(statement: str, expected: object) -> None:
    assert read(statement).get("frozen_modules") == expected


@pytest.mark.parametrize(
    ("owner", "expected"),
    [
        ("Gemma3ForCausalLM", True),
        ("AutoModelForCausalLM", AUTO),
        ("AutoLigerKernelForCausalLM", AUTO),
        ("AutoModelForImageTextToText", None),
        ("Gemma3ForConditionalGeneration", None),
    ],
)
def test_classes_that_load_the_language_model_alone(owner: str, expected: object) -> None:
    source = LOAD.format(between="", more="").replace("AutoModelForCausalLM", owner)
    assert values(script(source)).get("text_only") == expected


ALL_OFF = "for p in model.parameters():\n    p.requires_grad = False\n"
NAMED = "for n, p in model.named_parameters():\n    "


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("model.requires_grad_(False)", ("*",)),
        ("model.model.requires_grad_(False)", ("model",)),
        (ALL_OFF, ("*",)),
        (ALL_OFF + "model.lm_head.requires_grad_(True)", ("*", "!lm_head")),
        ("model.requires_grad_(False)\nfor p in model.model.layers[-2:].parameters():\n    p.requires_grad = True",
            ("*", "!model.layers[-2:]")),
        ("for layer in model.model.layers[:24]:\n    layer.requires_grad_(False)", ("model.layers[:24]",)),
        ("for layer in model.model.layers[:-2]:\n    for p in layer.parameters():\n        p.requires_grad = False",
            ("model.layers[:-2]",)),
        ("for layer in list(model.model.layers)[1:4]:\n    layer.requires_grad_(False)", ("model.layers[1:4]",)),
        ("for i, layer in enumerate(model.model.layers[:8]):\n    layer.requires_grad_(False)", ("model.layers[:8]",)),
        ("model.model.layers[0].requires_grad_(False)", ("model.layers[0]",)),
        ("for layer in model.model.layers:\n    layer.requires_grad_(False)", ("model.layers",)),
        (ALL_OFF + NAMED + "if 'head' in n:\n        p.requires_grad = True", ("*", "!*head*")),
        (NAMED + "if 'head' not in n:\n        p.requires_grad = False", ("*", "!*head*")),
        (NAMED + "if 'head' in n or 'norm' in n:\n        p.requires_grad_()\n    else:\n        p.requires_grad_(0)",
            ("*", "!*head*", "!*norm*", "!*head*", "!*norm*")),
        (NAMED + "p.requires_grad = 'layers.31' in n", ("*", "!*layers.31*")),
        (NAMED + "p.requires_grad = not n.startswith('model.embed')", ("model.embed*",)),
        (NAMED + "p.requires_grad = any(k in n for k in ['lm_head', 'layers.31.'])",
            ("*", "!*lm_head*", "!*layers.31.*")),
        (NAMED + "if n.startswith(('model.embed', 'model.layers.0.')):\n        p.requires_grad_(False)",
            ("model.embed*", "model.layers.0.*")),
        ("for n, p in model.model.named_parameters():\n    p.requires_grad = 'layers.31' in n",
            ("model", "!model.*layers.31*")),
        (ALL_OFF + "def hook(module, inputs, output):\n    output.requires_grad_(True)", ("*",)),
        (ALL_OFF + "other = AutoModelForCausalLM.from_pretrained('o')\nother.requires_grad_(True)", ("*",)),
        (ALL_OFF + "model.lm_head.weight.requires_grad = True", ("*", "!*lm_head.weight")),
        (ALL_OFF + "model.lm_head.requires_grad = True", ("*",)),
        ("model.model.embed_tokens.weight.requires_grad = False", ("*embed_tokens.weight",)),
        (ALL_OFF + "if False:\n    model.requires_grad_(True)", ("*",)),
        (ALL_OFF + NAMED + "if 'tower' in n:\n        p.requires_grad_(True)\n" + NAMED
            + "if 'tower' not in n and 'proj' not in n:\n        p.requires_grad_(True)", ("!*tower*", "*proj*")),
        ("model.requires_grad_(False)\nfor p in model.parameters():\n    p.requires_grad = True", None),
        ("for p in model.parameters():\n    p.requires_grad = True", None),
        ("for p in model.parameters():\n    p.requires_grad_()", None),
        ("for p in other.parameters():\n    p.requires_grad = False", None),
        ("for p in other.parameters():\n    p.requires_grad_(False)", None),
        ("for layer in other.layers[:24]:\n    layer.requires_grad_(False)", None),
        ("reference = AutoModelForCausalLM.from_pretrained('r')\nreference.requires_grad_(False)", None),
    ],
)  # fmt: skip
def test_what_is_frozen_in_which_order(statement: str, expected: object) -> None:
    found = read(statement)
    assert (found["method"], found.get("frozen_modules")) == ("full", expected)


@pytest.mark.parametrize(
    "statement",
    [
        "for i in range(24):\n    for p in model.model.layers[i].parameters():\n        p.requires_grad_(False)",
        "for layer in model.model.layers[:n]:\n    layer.requires_grad_(False)",
        "for layer in model.model.layers[::2]:\n    layer.requires_grad_(False)",
        "for i, layer in enumerate(model.model.layers):\n    if i < 24:\n        layer.requires_grad_(False)",
        "for layer in model.model.layers[:2]:\n    layer.mlp.requires_grad_(False)",
        "if x:\n    model.requires_grad_(False)",
        NAMED + "if x and 'head' in n:\n        p.requires_grad = False",
        NAMED + "if p.ndim == 1:\n        p.requires_grad = False",
        NAMED + "if 'a' in n:\n        p.requires_grad = False\n    elif 'b' in n:\n        p.requires_grad = False",
        NAMED + "if any(k in n for k in trained):\n        p.requires_grad = False",
        ALL_OFF + "model.layers[deep].mlp.weight.requires_grad = True",
        ALL_OFF + "layer = model.model.layers[3]\nfor p in layer.mlp.parameters():\n    p.requires_grad = True",
        ALL_OFF + "def later(m):\n    m.mlp.requires_grad_()\nmodel.apply(later)",
        "model.lm_head.requires_grad_(False)\n" + NAMED + "if 'norm' not in n:\n        p.requires_grad = True",
    ],
)
def test_what_is_frozen_that_only_running_would_tell(statement: str) -> None:
    found = read(statement)
    assert (found["method"], found.get("frozen_modules"), found["partly_frozen"]) == (UNKNOWN, None, True)


def test_adapters_of_the_scripts_own() -> None:
    assert read("model = convert_linear_layer_to_lora(model, 'q_proj', 8)")["method"] is UNKNOWN


def test_what_is_switched_on_again_as_a_whole_is_not_frozen() -> None:
    found = read("model.requires_grad_(False)\npart = model\npart.requires_grad_(True)")
    assert (found["method"], found.get("partly_frozen"), found.get("frozen_modules")) == ("full", None, None)


WRAPPED = """
import torch
from transformers import AutoModelForCausalLM

class Heads(torch.nn.Module):
    def __init__(self, name):
        super().__init__()
        self.model = AutoModelForCausalLM.from_pretrained(name)
        for param in self.model.parameters():
            param.requires_grad = False
        {more}
        self.head = torch.nn.Linear(8, 8)

wrapper = Heads("m")
optimizer = torch.optim.AdamW(wrapper.head.parameters())
for batch in loader:
    loss = wrapper.head(batch["states"]).mean()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("more", "known"),
    [
        ("pass", False),
        ("if asked():\n            self.model.requires_grad_(False)", False),
        ("self.model.requires_grad_(True)", True),
    ],
)
def test_layers_of_the_scripts_own_beside_a_model_that_is_frozen_as_a_whole(more: str, known: bool) -> None:
    found = values(script(WRAPPED.format(more=more), ""))
    assert ("forward_pass" not in found) is known
    if not known:
        assert (found["method"], found["forward_pass"]) == (UNKNOWN, True)


def test_a_model_that_is_frozen_as_a_whole_under_a_name_of_its_own() -> None:
    added = "import torch\nmodel.requires_grad_(False)\nmodel.head2 = torch.nn.Linear(8, 8)"
    assert read(added)["forward_pass"] is True


@pytest.mark.parametrize(
    ("statement", "method"),
    [
        ("from loralib import mark_only_lora_as_trainable\nmark_only_lora_as_trainable(model)", UNKNOWN),
        ("from own import set_trainable_lora\nmodel = set_trainable_lora(model, rank=8)", UNKNOWN),
        ("def set_trainable_lora(model):\n    return model\nmodel = set_trainable_lora(model)", "full"),
        ("from own import set_lora_scale\nset_lora_scale(model)", "full"),
        ("from own import print_trainable_parameters\nprint_trainable_parameters(model)", "full"),
    ],
)
def test_code_that_is_not_read_chooses_what_is_trained(statement: str, method: object) -> None:
    assert read(statement)["method"] == method


def test_adapters_of_peft_stay_lora_whoever_marks_them() -> None:
    adapted = "from peft import LoraConfig, get_peft_model\nmodel = get_peft_model(model, LoraConfig(r=8))\n"
    assert (
        read(f"{adapted}from own import mark_only_lora_as_trainable\nmark_only_lora_as_trainable(model)")["method"]
        == "lora"
    )


OWN_CLASS = """
from transformers import AutoModelForCausalLM, PreTrainedModel, Trainer, TrainingArguments
from kit import recipe
class Wrapper(PreTrainedModel):
    def load_llm(self, name):
        self.language_model = AutoModelForCausalLM.from_pretrained(name)
        {switch}
model = Wrapper(config)
model.load_llm("m")
model = recipe(model)
Trainer(model=model, args=TrainingArguments("out")).train()
"""


@pytest.mark.parametrize(
    ("switch", "known"),
    [
        ("self.language_model.requires_grad_(False)", UNKNOWN),
        ("for p in self.language_model.parameters(): p.requires_grad = False", UNKNOWN),
        ("self.vision_tower.requires_grad_(False)", "full"),
    ],
)
def test_a_class_of_the_projects_own_that_freezes_its_language_model(switch: str, known: object) -> None:
    assert values(script(OWN_CLASS.format(switch=switch)))["method"] == known


@pytest.mark.parametrize(
    "statement", ["get_reft_model(model, config)", "wrapped.disable_model_gradients()", "model.train_adapter('task')"]
)
def test_interventions_beside_a_frozen_model(statement: str) -> None:
    assert read(statement)["method"] is UNKNOWN
