"""``--gpu auto``: what the tools of this machine and Slurm's environment say, and what they leave open.

The outputs are written in the form that the tools print (fields as they are asked for), not captured from machines;
some figures are those that people quote in public: a 3090 with driver 535, A100 80GB under MIG, a DGX Spark, ROCm 6.2
with an integrated GPU beside the card.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from lintfit.errors import LintfitError
from lintfit.options import machine
from lintfit.options.listed import OLD_FIELDS, Listed, of_nvidia_smi, of_rocm_smi, with_slices
from lintfit.options.machine import Machine, chosen
from tests.support import Outcome, lintfit

GIB = 2**30
MIB = 2**20

TWO_3090 = """\
0, GPU-6a0c1f2e-0000-4000-8000-000000000001, 24576, 318, [N/A], NVIDIA GeForce RTX 3090
1, GPU-6a0c1f2e-0000-4000-8000-000000000002, 24576, 318, [N/A], NVIDIA GeForce RTX 3090
"""
EIGHT_A100 = "".join(f"{i}, GPU-{i}000, 81920, 767, Disabled, NVIDIA A100-SXM4-80GB\n" for i in range(8))
MIXED = """\
0, GPU-aaaa, 24564, 380, [N/A], NVIDIA GeForce RTX 4090
1, GPU-bbbb, 24576, 318, [N/A], NVIDIA GeForce RTX 3090
2, GPU-cccc, 24564, 380, [N/A], NVIDIA GeForce RTX 4090
"""
SPARK = "0, GPU-dddd, [N/A], [N/A], [N/A], NVIDIA GB10\n"
UNHEARD_OF = "0, GPU-eeee, 49140, 500, [N/A], NVIDIA RTX Nowhere 9\n"
MODDED = "0, GPU-ffff, 49140, 500, [N/A], NVIDIA GeForce RTX 4090\n"
OLD = "0, GPU-1111, 16160, Tesla V100-SXM2-16GB\n"
CUT = """\
0, GPU-2222, 81920, 575, Enabled, NVIDIA A100-SXM4-80GB
1, GPU-3333, 81920, 575, Disabled, NVIDIA A100-SXM4-80GB
"""
LISTING = """\
GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-2222)
  MIG 3g.40gb     Device  0: (UUID: MIG-1)
  MIG 1g.10gb     Device  1: (UUID: MIG-2)
  MIG 1g.10gb+me  Device  2: (UUID: MIG-3)
GPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-3333)
"""
ROCM = json.dumps(
    {
        "card0": {
            "VRAM Total Memory (B)": "206141652992",
            "VRAM Total Used Memory (B)": "297824256",
            "Card Series": "AMD Instinct MI300X OAM",
            "Card Model": "0x74a1",
        },
        "card1": {"VRAM Total Memory (B)": "206141652992", "Card series": "AMD Instinct MI300X OAM"},
        "system": {"Driver version": "6.8.5"},
    }
)
BESIDE = json.dumps(
    {
        "card0": {"VRAM Total Memory (B)": "25753026560", "Card Series": "Radeon RX 7900 XTX"},
        "card1": {"VRAM Total Memory (B)": "67108864", "Card Series": "Raphael", "Card Model": "0x164e"},
    }
)
RUN = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
model = AutoModelForCausalLM.from_pretrained("gpt2")
Trainer(model=model, args=TrainingArguments("out")).train()
"""


def of(output: str, environment: Mapping[str, str] | None = None, tool: str = "nvidia-smi") -> Machine:
    cards = of_nvidia_smi(output) if tool == "nvidia-smi" else of_rocm_smi(output)
    return chosen(cards, tool, environment or {})


def test_several_of_one_kind() -> None:
    assert of(TWO_3090) == Machine("NVIDIA GeForce RTX 3090", 2, None, None, "nvidia-smi")
    assert of(EIGHT_A100).gpu == "NVIDIA A100-SXM4-80GB"


def test_an_old_driver() -> None:
    assert chosen(of_nvidia_smi(OLD, OLD_FIELDS), "nvidia-smi", {}).gpu == "Tesla V100-SXM2-16GB"


def test_a_gpu_that_is_not_in_the_catalogue_has_what_the_tool_says_less_what_it_keeps() -> None:
    assert of(UNHEARD_OF) == Machine("NVIDIA RTX Nowhere 9", 1, None, (49140 - 500) * MIB, "nvidia-smi")


def test_a_gpu_with_other_memory_than_the_catalogue_knows() -> None:
    assert of(MODDED).memory_bytes in (None, (49140 - 500) * MIB)
    assert of("0, GPU-0, 20475, 300, [N/A], NVIDIA GeForce RTX 3080\n").memory_bytes == 20175 * MIB


def test_memory_that_the_tool_does_not_say() -> None:
    with pytest.raises(LintfitError, match=r"does not say how much memory NVIDIA GB10 has; say it with --gpu-memory"):
        of(SPARK)
    assert chosen(of_nvidia_smi(SPARK), "nvidia-smi", {}, memory_stated=True).memory_bytes is None
    known = "0, GPU-0, [N/A], [N/A], [N/A], NVIDIA H200\n"
    assert of(known) == Machine("NVIDIA H200", 1, None, None, "nvidia-smi")


def test_several_kinds() -> None:
    with pytest.raises(LintfitError, match=r"2 × NVIDIA GeForce RTX 4090, 1 × NVIDIA GeForce RTX 3090"):
        of(MIXED)
    with pytest.raises(LintfitError, match="several kinds"):
        of(MIXED, {"CUDA_VISIBLE_DEVICES": "0,2"})  # CUDA counts the fastest first
    chosen_by_bus = of(MIXED, {"CUDA_VISIBLE_DEVICES": "0,2", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"})
    assert (chosen_by_bus.gpu, chosen_by_bus.gpus) == ("NVIDIA GeForce RTX 4090", 2)
    assert of(MIXED, {"CUDA_VISIBLE_DEVICES": "GPU-bb"}).gpu == "NVIDIA GeForce RTX 3090"


def test_an_integrated_gpu_beside_the_card() -> None:
    with pytest.raises(LintfitError, match="several kinds"):
        of(BESIDE, tool="rocm-smi")
    assert (
        of(
            BESIDE,
            {"HIP_VISIBLE_DEVICES": "0", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"},
            "rocm-smi",
        ).gpu
        == "AMD Radeon RX 7900 XTX"
    )


def test_rocm() -> None:
    assert of(ROCM, tool="rocm-smi") == Machine("AMD Instinct MI300X", 2, None, None, "rocm-smi")
    assert of_rocm_smi("WARNING: AMD GPU device(s) is/are in a low-power state\n" + ROCM) == of_rocm_smi(ROCM)


@pytest.mark.parametrize("output", ["", "{", "[]", "null", '{"card0": 1}', "{" * 100_000, '{"cardx": {}}'])
def test_what_rocm_smi_does_not_print(output: str) -> None:
    assert of_rocm_smi(output) == ()


@pytest.mark.parametrize(
    "output",
    ["", "\n", "No devices were found\n", "ERR!\n", "0\n", "0, GPU-1\n", ",,,,,\n", '"', "x" * 100_000, "²,a,1,1,1,b"],
)
def test_what_nvidia_smi_prints_where_there_is_none(output: str) -> None:
    assert of_nvidia_smi(output) == ()


def test_a_gpu_that_is_lost_has_no_memory() -> None:
    (card,) = of_nvidia_smi("3, [GPU is lost], [GPU is lost], [GPU is lost], [GPU is lost], [GPU is lost]\n")
    assert card == Listed(3, "[GPU is lost]", "[GPU is lost]", None)


def test_mig() -> None:
    cards = with_slices(of_nvidia_smi(CUT), LISTING)
    assert [card.name for card in cards] == [
        "NVIDIA A100-SXM4-80GB MIG 3g.40gb",
        "NVIDIA A100-SXM4-80GB MIG 1g.10gb",
        "NVIDIA A100-SXM4-80GB MIG 1g.10gb+me",
        "NVIDIA A100-SXM4-80GB",
    ]
    with pytest.raises(LintfitError, match="several kinds"):
        chosen(cards, "nvidia-smi", {})
    small = chosen(cards, "nvidia-smi", {"CUDA_VISIBLE_DEVICES": "MIG-2"})
    assert small == Machine("NVIDIA A100 80GB MIG 1g.10gb", 1, None, None, "nvidia-smi")
    large = chosen(cards, "nvidia-smi", {"CUDA_VISIBLE_DEVICES": "MIG-1"})
    assert large.gpus == 1
    assert large.memory_bytes is None or large.memory_bytes == int(40 * GIB * 0.95)


def test_of_mig_slices_cuda_sees_one() -> None:
    listing = "GPU 0: A (UUID: GPU-2222)\n" + "".join(f"  MIG 2g.20gb  Device {i}: (UUID: MIG-{i})\n" for i in range(3))
    (cut,) = of_nvidia_smi(CUT.splitlines()[0])
    assert chosen(with_slices((cut,), listing), "nvidia-smi", {}).gpus == 1


@pytest.mark.parametrize(
    ("visible", "count"), [("0", 1), ("0,1,2", 3), (" 3 , 4 ", 2), ("0,9,1", 1), ("2,-1,3", 1), ("GPU-0000,GPU-1", 2)]
)
def test_visible_devices(visible: str, count: int) -> None:
    assert of(EIGHT_A100, {"CUDA_VISIBLE_DEVICES": visible}).gpus == count


@pytest.mark.parametrize("visible", ["", "-1", "none", "99"])
def test_none_is_visible(visible: str) -> None:
    with pytest.raises(LintfitError, match=f"CUDA_VISIBLE_DEVICES={visible} leaves no GPU"):
        of(EIGHT_A100, {"CUDA_VISIBLE_DEVICES": visible})


@pytest.mark.parametrize(
    ("environment", "gpus", "nodes"),
    [
        ({"SLURM_GPUS_ON_NODE": "4", "SLURM_JOB_NUM_NODES": "2"}, 4, 2),
        ({"SLURM_JOB_GPUS": "0,1,5", "SLURM_NNODES": "1"}, 3, 1),
        ({"SLURM_JOB_GPUS": "2-5"}, 4, None),
        ({"SLURM_GPUS_ON_NODE": "4", "CUDA_VISIBLE_DEVICES": "0,1"}, 2, None),
        ({"SLURM_GPUS_ON_NODE": "99"}, 8, None),
        ({"SLURM_GPUS_ON_NODE": "x" * 99, "SLURM_JOB_NUM_NODES": "9" * 999}, 8, None),
        ({"SLURM_JOB_ID": "", "SLURM_GPUS_ON_NODE": "4"}, 4, None),
    ],
)
def test_inside_of_a_job(environment: dict[str, str], gpus: int, nodes: int | None) -> None:
    found = of(EIGHT_A100, {"SLURM_JOB_ID": "1", **environment})
    assert (found.gpus, found.nodes) == (gpus, nodes)


def test_slurm_counts_inside_of_a_job_only() -> None:
    assert of(EIGHT_A100, {"SLURM_GPUS_ON_NODE": "4", "SLURM_JOB_NUM_NODES": "2"}) == of(EIGHT_A100)


# The command, with programs of these names on the PATH.


def checked(folder: Path, tools: Mapping[str, str], *flags: str, **env: str) -> Outcome:
    machine._machine.cache_clear()
    programs = folder / "programs"
    programs.mkdir(exist_ok=True)
    for name, script in tools.items():
        (programs / name).write_text(f"#!/bin/sh\n{script}")
        (programs / name).chmod(0o755)
    (folder / "train.py").write_text(RUN)
    (folder / "run.sh").write_text("torchrun --nproc_per_node gpu train.py\n")
    try:
        return lintfit(
            "check", "run.sh", "--output-format", "json", *flags, cwd=folder, env={"PATH": str(programs), **env}
        )
    finally:
        machine._machine.cache_clear()


def smi(output: str, listing: str = "") -> dict[str, str]:
    return {"nvidia-smi": f"if [ $1 = -L ]; then\n/bin/cat <<'E'\n{listing}E\nelse\n/bin/cat <<'E'\n{output}E\nfi\n"}


def test_auto_is_what_there_is(tmp_path: Path) -> None:
    (run,) = checked(tmp_path, smi(TWO_3090), "--gpu", "auto").json["runs"]
    assert run["settings"]["gpu"]["value"] == "NVIDIA GeForce RTX 3090"
    assert run["settings"]["gpus"]["value"] == 2
    assert run["estimate"]["capacity_bytes"] < 24 * GIB


def test_auto_in_the_config_and_a_flag_over_it(tmp_path: Path) -> None:
    (tmp_path / "lintfit.toml").write_text('gpu = "auto"\n')
    (run,) = checked(tmp_path, smi(UNHEARD_OF)).json["runs"]
    assert run["estimate"]["capacity_bytes"] == (49140 - 500) * MIB
    (run,) = checked(tmp_path, {"nvidia-smi": "exit 9\n"}, "--gpu", "H100").json["runs"]
    assert run["settings"]["gpu"]["value"] == "H100"


def test_what_is_stated_beside_it_stays(tmp_path: Path) -> None:
    flags = ("--gpu", "auto", "--gpus", "1", "--gpu-memory", "10GiB")
    (run,) = checked(tmp_path, smi(SPARK), *flags).json["runs"]
    assert run["settings"]["gpus"]["value"] == 1
    assert run["estimate"]["capacity_bytes"] == 10 * GIB


def test_a_run_of_flags_alone(tmp_path: Path) -> None:
    checked(tmp_path, smi(TWO_3090))
    words = ("--model", "gpt2", "--gpu", "auto", "--engine", "ddp")
    outcome = lintfit("estimate", *words, cwd=tmp_path, env={"PATH": str(tmp_path / "programs")})
    machine._machine.cache_clear()
    assert "DDP on 2 × RTX 3090" in outcome.out


def test_how_many_there_are_is_no_what_if(tmp_path: Path) -> None:
    checked(tmp_path, smi(EIGHT_A100))
    (tmp_path / "run.sh").write_text("torchrun --nproc_per_node 2 train.py\n")
    outcome = lintfit("estimate", "run.sh", "--gpu", "auto", cwd=tmp_path, env={"PATH": str(tmp_path / "programs")})
    machine._machine.cache_clear()
    assert "DDP on 2 × A100" in outcome.out
    assert "8 × A100" not in outcome.out


def test_nodes_of_a_job_multiply(tmp_path: Path) -> None:
    env = {"SLURM_JOB_ID": "1", "SLURM_JOB_NUM_NODES": "2"}
    outcome = checked(tmp_path, smi(EIGHT_A100), "--gpu", "auto", **env)
    assert outcome.json["runs"][0]["settings"]["nodes"]["value"] == 2


def test_nothing_is_asked_otherwise(tmp_path: Path) -> None:
    tools = dict.fromkeys(("nvidia-smi", "rocm-smi"), f"echo asked >> {tmp_path}/asked\n")
    checked(tmp_path, tools, "--gpu", "3090")
    checked(tmp_path, tools)
    assert not (tmp_path / "asked").exists()


@pytest.mark.parametrize(
    ("tools", "said"),
    [
        ({}, "neither nvidia-smi nor rocm-smi is on the PATH"),
        ({"nvidia-smi": "echo NVIDIA-SMI has failed because of the driver. Make sure >&2\nexit 9\n"}, "has failed"),
        ({"nvidia-smi": "echo No devices were found\n"}, "lists no GPU"),
        ({"nvidia-smi": "exit 3\n"}, "ended with status 3"),
        ({"nvidia-smi": "exec /bin/cat /dev/zero\n"}, "answers with more than"),
        ({"rocm-smi": "echo '{}'\n"}, "rocm-smi lists no GPU"),
        (smi(CUT.splitlines()[0] + "\n", "GPU 0: A (UUID: GPU-2222)\n"), "lists no slice"),
        (smi(MIXED), "several kinds"),
    ],
    ids=range(8),
)
def test_what_goes_wrong_is_one_line(tools: dict[str, str], said: str, tmp_path: Path) -> None:
    outcome = checked(tmp_path, tools, "--gpu", "auto")
    assert outcome.status == 2
    assert len(outcome.err.splitlines()) == 1
    assert said in outcome.err
    assert outcome.err.startswith("lintfit: --gpu auto: ")


def test_a_tool_that_does_not_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "PATIENCE", 0.2)
    outcome = checked(tmp_path, {"nvidia-smi": "exec /bin/sleep 60\n"}, "--gpu", "auto")
    assert (outcome.status, "longer than 0.2 seconds" in outcome.err) == (2, True)


def test_an_old_driver_is_asked_again(tmp_path: Path) -> None:
    refused = 'case "$1" in *reserved*) echo Field is not a valid field to query.; exit 2;; esac\n'
    (run,) = checked(tmp_path, {"nvidia-smi": f"{refused}echo '{OLD.strip()}'\n"}, "--gpu", "auto").json["runs"]
    assert run["settings"]["gpu"]["value"] == "Tesla V100-SXM2-16GB"


def test_a_program_of_the_checked_folder_is_not_run(tmp_path: Path) -> None:
    planted = tmp_path / "nvidia-smi"
    planted.write_text(f"#!/bin/sh\necho asked >> {tmp_path}/asked\n")
    planted.chmod(0o755)
    outcome = checked(tmp_path, {}, "--gpu", "auto", PATH=f".{os.pathsep}{tmp_path / 'programs'}")
    assert outcome.status == 2
    assert not (tmp_path / "asked").exists()


def test_the_kind_that_a_job_asked_for(tmp_path: Path) -> None:
    env = {"SLURM_JOB_ID": "1", "SLURM_GPUS_PER_NODE": "h100:4", "SLURM_JOB_NUM_NODES": "1"}
    (run,) = checked(tmp_path, {}, "--gpu", "auto", **env).json["runs"]
    assert run["settings"]["gpus"]["value"] == 4
    assert "H100" in run["settings"]["gpu"]["value"]
