from __future__ import annotations

from collections.abc import Iterator, Sequence

from lintfit.checks.helpers.context import FileContext, Report, RunContext
from lintfit.checks.helpers.readers import written_by_script
from lintfit.checks.helpers.script_calls import arguments_call
from lintfit.checks.helpers.trees import assigned, data_of
from lintfit.documents.model import DataDocument
from lintfit.findings.model import Applicability, Fix, Related
from lintfit.run.model import Run
from lintfit.settings.model import Place
from lintfit.sources.deepspeed import bf16_section

OF_HANDED_ON = True


def check_file(context: FileContext) -> Iterator[Report]:
    found = data_of(context, "deepspeed")
    if found is None:
        return
    document, root = found
    section = bf16_section(root)
    bf16, fp16 = root.get(section, "enabled"), root.get("fp16", "enabled")
    if bf16 is None or bf16.value is not True or fp16 is None or fp16.value is not True:
        return
    if not any(written_by_script(context.runs, (name, "enabled")) for name in (section, "fp16")):
        yield Report(
            Place(document, fp16.span),
            "bf16 and fp16 are both enabled: DeepSpeed stops with an AssertionError",
            related=(Related(Place(document, bf16.span), "bf16 is enabled here"),),
            fix=_keep_one(document, section, context.runs),
            help="keep bf16 on GPUs of compute capability 8.0 and up, fp16 on older ones",
        )


def _keep_one(document: DataDocument, bf16: str, runs: Sequence[Run]) -> Fix | None:
    native = {run.hardware.gpu.native_bf16 if run.hardware.gpu else None for run in runs}
    if native not in ({True}, {False}):
        return None
    off, kept = ("fp16", "bf16") if native == {True} else (bf16, "fp16")
    return assigned(document, f"keep {kept}, switch {off} off", Applicability.UNSAFE, {(off, "enabled"): False})


def check_run(context: RunContext) -> Iterator[Report]:
    """The trainer's own flags; a DeepSpeed JSON is judged by itself."""
    bf16, fp16 = _argument(context.run, "bf16"), _argument(context.run, "fp16")
    if bf16 is not None and fp16 is not None:
        yield Report(
            fp16,
            "bf16 and fp16 are both true: TrainingArguments stops with ValueError "
            '"At most one of fp16 and bf16 can be True"',
            related=(Related(bf16, "bf16 is set here"),),
            help="keep bf16 on GPUs of compute capability 8.0 and up, fp16 on older ones",
        )


def _argument(run: Run, name: str) -> Place | None:
    """Where the trainer's arguments are told that this is true."""
    if run.script is None:
        stated = run.training.argument(name) if run.training is not None else None
        return stated.provenance.place if stated is not None and stated.value is True else None
    arguments = arguments_call(run)
    argument = arguments.argument(name) if arguments is not None else None
    return argument.provenance.place or argument.place if argument is not None and argument.value is True else None
