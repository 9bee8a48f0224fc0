"""Plans of preference runs: what becomes of the reference model."""

from __future__ import annotations

from pathlib import Path

from lintfit.commands.check import load_runs
from lintfit.documents.workspace import Workspace
from lintfit.findings.model import Plan
from lintfit.fit.feasibility import Feasibility
from lintfit.fit.options import Effect, Subject
from lintfit.fit.planner import attempted, displayed
from lintfit.fit.search import Fitting, Search
from lintfit.fit.space import Space
from lintfit.memory import estimate
from lintfit.options.model import Options
from lintfit.run.change import changed_spec
from lintfit.run.model import Run

SCRIPT = """\
import torch
from peft import LoraConfig
from transformers import AutoModelForCausalLM
from trl import DPOConfig, DPOTrainer

model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-1.5B", torch_dtype=torch.bfloat16)
{before}
args = DPOConfig("out", bf16=True, per_device_train_batch_size=1, gradient_checkpointing=True, max_length=512)
trainer = DPOTrainer(model=model, args=args{handed})
trainer.train()
"""
OTHER = 'other = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-1.5B", torch_dtype=torch.bfloat16)'


def _run(folder: Path, before: str = "", handed: str = "") -> tuple[Run, Options]:
    (folder / "train.py").write_text(SCRIPT.format(before=before, handed=handed))
    options = Options(gpu="H100", gpus=1, isolated=True, origins={"gpu": "--gpu", "gpus": "--gpus"})
    _, (result,) = load_runs([folder / "train.py"], options)
    return result.run, options


def _plan_of(run: Run, options: Options, name: str) -> Plan:
    """The plan of the option that has this name alone, written where it can be."""
    assert run.spec is not None
    search = Search(Space(Subject(run, run.spec)), run.options.margin)
    (option,) = (each for axis in search.space.lasting for each in axis if each.name == name)
    candidate = search.space.combined((option,))
    assert candidate is not None
    spec = changed_spec(run.spec, candidate.changes)
    found = Fitting(candidate, spec, estimate(spec), 1.0, search.rank(candidate, spec))
    written = attempted(run, found, search, Feasibility(run, Workspace(), options))
    return written if isinstance(written, Plan) else displayed(run, found, written, search)


def test_one_that_the_trainer_makes_is_none_beside_adapters(tmp_path: Path) -> None:
    run, options = _run(tmp_path)
    assert run.spec is not None and run.spec.reference_model
    plan = _plan_of(run, options, "LoRA")
    assert not plan.by_hand
    assert {step.setting: step.after for step in plan.steps}["reference_model"] is False
    whole, adapted = run.spec, changed_spec(run.spec, {"method": "lora", "reference_model": False})
    assert adapted.reference_model is False and estimate(adapted).peak.high < estimate(whole).peak.high
    (follows,) = (action for action in plan.actions if action.follows)
    assert "no reference model" in follows.text


def test_one_that_is_handed_over_is_taken_out_by_hand(tmp_path: Path) -> None:
    run, options = _run(tmp_path, OTHER, ", ref_model=other")
    plan = _plan_of(run, options, "LoRA")
    assert plan.by_hand == "TRL takes no reference model beside adapters"
    (action,) = (action for action in plan.actions if "reference model" in action.text)
    assert [line.line for line in action.lines] == [7]


def test_beside_adapters_it_is_counted_and_a_way_out_is_to_hand_over_none(tmp_path: Path) -> None:
    run, options = _run(tmp_path, OTHER, ", ref_model=other, peft_config=LoraConfig(r=8)")
    assert run.spec is not None and (run.spec.method, run.spec.reference_model) == ("lora", True)
    plan = _plan_of(run, options, "no second reference model")
    assert plan.by_hand and plan.effects
    without = changed_spec(run.spec, {"reference_model": False})
    saved = estimate(run.spec).component("parameters") - estimate(without).component("parameters")
    assert saved == 2 * run.spec.facts.parameters


def test_adapters_as_they_are_have_none_to_give_up(tmp_path: Path) -> None:
    run, _ = _run(tmp_path, "", ", peft_config=LoraConfig(r=8)")
    assert run.spec is not None
    names = {option.name for axis in Space(Subject(run, run.spec), Effect.ADAPTERS).lasting for option in axis}
    assert "no second reference model" not in names
