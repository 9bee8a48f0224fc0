"""Properties of plans and fixes over generated projects: what is said to fit does, and nothing else changes."""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from lintfit.commands import fit
from lintfit.commands.check import check
from lintfit.documents.edits import apply
from lintfit.documents.model import Edit, Span
from lintfit.findings.model import Applicability
from lintfit.findings.results import RunResult
from lintfit.fit.applying import line_edits
from lintfit.memory.result import Verdict
from lintfit.options.model import Options
from lintfit.run.change import changed_spec

SCRIPT = """\
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments

tokenizer = AutoTokenizer.from_pretrained("{model}", model_max_length={seq})
model = AutoModelForCausalLM.from_pretrained("{model}", torch_dtype=torch.{dtype})

args = TrainingArguments(
    output_dir="out",  # kept: the cluster's scratch
    per_device_train_batch_size={micro},
    gradient_accumulation_steps={steps},
    gradient_checkpointing={checkpointing},
    bf16={bf16},
    deepspeed={deepspeed},
)
trainer = Trainer(model=model, args=args, train_dataset=None)
trainer.train()
"""

MODELS = ("meta-llama/Llama-2-7b-hf", "Qwen/Qwen2.5-7B", "Qwen/Qwen2.5-1.5B", "mistralai/Mistral-7B-v0.1")

projects = st.fixed_dictionaries(
    {
        "model": st.sampled_from(MODELS),
        "seq": st.sampled_from([512, 2048, 4096]),
        "dtype": st.sampled_from(["float32", "bfloat16"]),
        "micro": st.sampled_from([1, 2, 4, 6, 8]),
        "steps": st.sampled_from([1, 2, 3]),
        "checkpointing": st.booleans(),
        "bf16": st.booleans(),
        "stage": st.sampled_from([None, 1, 2, 3]),
        "literal": st.booleans(),
        "gpus": st.sampled_from([1, 2, 4, 8]),
        "gpu": st.sampled_from(["NVIDIA A10", "NVIDIA A100-SXM4-40GB", "NVIDIA A100-SXM4-80GB"]),
    }
)


def _write(folder: Path, project: dict[str, Any]) -> None:
    deepspeed = None
    if project["stage"] is not None:
        deepspeed = "ds.json"
        literal = {"train_micro_batch_size_per_gpu": project["micro"], "gradient_accumulation_steps": project["steps"]}
        auto = dict.fromkeys(literal, "auto")
        config = {
            **(literal if project["literal"] else auto),
            "bf16": {"enabled": "auto"},
            "zero_optimization": {"stage": project["stage"]},
        }
        (folder / "ds.json").write_text(json.dumps(config, indent=4))
    (folder / "train.py").write_text(SCRIPT.format(**{**project, "deepspeed": repr(deepspeed)}))


def _options(project: dict[str, Any], **changes: Any) -> Options:
    stated = {"gpu": project["gpu"], "gpus": project["gpus"], "host_memory_bytes": 512 * 2**30}
    return Options(**stated, **changes, isolated=True, origins=dict.fromkeys(stated, "--flag"))


def _only_run(folder: Path, options: Options) -> RunResult:
    (judged,) = check([folder], options).runs
    return judged


def _batch(judged: RunResult) -> int:
    spec = judged.run.spec
    assert spec is not None
    return spec.micro_batch_size * spec.gradient_accumulation_steps * spec.data_parallel


@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow])
@given(projects)
def test_a_plan_fits_when_the_written_files_are_checked_from_scratch(project: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(folder, project)
        before = _only_run(folder, _options(project))
        if before.plan is None or before.plan.applicability is Applicability.DISPLAY:
            return
        check([folder], _options(project, fix=True, unsafe_fixes=True))
        after = _only_run(folder, _options(project))
        assert after.verdict is before.plan.estimate.verdict
        assert after.verdict in (Verdict.FITS, Verdict.TIGHT)
        assert _batch(after) == _batch(before)
        texts = {path: path.read_bytes() for path in folder.iterdir()}
        assert b"# kept: the cluster's scratch" in texts[folder / "train.py"]
        check([folder], _options(project, fix=True, unsafe_fixes=True))
        assert texts == {path: path.read_bytes() for path in folder.iterdir()}, "fix(fix(x)) == fix(x)"


@pytest.mark.slow
@settings(
    max_examples=4,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
@given(projects)
def test_every_plan_that_is_listed_fits_when_it_is_written(project: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as name:
        listed = Path(name) / "listed"
        listed.mkdir()
        _write(listed, project)
        before = _only_run(listed, _options(project))
        if before.verdict is not Verdict.DOES_NOT_FIT:
            return
        asked = fit.Asked(output_format="json")
        plans = json.loads(fit.of_paths([listed], _options(project), asked).text)["runs"][0]["plans"]
        for plan in plans:
            if plan["applicability"] == "display":
                continue
            folder = shutil.copytree(listed, Path(name) / f"plan{plan['number']}")
            fit.of_paths([folder], _options(project), fit.Asked(apply=plan["number"]))
            after = _only_run(folder, _options(project))
            assert after.verdict == plan["verdict"] != "does-not-fit", plan["name"]
            assert _batch(after) == _batch(before), plan["name"]


@settings(max_examples=6, suppress_health_check=[HealthCheck.too_slow])
@given(projects)
def test_safe_fixes_alone_keep_the_effective_batch(project: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(folder, project)
        before = _batch(_only_run(folder, _options(project)))
        check([folder], _options(project, fix=True))
        assert _batch(_only_run(folder, _options(project))) == before


lines = st.text(alphabet="ab \n\r{}", max_size=40)


@given(lines, lines)
def test_line_edits_lead_from_one_text_to_the_other(before: str, after: str) -> None:
    assert apply(before, list(line_edits(before, after))) == after


def test_among_equal_lines_the_one_that_changes_is_edited() -> None:
    before = "run\n" * 20
    after = "run\n" * 12 + "run fast\n" + "run\n" * 7
    assert list(line_edits(before, after)) == [Edit(Span(12 * 4 + 3, 12 * 4 + 3), " fast")]


def test_changing_the_stage_changes_the_config_that_the_model_reads() -> None:
    from lintfit.catalog import models
    from lintfit.memory.spec import Spec

    facts = models.lookup("meta-llama/Llama-2-7b-hf")
    assert facts is not None
    spec = Spec(facts, engine="deepspeed", zero_stage=2, deepspeed_config={"zero_optimization": {"stage": 2, "x": 1}})
    changed = changed_spec(spec, {"zero_stage": 3, "offload_optimizer": "cpu"})
    zero = changed.deepspeed_config["zero_optimization"]
    assert (zero["stage"], zero["x"], zero["offload_optimizer"]) == (3, 1, {"device": "cpu"})
    assert replace(changed, deepspeed_config=spec.deepspeed_config).zero_stage == 3
