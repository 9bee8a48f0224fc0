"""Write bench/README.md from the results that are at hand.

    python -m bench.report

Reads ``bench/results/*.json*`` (fake tensors, combinations, allocator, GPU, speed, start-up), the recording of real
DeepSpeed in ``tests/memory/deepspeed_cpu.json``, and the published figures in ``../shared/data`` where they are there.
A part whose results are missing says how they are made.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

RESULTS = ROOT / "bench" / "results"
DEEPSPEED = ROOT / "tests" / "memory" / "deepspeed_cpu.json"
GIB = 2**30


def spread(errors: Sequence[float], digits: int = 4) -> str:
    """Median, 95th percentile and maximum of absolute relative errors."""
    ordered = sorted(abs(error) for error in errors)
    at = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
    median = statistics.median(ordered)
    return f"median {median:.{digits}%}, 95th percentile {at:.{digits}%}, largest {ordered[-1]:.{digits}%}"


def _read(path: Path) -> Any:
    return json.loads(path.read_text()) if path.is_file() else None


def _made(recording: dict[str, Any]) -> str:
    parts = [recording["date"]] if "date" in recording else []
    parts += [f"{name} {version}" for name, version in recording.get("versions", {}).items()]
    return ", ".join(parts)


def fake_tensors() -> str:
    """The table of the fake-tensor cases."""
    recording = _read(RESULTS / "fake_tensors.json")
    if recording is None:
        return _missing("bench.fake_tensors --out bench/results/fake_tensors.json")
    from bench.fake_tensors import rows, table

    errors = [guess / counted - 1 for _, counted, guess in rows(recording)]
    return (
        f"`allocated_bytes` against torch's own count of every storage in a real training step "
        f"({_made(recording)}). {len(errors)} cases: {spread(errors)}.\n\n{table(recording)}"
    )


def evaluation() -> str:
    """The table of evaluations between training steps."""
    from bench.fake_evaluation import rows, table

    recording = _read(RESULTS / "fake_evaluation.json")
    if recording is None:
        return _missing("bench.fake_evaluation --out bench/results/fake_evaluation.json")
    errors = [guess / counted - 1 for _, counted, guess in rows(recording)]
    return (
        "The largest moment of the phase `evaluate` against torch's own count of the Trainer's `prediction_step` "
        f"({_made(recording)}; of most models a few layers). {len(errors)} cases: {spread(errors)}.\n\n"
        f"{table(recording)}"
    )


def combinations() -> str:
    """Random combinations under fake tensors, and those that are furthest off."""
    from bench.combinations import RESULTS as RECORDED
    from bench.combinations import errors, summary

    if not RECORDED.is_file():
        return _missing("bench.combinations")
    found = errors()
    worst = [f"| {name} | {kind} | {error:+.2%} |" for error, name, kind in found if abs(error) > 0.005]
    head = ["More than 0.5 % off:", "", "| case | model type | difference |", "| --- | --- | --: |"]
    return (
        "Catalogue models of 3 to 8 layers at their real width, drawn at random with precision, micro-batch, length, "
        "optimizer, attention, checkpointing, adapters and accumulation, and models of odd widths that nobody has "
        "made, with every optimizer of torch, padded batches and DoRA besides; and every family with 1000 words and a "
        "few layers, so that these decide (torch 2.13, transformers 5.23, PEFT 0.21; `bench/combinations.py`, "
        f"`bench/invented.py`, `bench/neighbours.py`, `bench/layers.py`).\n\n{summary(found)}\n\n"
        + ("\n".join([*head, *worst]) if worst else "None is more than 0.5 % off.")
    )


def allocator() -> str:
    """What the caching allocator needs beside the tensors, simulated."""
    recording = _read(RESULTS / "allocator.json")
    if recording is None:
        return _missing("bench.allocator --out bench/results/allocator.json")
    from bench.allocator import table

    return (
        "GiB of torch's caching allocator, simulated over the allocations of real steps under fake tensors "
        f"({_made(recording)}; `bench/allocator.py`): what is allocated, the smallest GPU on which the steps run, and "
        "what is reserved on a GPU with room, for batches of the whole length and of any length up to it; beside them "
        "the high end and the likely figure of lintfit, without the CUDA context.\n\n" + table(recording)
    )


def deepspeed() -> str:
    """The largest difference of each stage in the recording of real DeepSpeed."""
    recording = _read(DEEPSPEED)
    if recording is None:
        return _missing("bench.ranks.zero --out tests/memory/deepspeed_cpu.json")
    from bench.ranks.zero_compare import rows

    stages: dict[str, list[float]] = {}
    for case, _, _, recorded, expected in rows(recording):
        if recorded:
            stages.setdefault(case.partition(",")[0], []).append(expected / recorded - 1)
    lines = ["| | figures | median | largest |", "| --- | --: | --: | --: |"]
    for stage, errors in sorted(stages.items()):
        sizes = [abs(error) for error in errors]
        lines.append(f"| {stage} | {len(sizes)} | {statistics.median(sizes):.4%} | {max(sizes):.4%} |")
    return (
        "Live bytes of parameters, gradients, masters, optimizer states and buffers of each rank after initialisation, "
        f"backward and step, with gloo on 1, 2 and 4 ranks ({_made(recording)}). "
        "`python -m bench.ranks.zero --compare tests/memory/deepspeed_cpu.json` prints every figure.\n\n"
        + "\n".join(lines)
    )


PARALLEL = (
    ("tensor_parallel_cpu", 'transformers `tp_plan="auto"`, DeepSpeed AutoTP'),
    ("sequence_parallel_cpu", "DeepSpeed Ulysses, torch's ring under FSDP 2"),
    ("expert_parallel_cpu", "transformers `ep_size`, DeepSpeed AutoEP"),
    ("pipeline_parallel_cpu", "torch's 1F1B, first and last stage"),
    ("preference_parallel_cpu", "TRL's SFT, DPO and PPO: policy, reference, value and reward model, states under FSDP"),
)


def parallel() -> str:
    """The largest difference of each recording of ranks that split a model, a sequence, or hold several models."""
    from bench.ranks.compare import rows

    lines = ["| recording | | cases | figures | median | largest |", "| --- | --- | --: | --: | --: | --: |"]
    for name, what in PARALLEL:
        recording = _read(DEEPSPEED.parent / f"{name}.json")
        if recording is None:
            continue
        found = [abs(expected / recorded - 1) for *_, recorded, expected in rows(recording) if recorded]
        cases = len(recording["cases"])
        lines.append(
            f"| `{name}.json` | {what} | {cases} | {len(found)} | {statistics.median(found):.4%} | {max(found):.4%} |"
        )
    return (
        "Real processes with gloo on 2 to 4 ranks, small models: parameters, gradients, masters and states of each "
        "rank by phase, and what autograd saves for a decoder layer and for the logits (torch 2.13, transformers 5.23, "
        "DeepSpeed 0.19.8, accelerate 1.15, TRL 1.16 and 1.12). The largest difference is the last token of 64, which "
        "AutoTP's loss over a split vocabulary drops. `python -m bench.ranks.tensor_parallel --compare "
        "tests/memory/tensor_parallel_cpu.json` prints every figure.\n\n" + "\n".join(lines)
    )


def published() -> str:
    """Errors against published measurements, by framework."""
    from bench import oracle

    if not oracle.DATA.is_dir():
        return "The published figures are not in this repository; their table is made where they are."
    alone, told = _published_groups(oracle.published()), _published_groups(oracle.published(told=True))
    lines = [
        "| source | runs | median | 90th percentile | largest | as told: median | 90th percentile | largest |",
        "| --- | --: | --: | --: | --: | --: | --: | --: |",
    ]
    for name, sizes in alone.items():
        cells = [f"{part:.1%}" for found in (sizes, told[name]) for part in _published_spread(found)]
        lines.append(f"| {name} | {len(sizes)} | {' | '.join(cells)} |")
    shown = [sorted(map(abs, oracle.nvidia_smi(told))) for told in (False, True)]
    cells = [f"{part:.1%}" for found in shown for part in _published_spread(found)]
    lines.append(f"| fms: likely peak against nvidia-smi | {len(shown[0])} | {' | '.join(cells)} |")
    same, runs, apart = oracle.contradictions()
    return (
        "Measured peaks that others published. *Allocated* figures are compared with `allocated_bytes`, others with "
        "the likely peak: first of the specs as published, then with what a row's other fields and the files of its "
        "source say of the run beside the spec (*as told*; `bench/published.py`: kernels, front end, double "
        "quantisation, dropout). "
        f"{same} specs stand with {runs} runs that were measured up to {apart:.0%} apart: no answer to the spec alone "
        "can be right for all of them. `docs/memory.md` says what the largest differences are.\n\n" + "\n".join(lines)
    )


def _published_groups(found: Sequence[tuple[float, str, str, bool]]) -> dict[str, list[float]]:
    """Absolute errors, ascending: of all rows, of all fms rows, and of every source."""
    groups = {"all": list(found), "fms, all": [case for case in found if case[2].startswith("fms")]}
    groups |= {name: [case for case in found if case[2] == name] for name in dict.fromkeys(case[2] for case in found)}
    return {name: sorted(abs(case[0]) for case in cases) for name, cases in groups.items()}


def _published_spread(sizes: Sequence[float]) -> tuple[float, float, float]:
    return statistics.median(sizes), sizes[min(len(sizes) - 1, int(0.9 * len(sizes)))], sizes[-1]


def outcomes() -> str:
    """Verdicts on runs of which it was published whether they ran."""
    from bench import oracle

    if not oracle.DATA.is_dir():
        return "The published outcomes are not in this repository; their table is made where they are."
    counts, _ = oracle.outcomes()
    verdicts = ("fits", "tight", "does-not-fit", "unknown")
    lines = [f"| what happened | {' | '.join(verdicts)} |", "| --- | --: | --: | --: | --: |"]
    for outcome in sorted({had for had, _ in counts}):
        cells = " | ".join(str(counts[(outcome, verdict)]) for verdict in verdicts)
        lines.append(f"| {'ran' if outcome == 'fits' else 'out of memory'} | {cells} |")
    return "\n".join(lines)


LAUNCHES = (
    ("launches", "the first forty, which the code was written with"),
    ("launches_2", "further repositories and files"),
    ("launches_3", "other repositories once more, after what the second table had shown was mended"),
    ("launches_4", "eight further repositories; three of the four wrong at first were wrong in the table"),
    (
        "launches_5",
        "launchers and trainers without a row so far; blind, a loop in plain PyTorch counted as not read, and one "
        "launch ended in a MemoryError that was mended first",
    ),
    (
        "launches_6",
        "drawn at random (random.seed(20261122)) from 549 launch files and training scripts without a row, at most two "
        "for a repository; one was wrong in the table, three were right only because the checkout lacked a file",
    ),
    (
        "launches_7",
        "of the same kind as the first forty: half of further files of their repositories, half of repositories "
        "without a row; one of the three wrong was wrong in the table",
    ),
    (
        "launches_8",
        "of the same kind once more, drawn and read after what the seventh table had shown was mended",
    ),
    (
        "launches_9",
        "of launches of shell scripts that had no verdict, chosen for that; five of the fifteen wrong were wrong in "
        "the table, which had overlooked a file",
    ),
    (
        "launches_10",
        "example scripts of transformers and TRL that are not at hand; blind, none of them was read, and the eight "
        "wrong were wrong in the table",
    ),
    (
        "launches_11",
        "all training launches of shell scripts of eight repositories without a row; the three wrong were a slash at "
        "the end of a path, which is no longer compared, and two launches were wrong in the table",
    ),
    (
        "notebooks",
        "public notebooks that fine-tune language models, picked so that they differ: Trainer, TRL, Unsloth, QLoRA, "
        "launchers, recipes that a cell writes",
    ),
    (
        "notebooks_2",
        "of the same kind, chosen and read at the same time, measured once after the first half was tuned on; the one "
        "wrong was wrong in the table (plain python starts one process)",
    ),
    (
        "notebooks_3",
        "nine more, chosen and read after that; in two rows the table named a line of Markdown, which is corrected in "
        "both counts",
    ),
    (
        "launches_12",
        "shell scripts of nine repositories without a row, written down before lintfit saw any of them; the one wrong "
        "was wrong in the table",
    ),
    (
        "launches_13",
        "of eleven further repositories, written down before anything that the table before had shown was mended; 26 "
        "of the 72 unknown are two launches whose line the table had wrong, 40 are four that one replacement in a "
        "string hid",
    ),
    (
        "launches_14",
        "of seven further repositories, written down and read after what the two before had shown was mended; the one "
        "wrong was wrong in the table",
    ),
    (
        "launches_15",
        "of fifteen further repositories, thirteen of which the work on the precision of findings had met before, "
        "written down before their settings were compared; five of the six wrong are flags such as "
        "``--peft_config.r`` of one repository, ten of the 14 unknown one launch whose folder a script asks for with "
        "``cd`` and ``pwd``, one was wrong in the table",
    ),
    (
        "launches_16",
        "of sixteen further repositories, whose findings had been judged and mended before, written down before their "
        "settings were compared; of the 30 unknown 11 are a launch of OpenRLHF on Ray and 8 one from a folder above",
    ),
    (
        "launches_17",
        "shell scripts of 22 further repositories, written down before lintfit saw any of them; four of seven wrong "
        "at first and 12 of the unknown were wrong in the table (a kernel's other name, an optimizer's under offload, "
        "a line), which is corrected in both counts; 13 of the 22 unknown are a script named by an absolute path",
    ),
    (
        "documented",
        "launches that stand in pages of Markdown and in docstrings, read where they stand; blind: one half with the "
        "code as it was, the other after what the first had shown was mended; three of the wrong are GPUs over which "
        "device_map spreads a model, which lintfit counts as one process",
    ),
    (
        "documented_2",
        "the same of 41 repositories that nothing had been mended by; three of the wrong were wrong in the table, "
        "which is corrected in both counts (an offloaded optimizer under Accelerate, a kernel's other name)",
    ),
    (
        "recipes",
        "recipes of eight front ends alone, and launches of them, drawn at random before any was looked at; of the "
        "wrong, 96 were an engine and ZeRO that the number of GPUs or a file beside the recipe decides",
    ),
)


def launches() -> str:
    """What is resolved of real launches, before and after what they showed was mended."""
    lines = [
        "| table | launches | settings | | right | wrong | assumed | unknown |",
        "| --- | --: | --: | --- | --: | --: | --: | --: |",
    ]
    for name, what in LAUNCHES:
        for suffix, when in (("_blind", "blind"), ("", "now")):
            found = _read(RESULTS / f"{name}{suffix}.json")
            if found is None:
                continue
            count = found["all"]["all"]
            total = sum(count.values())
            cells = [f"{100 * count.get(key, 0) / total:.1f} %" for key in ("right", "wrong", "assumed", "unknown")]
            lines.append(f"| `{name}.jsonl`: {what} | {found['launches']} | {total} | {when} | {' | '.join(cells)} |")
    return (
        "Settings of public launches, read by hand from their files and compared with what lintfit resolves. *Blind*: "
        "with the code as it was before anything of these launches was known. *Assumed* is a wrong value that lintfit "
        "calls an assumption; what the files do not decide is right where lintfit does not claim to know it. "
        "`python -m bench.launches CHECKOUTS --table launches_2.jsonl` lists what is not right.\n\n" + "\n".join(lines)
    )


def gpu() -> str:
    """The table of runs on a GPU."""
    recording = _read(RESULTS / "gpu.json")
    if recording is None:
        return _missing("bench.gpu.run --out bench/results/gpu.json", "on a machine with a GPU")
    from bench.gpu.compare import table

    return f"{recording['device']['name']}, {_made(recording)}.\n\n{table(recording)}"


def precision() -> str:
    """Findings on real config files that were judged by hand."""
    recording = _read(RESULTS / "precision.json")
    if recording is None:
        return _missing("bench.precision --json bench/results/precision.json", "beside the corpus")
    from bench.precision import table

    mended = ", ".join(f"{rule} {count}" for rule, count in recording["mended"].items())
    return (
        "Findings on DeepSpeed JSON, Accelerate YAML and launch scripts of public repositories, judged by hand (each "
        "kind once, for all findings of its shape) "
        f"against DeepSpeed 0.19.8, accelerate 1.15 and transformers 5.23 ({recording['date']}; "
        f"`bench/precision/configs.jsonl`; {recording['missing']} not judged yet). "
        f"Wrong ones that were found this way and mended: {mended}. The same files served for mending and measuring: "
        f"this is no blind figure.\n\n{table(recording)}"
    )


def judged() -> str:
    """Findings on whole repositories that no rule was tuned on, as they stood when they were read, by round."""
    judges: dict[str, list[dict[str, Any]]] = {}
    for line in (ROOT / "bench" / "precision" / "findings.jsonl").read_text().splitlines():
        row = json.loads(line)
        judges.setdefault(row["judge"], []).append(row)
    rounds: dict[frozenset[tuple[Any, ...]], list[str]] = {}
    for judge, rows in judges.items():
        of_judge = frozenset(tuple(row[key] for key in ("repository", "path", "line", "rule")) for row in rows)
        rounds.setdefault(of_judge, []).append(judge)
    lines = [_round(names, [judges[name] for name in names]) for names in rounds.values()]
    return (
        'Errors and warnings of `check . --isolated --gpu "RTX 3090" --gpus 8` on repositories that nothing was tuned '
        "on, as they stood when they were judged (`bench/precision/findings.jsonl`; the last rounds are the newest). "
        "Where two readers judged the same findings, they had seen neither the code nor each other's word.\n\n"
        "| judges | repositories | errors: right | arguable | wrong | warnings: right | arguable | wrong |\n"
        "| --- | --: | --: | --: | --: | --: | --: | --: |\n" + "\n".join(lines)
    )


def _round(judges: Sequence[str], found: Sequence[list[dict[str, Any]]]) -> str:
    counts = [Counter((row["severity"], row["verdict"]) for row in rows) for rows in found]
    cells = [
        " and ".join(str(count[severity, verdict]) for count in counts)
        for severity in ("error", "warning")
        for verdict in ("right", "arguable", "wrong")
    ]
    repositories = len({row["repository"] for row in found[0]})
    return f"| {', '.join(judges)} | {repositories} | " + " | ".join(cells) + " |"


def speed() -> str:
    """A thousand specs in one process."""
    found = _read(RESULTS / "speed.json")
    if found is None:
        return _missing("bench.speed --out bench/results/speed.json")
    lines = ["| | processor time | times `python -c pass` |", "| --- | --: | --: |"]
    lines += [
        f"| `{name}` | {1000 * seconds:.0f} ms | {found['ratios'][name]:.0f} |"
        for name, seconds in found["processor_seconds"].items()
    ]
    rates = " and ".join(f"{rate:.0f}" for rate in found["specs_per_second"])
    return (
        f"Whole processes, Python {found['python']}, {found['date']}; specs that all differ: *planned*, five models in "
        "many ways; *measured*, runs whose memory others have measured or counted, some with other lengths. "
        f"{rates} specs a second once the process has begun.\n\n" + "\n".join(lines)
    )


def startup() -> str:
    """The table that bench/startup.py printed."""
    path = RESULTS / "startup.md"
    if not path.is_file():
        return _missing("bench.startup > bench/results/startup.md")
    return path.read_text().strip()


def goals() -> str:
    """The table that ``bench.speed --goals`` prints."""
    path = RESULTS / "speed_goals.md"
    return path.read_text() if path.is_file() else _missing("bench.speed", "--goals --repository DeepSpeedExamples")


def reach() -> str:
    """How many launches get a verdict, by where they are written."""
    found = _read(RESULTS / "reach.json")
    if found is None:
        return _missing("bench.reach", "CHECKOUTS --json bench/results/reach.json")
    lines = ["| written in | launches | with a verdict |", "| --- | --: | --: |"]
    lines += [f"| {kind} | {of} | {100 * count / of:.1f} % |" for kind, (count, of) in found["shares"].items()]
    lines += ["", "| why there is none | launches |", "| --- | --: |"]
    lines += [f"| {reason} | {count} |" for reason, count in found["reasons"] if count > 1]
    return (
        "Launches of language-model training in public repositories, listed before any was judged, with a GPU named "
        "(`bench/launches/reach.jsonl`). Blind, 30.5 % of 200 had a verdict." + _second() + "\n\n" + "\n".join(lines)
    )


def _second() -> str:
    """The second list of launches: before anything was mended by it, and after."""
    blind, now = _read(RESULTS / "reach_2_blind.json"), _read(RESULTS / "reach_2.json")
    if blind is None or now is None:
        return ""
    before, after = ((100 * count / of, of) for count, of in (blind["shares"]["all"], now["shares"]["all"]))
    return f" Of {before[1]} others (`reach_2.jsonl`) {before[0]:.1f} % had one blind, and have {after[0]:.1f} % now."


def fixes() -> str:
    """Plans for public launches, carried out and held against the real parsers."""
    found = _read(RESULTS / "fixes.json")
    if found is None:
        return _missing("bench.fixes CHECKOUTS --python PYTHON --out bench/results/fixes.json")
    kinds = list(found["sums"])
    lines = [f"| | {' | '.join(kinds)} |", f"| --- |{' --: |' * len(kinds)}"]
    for name in found["sums"]["all"]:
        lines.append(f"| {name} | {' | '.join(str(found['sums'][kind].get(name, 0)) for kind in kinds)} |")
    stages = Counter(each["not parsed at"] for each in found["rows"] if each["not parsed at"])
    stopped = ", ".join(f"{stage} {count}" for stage, count in stages.most_common())
    return (
        f"Plans for public launches that do not fit ({found['date']}), carried out in a copy of each repository: of "
        f"the {found['listed']['launches']} launches and {found['listed']['pairs']} pairs of launch and GPUs in "
        "`bench/fixes/launches.jsonl`, those that are in the table. Only launches for which a plan was found are in "
        "the list, nearly all of them in shell scripts that parse before and on GPUs where they do not fit: this is no "
        "measure of how often there is one. *Parsed*: of the written plans, the launcher's own "
        "parser, the script's own parser with missing modules stubbed and DeepSpeed's config class (transformers 4.45, "
        "accelerate 0.34, trl 0.11, PEFT 0.13, DeepSpeed 0.15) take the launch as it was, and with the plan. *Step*: "
        "the script makes one training step of a tiny random model on the CPU, by itself, where DeepSpeed, FSDP, fp16 "
        "and quantization are left out; GPUs older than Ampere refuse bf16, tf32 and FlashAttention there. "
        "*Stable*: a second check finds that the run fits and offers nothing more. *Batch*: a rank's sequences of an "
        "optimizer step, where the parsed arguments say them. *As planned*: these and the stage of ZeRO are what the "
        "plan says. "
        f"Not parsed before: {stopped or 'none'}.\n\n" + "\n".join(lines)
    )


def pages() -> str:
    """What pages of Markdown without a launch cost."""
    found = _read(RESULTS / "pages.json")
    if found is None:
        return _missing("bench.speed", "--pages --out bench/results/pages.json")
    return f"A thousand pages of Markdown without a launch add {found['added']:.2f} s of processor time to a check."


def _missing(command: str, where: str = "") -> str:
    return f"No results yet: `python -m {command}`{' ' + where if where else ''}."


SECTIONS: tuple[tuple[str, Callable[[], str]], ...] = (
    ("Torch's count under fake tensors", fake_tensors),
    ("An evaluation under fake tensors", evaluation),
    ("Random combinations under fake tensors", combinations),
    ("The caching allocator", allocator),
    ("Real DeepSpeed on a CPU", deepspeed),
    ("Ranks that split a model on a CPU", parallel),
    ("Published measurements", published),
    ("Published outcomes", outcomes),
    ("Precision on config files", precision),
    ("Findings on repositories not seen before", judged),
    ("Real launches", launches),
    ("Launches wherever they are written", reach),
    ("Goals of speed", goals),
    ("Fixes of real launches", fixes),
    ("A GPU", gpu),
    ("Speed of the memory model", speed),
    ("Pages of Markdown", pages),
    ("Start-up", startup),
)


def readme() -> str:
    """The whole file."""
    from lintfit import __version__

    head = (
        "# Measurements\n\n"
        f"Written by `python -m bench.report` on {datetime.now(UTC).date().isoformat()}, lintfit {__version__}. "
        "Do not edit. What each program does is in its docstring; `pip install lintfit[bench]` brings what they need.\n"
    )
    return head + "".join(f"\n## {title}\n\n{section()}\n" for title, section in SECTIONS)


def main() -> int:
    (ROOT / "bench" / "README.md").write_text(readme(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
