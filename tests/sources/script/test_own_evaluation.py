"""What a loop of the script's own evaluates with: batch, logits, graphs."""

from __future__ import annotations

import pytest

from tests.sources.scripts import script, values

SCRIPT = """
import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM

accelerator = Accelerator()
model = AutoModelForCausalLM.from_pretrained("some/model")
optimizer = torch.optim.AdamW(model.parameters())
train_loader = DataLoader(data, batch_size=4)
{loader}
{prepare}

for epoch in range(3):
    model.train()
    for batch in train_loader:
        loss = model(**batch).loss
        accelerator.backward(loss)
        optimizer.step()
    model.eval()
    kept = []
{body}
"""
LOADER = "eval_loader = DataLoader(held_out, batch_size=16)"
PREPARE = "model, optimizer, train_loader = accelerator.prepare(model, optimizer, train_loader)"


def said(lines: str, loader: str = LOADER, over: str = "eval_loader", graph: bool = False) -> dict[str, object]:
    call = "outputs = model(**batch)" if "model(" not in lines else ""
    forward = f"        {call}\n" if graph else f"        with torch.no_grad():\n            {call or 'pass'}\n"
    if call == "":
        forward = "" if graph else "        with torch.no_grad():\n"
        lines = lines if graph else "    " + lines
    body = f"    for batch in {over}:\n{forward}" + "".join(f"        {line}\n" for line in lines.splitlines())
    found = values(script(SCRIPT.format(loader=loader, prepare=PREPARE, body=body), ""))
    return {name: value for name, value in found.items() if name.startswith("eval_")}


HELD = {"eval_batch_size": 16, "eval_predictions": "held"}


@pytest.mark.parametrize(
    ("lines", "becomes"),
    [
        ("kept.append(outputs.loss.item())", "held"),
        ("kept.append(accelerator.gather_for_metrics(outputs.loss.repeat(16)))", "held"),
        ("kept.append(outputs.logits.argmax(-1))", "held"),
        ("kept.append(outputs.logits.cpu())", "held"),
        ("kept.append(accelerator.gather(outputs.logits))", "listed"),
        ("logits = outputs.logits\nkept.append(logits)", "listed"),
        ("best = outputs.logits.argmax(-1)\nkept.append(best)", "held"),
        ("outputs = outputs.logits.argmax(-1).cpu()\nkept.append(names[outputs[0]])", "held"),
        ("kept.append(outputs)", "listed"),
        ("kept.append(outputs['logits'])", "listed"),
        ("kept.append(outputs['chosen_mean_scores'])", "held"),
        ("chosen = outputs['scores']\nkept.append(chosen)", "held"),
        ("kept.append(outputs[0])", "held"),
        ("outputs = outputs.logits\nkept.append(outputs[:, -1])", "listed"),
        ("kept.append(outputs.logits[:, :-1].detach().float())", "listed"),
        ("kept.append((outputs.logits / 2, batch['labels']))", "listed"),
        ("kept.append(torch.softmax(outputs.logits, dim=-1))", "listed"),
        ("pair = (outputs.logits, batch['labels'])\nkept.append(measured(pair)['accuracy'])", "held"),
        ("best = chosen(outputs.logits)\npair = (best, batch['labels'])\nkept.append(pair)", "held"),
        ("kept.append(outputs.logits.mean())", "held"),
        ("kept.append(float(torch.sum(outputs.logits)))", "held"),
        ("kept.append(model(**batch).loss.item())", "dropped"),
    ],
)
def test_what_becomes_of_the_logits(lines: str, becomes: str) -> None:
    assert said(lines) == {**HELD, "eval_predictions": becomes}


@pytest.mark.parametrize("over", ["eval_loader", "tqdm(eval_loader)", "enumerate(eval_loader)", "loader"])
def test_the_loader_that_a_loop_goes_through(over: str) -> None:
    assert said("print(outputs.loss)", over=over)["eval_batch_size"] == 16


@pytest.mark.parametrize(
    "loader",
    [
        "eval_loader = make(held_out)",
        "eval_loader = DataLoader(held_out, batch_size=args.size)",
        "eval_loader = DataLoader(held_out, batch_size=None)",
    ],
)
def test_a_batch_that_cannot_be_told_is_nobodys(loader: str) -> None:
    assert said("print(outputs.loss)", loader) == {}


def test_several_loaders_in_the_place_of_one_are_nobodys() -> None:
    more = f"{LOADER}\ntest_loader = DataLoader(held_out, batch_size=32)"
    assert said("print(outputs.loss)", more, over="loader") == {}
    assert said("print(outputs.loss)", more)["eval_batch_size"] == 16


@pytest.mark.parametrize(
    ("lines", "becomes"),
    [
        ("print(outputs.loss)", "held"),
        ("loss = model(**batch).loss", "held"),
        ("loss = model(**batch).loss.item()", "dropped"),
        ("kept.append(model(**batch).loss.item())", "dropped"),
        ("kept.append(outputs.loss)", "listed"),
        ("loss = outputs.loss\nkept.append(loss / 16)", "listed"),
        ("kept.append(outputs.loss.cpu())", "listed"),
        ("kept.append(outputs.loss.detach())", "held"),
        ("kept.append(model(**batch).loss)", "listed"),
    ],
)
def test_gradients_that_nobody_switches_off(lines: str, becomes: str) -> None:
    assert said(lines, graph=True) == {**HELD, "eval_predictions": becomes, "eval_graph": True}


def test_a_training_alone_evaluates_nothing() -> None:
    text = SCRIPT.format(loader=LOADER, prepare=PREPARE, body="")
    assert not [name for name in values(script(text, "")) if name.startswith("eval_")]


ANSWERS = {"eval_batch_size": 16, "eval_generates": "only", "eval_new_tokens": 64}


def answers(line: str, **kwargs: str) -> dict[str, object]:
    body = f"    for batch in eval_loader:\n        {line}\n"
    text = SCRIPT.format(**{"loader": LOADER, "prepare": PREPARE, "body": body, **kwargs})
    return {name: value for name, value in values(script(text, "")).items() if name.startswith("eval_")}


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("tokens = model.generate(**batch, max_new_tokens=64)", ANSWERS),
        ("tokens = accelerator.unwrap_model(model).generate(batch['input_ids'], max_new_tokens=64)", ANSWERS),
        ("tokens = model.module.generate(**batch, max_new_tokens=64, num_beams=1)", ANSWERS),
        ("tokens = model.generate(**batch)", {}),
        ("tokens = model.generate(**batch, max_new_tokens=chosen())", {}),
        ("tokens = model.generate(**batch, generation_config=config)", {}),
        ("tokens = other.generate(**batch, max_new_tokens=64)", {}),
        ("with torch.no_grad(): tokens = model.generate(**batch, max_new_tokens=64)", ANSWERS),
    ],
)
def test_a_loop_that_only_generates(line: str, found: dict[str, object]) -> None:
    assert answers(line) == found


def test_beams() -> None:
    body = "    for batch in eval_loader:\n        model.generate(**batch, max_new_tokens=64, num_beams=4)\n"
    text = SCRIPT.format(loader=LOADER, prepare=PREPARE, body=body)
    assert values(script(text, ""))["generation_num_beams"] == 4


def test_answers_beside_a_loss() -> None:
    found = said("outputs = model(**batch)\ntokens = model.generate(**batch, max_new_tokens=64)", graph=True)
    assert found["eval_generates"] == "beside"
    assert found["eval_batch_size"] == 16 and found["eval_new_tokens"] == 64


def test_answers_to_batches_of_unknown_size() -> None:
    line = "tokens = model.generate(**batch, max_new_tokens=64)"
    assert answers(line, loader="eval_loader = make(16)") == {}


OWN_CLASS = """
import torch.nn as nn

class Scored(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model
        self.head = nn.Linear(8, 1)

    def forward(self, input_ids):
        return self.head(self.model(input_ids).last_hidden_state)[:, -1]

"""


@pytest.mark.parametrize(("kept", "becomes"), [("outputs", "held"), ("outputs.logits", "listed")])
def test_a_class_of_the_projects_own_gives_what_it_likes(kept: str, becomes: str) -> None:
    loaded = 'model = AutoModelForCausalLM.from_pretrained("some/model")'
    text = SCRIPT.replace("accelerator = Acc", OWN_CLASS + "accelerator = Acc", 1)
    text = text.replace(loaded, 'model = Scored(AutoModelForCausalLM.from_pretrained("some/model"))')
    body = "    for batch in eval_loader:\n        with torch.no_grad():\n            outputs = model(**batch)\n"
    text = text.format(loader=LOADER, prepare=PREPARE, body=f"{body}        kept.append({kept})\n")
    assert values(script(text, ""))["eval_predictions"] == becomes
