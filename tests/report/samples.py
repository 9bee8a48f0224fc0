"""Results built by hand: one run that does not fit, with a plan, and one that fits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from lintfit.catalog.facts import Gpu, ModelFacts, Tensor
from lintfit.documents.model import Document, Edit, FileEdit, FileText, Kind, Span
from lintfit.findings.model import (
    Action,
    Applicability,
    ChangedLine,
    Finding,
    Fix,
    Plan,
    Rejected,
    Related,
    Severity,
    Step,
)
from lintfit.findings.results import CheckResult, RunResult
from lintfit.memory.result import Estimate, HostMemory, Moment, Range, Verdict
from lintfit.memory.spec import GIB, Spec
from lintfit.run.model import Hardware, Run
from lintfit.settings.model import AUTO, UNKNOWN, Place, Provenance, Setting

SCRIPT = """\
import torch
from transformers import AutoModelForCausalLM

def main(args):
    model = AutoModelForCausalLM.from_pretrained(args.model)
    if args.use_peft:
        model = wrap(model)
    else:
\tmodel = model.float()
    train(model)
"""

CONFIG = """\
{
  "zero_optimization": {
    "stage": 2,
    "overlap_comm": true
  }
}
"""

LAUNCH = "torchrun --nproc_per_node 8 train.py --deepspeed ds.json\n"


def document(name: str, text: str, kind: Kind) -> Document:
    return Document(FileText(Path(name), text), kind)


def place(where: Document, text: str, nth: int = 0) -> Place:
    start = -1
    for _ in range(nth + 1):
        start = where.text.index(text, start + 1)
    return Place(where, Span(start, start + len(text)))


def facts() -> ModelFacts:
    return ModelFacts(
        name="baichuan-inc/Baichuan-7B",
        model_type="baichuan",
        hidden=4096,
        layers=32,
        heads=32,
        kv_heads=32,
        head_dim=128,
        intermediate=11008,
        vocab=64000,
        tied=False,
        gated=True,
        norm="rmsnorm",
        activation="silu",
        tensors=(Tensor("all", (7 * 10**9,)),),
    )


GPU = Gpu("RTX 3090", 25_438_126_080, 24.0, (8, 6), True, True)


def estimate(scale: float = 1.0, verdict: Verdict = Verdict.DOES_NOT_FIT, capacity: int | None = 0) -> Estimate:
    def part(size: float) -> int:
        return int(size * scale * GIB)

    backward = {
        "parameters": part(26.1),
        "gradients": part(26.1),
        "optimizer_states": part(52.2),
        "activations": part(3.1),
        "logits": part(1.9),
        "framework": int(1.2 * GIB),
    }
    moments = (
        Moment("forward", "forward", {"parameters": part(26.1), "activations": part(3.1), "framework": int(1.2 * GIB)}),
        Moment("backward", "backward", backward),
        Moment("step", "step", {**backward, "activations": 0, "logits": 0}),
    )
    likely = moments[1].total
    return Estimate(
        peak=Range(int(likely * 0.95), likely, int(likely * 1.1)),
        moments=moments,
        verdict=verdict,
        capacity_bytes=GPU.usable_bytes if capacity == 0 else capacity,
        host=HostMemory(steady=12 * GIB),
        host_capacity_bytes=256 * GIB,
        assumptions=("sequence length 2048 (not stated; transformers' default of the script)",),
    )


class Story:
    """Three files, a run over them, findings with and without fixes, and a plan."""

    def __init__(self) -> None:
        self.script = document("train.py", SCRIPT, Kind.PYTHON)
        self.config = document("ds.json", CONFIG, Kind.JSON)
        self.launch = document("run.sh", LAUNCH, Kind.SHELL)

    def run(self) -> Run:
        stage = place(self.config, "2")
        settings = [
            Setting("model", "baichuan-inc/Baichuan-7B", Provenance("option", "--model")),
            Setting("zero_stage", 2, Provenance("file", "", stage)),
            Setting("micro_batch_size", AUTO, Provenance.default("transformers 4.48")),
            Setting("learning_rate", UNKNOWN, Provenance.at(self.script, Span(0, 6))),
            Setting("lora_targets", ("q_proj", "v_proj"), Provenance("assumed", "nobody said")),
        ]
        return Run(
            id="run.sh:1",
            documents=(self.launch, self.script, self.config),
            settings={setting.name: setting for setting in settings},
            hardware=Hardware(GPU, 8, 1, GPU.usable_bytes, 256 * GIB),
            facts=facts(),
            spec=Spec(facts(), GPU, GPU.usable_bytes, 8, engine="deepspeed", zero_stage=2, mixed_precision="bf16"),
        )

    def upcast(self) -> Finding:
        statement = place(self.script, "\tmodel = model.float()\n")
        return Finding(
            rule="forced-float32",
            code="LF101",
            severity=Severity.ERROR,
            message="model.float() makes all 7.0 B parameters fp32: 26.1 GiB of weights a GPU instead of 13.0 GiB",
            place=place(self.script, "model.float()"),
            related=(
                Related(place(self.script, "model", 2), "loaded here in the checkpoint's dtype"),
                Related(place(self.config, "2"), "ZeRO-2 keeps all weights on every GPU"),
            ),
            run="run.sh:1",
            fix=Fix(
                "delete the cast",
                Applicability.UNSAFE,
                (FileEdit(Path("train.py"), Edit(statement.span, "\tpass\n"), self.script),),
                {"weights_dtype": "bf16"},
            ),
        )

    def typo(self) -> Finding:
        key = place(self.config, '"overlap_comm": true')
        return Finding(
            rule="unknown-key",
            code="LF801",
            severity=Severity.WARNING,
            message='DeepSpeed does not know "overlap_comm" here',
            place=key,
            fix=Fix("remove it", Applicability.SAFE, (FileEdit(Path("ds.json"), Edit(key.span, ""), self.config),)),
        )

    def remark(self) -> Finding:
        return Finding(
            rule="launch-remark",
            code="LF999",
            severity=Severity.INFO,
            message="eight processes",
            place=place(self.launch, "8"),
            help="nothing to do",
        )

    def plan(self) -> Plan:
        stage = place(self.config, "2")
        edits = (FileEdit(Path("ds.json"), Edit(stage.span, "3"), self.config),)
        return Plan(
            applicability=Applicability.SAFE,
            steps=(Step("zero_stage", 2, 3, Path("ds.json"), edits),),
            estimate=estimate(0.125, Verdict.FITS),
            relative_step_time=1.3,
            fix=Fix("shard everything", Applicability.SAFE, edits, {"zero_stage": 3}),
            actions=(Action("raise the ZeRO stage from 2 to 3", (ChangedLine(Path("ds.json"), 3),)),),
            rejected=(Rejected("gradient checkpointing alone", estimate(0.9)),),
        )

    def result(self) -> CheckResult:
        plan = self.plan()
        verdict = Finding(
            rule="does-not-fit",
            code="LF901",
            severity=Severity.ERROR,
            message="110.6 GiB on a GPU with 23.7 GiB",
            place=place(self.launch, "torchrun"),
            run="run.sh:1",
            fix=plan.fix,
        )
        return CheckResult(
            runs=(RunResult(self.run(), estimate(), Verdict.DOES_NOT_FIT, plan),),
            findings=(self.typo(), self.remark(), verdict, self.upcast()),
            files_read=3,
        )


def quiet_result() -> CheckResult:
    """A run that fits and nothing to say of it."""
    story = Story()
    good = estimate(0.125, Verdict.FITS)
    return CheckResult(runs=(RunResult(story.run(), good, Verdict.FITS),), files_read=3)


def without_capacity() -> CheckResult:
    story = Story()
    run = replace(story.run(), hardware=Hardware(None, 8))
    return CheckResult(runs=(RunResult(run, estimate(1.0, Verdict.UNKNOWN, None), Verdict.UNKNOWN),))
