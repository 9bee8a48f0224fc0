"""GPUs by the names that people, schedulers and clouds use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lintfit.catalog.gpus import GIB, ambiguous, gpus, instance, lookup, parse_gres, stated_count, suggest

SHARED = Path(__file__).parents[2].parent / "shared" / "data"


@pytest.mark.parametrize(
    ("name", "card"),
    [
        *(
            (name, "NVIDIA GeForce RTX 3090")
            for name in (
                "RTX 3090",
                "3090",
                "rtx3090",
                "rtx-3090",
                "RTX_3090",
                "3090 24GB",
                "3090x4",
                "3090 x 4",
                "4x3090",
            )
        ),
        *((name, "NVIDIA GeForce RTX 3090") for name in ("NVIDIA GeForce RTX 3090", "GeForce RTX 3090", "2x RTX 3090")),
        ("3090ti", "NVIDIA GeForce RTX 3090 Ti"),
        *((name, "NVIDIA A100-SXM4-40GB") for name in ("a100", "A100-40GB", "A100 40G", "8xA100", "gpu:a100:4")),
        *(
            (name, "NVIDIA A100-SXM4-80GB")
            for name in ("A100-SXM4-80GB", "A100 80G", "a100-80gb", "A100 (80 GB)", "a100_80")
        ),
        ("nvidia_a100_80gb_pcie", "NVIDIA A100 80GB PCIe"),
        ("h100", "NVIDIA H100 80GB HBM3"),
        ("H100-80GB", "NVIDIA H100 80GB HBM3"),
        ("H100 PCIe", "NVIDIA H100 PCIe"),
        ("H100 NVL", "NVIDIA H100 NVL"),
        ("L20-48GB", "NVIDIA L20"),
        ("v100", "Tesla V100-SXM2-16GB"),
        ("V100-32GB", "Tesla V100-SXM2-32GB"),
        ("nvidia-tesla-t4", "Tesla T4"),
        ("A6000", "NVIDIA RTX A6000"),
        ("RTX 6000 Ada", "NVIDIA RTX 6000 Ada Generation"),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA GeForce RTX 4090 Laptop"),
        ("RTX 4060 Ti 16GB", "NVIDIA GeForce RTX 4060 Ti 16GB"),
        ("TITAN RTX", "NVIDIA TITAN RTX"),
        ("MI300X", "AMD Instinct MI300X"),
        ("7900XTX", "AMD Radeon RX 7900 XTX"),
        ("RTX 2000 Ada", "NVIDIA RTX 2000 Ada Generation"),
        ("RTX PRO 2000", "NVIDIA RTX PRO 2000 Blackwell"),
        ("A100-80GB-SXM", "NVIDIA A100-SXM4-80GB"),
        ("gpu:h100-96:1", "NVIDIA H100 96GB"),
        ("gpu:h100-47:1", "NVIDIA H100 96GB MIG 3g.47gb"),
        ("1g.10gb", "NVIDIA A100 80GB MIG 1g.10gb"),
        ("a100_3g.20gb", "NVIDIA A100 40GB MIG 3g.20gb"),
        ("nvidia_h100_80gb_hbm3_1g.10gb", "NVIDIA H100 80GB MIG 1g.10gb"),
        ("p4d.24xlarge", "NVIDIA A100-SXM4-40GB"),
        ("p4de", "NVIDIA A100-SXM4-80GB"),
        ("g5", "NVIDIA A10G"),
        ("ND96amsr_A100_v4", "NVIDIA A100-SXM4-80GB"),
        ("gpu_8x_a100_80gb_sxm4", "NVIDIA A100-SXM4-80GB"),
        ("gpu:v100l:4", "Tesla V100-SXM2-32GB"),
        ("DGX A100", "NVIDIA A100-SXM4-40GB"),
        ("2x3090", "NVIDIA GeForce RTX 3090"),
        ("8 A100", "NVIDIA A100-SXM4-40GB"),
        ("2080 Ti", "NVIDIA GeForce RTX 2080 Ti"),
        ("2080ti 22g", "NVIDIA GeForce RTX 2080 Ti 22GB (modded)"),
        ("3080 20g", "NVIDIA GeForce RTX 3080 20GB (modded)"),
        ("NVIDIA A100-SXM-64GB", "NVIDIA A100-SXM-64GB"),
        ("NVIDIA H100 SXM5 64GB", "NVIDIA H100 64GB"),
        ("NVIDIA GH200 120GB", "NVIDIA GH200 480GB"),
        ("B300", "NVIDIA B300 SXM6 AC"),
        ("GB300", "NVIDIA B300 (DGX Station GB300)"),
        ("RTX_4070S_Ti", "NVIDIA GeForce RTX 4070 Ti SUPER"),
        ("Q_RTX_8000", "Quadro RTX 8000"),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "NVIDIA RTX PRO 6000 Blackwell"),
        ("Tesla V100-DGXS-32GB", "Tesla V100-SXM2-32GB"),
        ("NVIDIA H200 MIG 1g.18gb", "NVIDIA H200 MIG 1g.18gb"),
        ("A30 1g.6gb", "NVIDIA A30 MIG 1g.6gb"),
        ("--gpus-per-task=v100:1", "Tesla V100-SXM2-16GB"),
        ("a10g-largex4", "NVIDIA A10G"),
    ],
)
def test_names(name: str, card: str) -> None:
    found = lookup(name)
    assert found is not None
    assert found.name == card


@pytest.mark.parametrize(
    "name", ["", " ", "gpu", "NVIDIA", "24GB", "RTX", "A100 24GB", "no such GPU", "9z.99gb", "gpu:4"]
)
def test_what_names_no_card_is_unknown(name: str) -> None:
    assert lookup(name) is None


def test_every_card_is_found_by_its_own_name() -> None:
    for name, gpu in gpus().items():
        assert lookup(name) is not None, name
        if "MIG" not in name:
            assert gpu in ambiguous(name), name
        assert 0.9 * gpu.vendor_gb * 1e9 < gpu.usable_bytes <= gpu.vendor_gb * GIB, name
        assert gpu.source, name


def test_a_shared_name_stands_for_the_card_with_the_least_memory() -> None:
    for name in ("a100", "v100"):
        cards = ambiguous(name)
        assert len(cards) > 1
        assert lookup(name) == cards[0]
        assert cards[0].usable_bytes == min(card.usable_bytes for card in cards)
    assert len(ambiguous("RTX 3090")) == 1


def test_what_the_silicon_can_do_follows_from_its_compute_capability() -> None:
    for name, modern in (
        ("V100", False),
        ("T4", False),
        ("2080 Ti", False),
        ("A100", True),
        ("3090", True),
        ("L4", True),
    ):
        gpu = lookup(name)
        assert gpu is not None
        assert gpu.native_bf16 is modern
        assert gpu.flash_attention_2 is modern


def test_usable_memory_is_never_more_than_torch_was_seen_to_report() -> None:
    path = SHARED / "gpus.jsonl"
    if not path.is_file():
        pytest.skip("the measurements are not beside this checkout")
    for line in path.read_text().splitlines():
        row = json.loads(line)
        gpu = lookup(row["name"])
        assert gpu is not None, row["name"]
        assert gpu.usable_bytes <= min(row["usable_gib"]) * GIB, row["name"]
        for alias in row["aliases"]:
            assert lookup(alias) is not None, alias


@pytest.mark.parametrize(
    ("text", "card", "count"),
    [
        ("gpu:a100:4", "NVIDIA A100-SXM4-40GB", 4),
        ("gpu:a100", "NVIDIA A100-SXM4-40GB", 1),
        ("gpu:4", None, 4),
        ("4", None, 4),
        ("gpu", None, 1),
        ("gpu=2", None, 2),
        ("gpu:nosuch:2", None, 2),
        ("a100:4", "NVIDIA A100-SXM4-40GB", 4),
        ("a100", "NVIDIA A100-SXM4-40GB", 1),
        ("gpu:a100:4(S:0-1)", "NVIDIA A100-SXM4-40GB", 4),
        ("gres/gpu:a100=4", "NVIDIA A100-SXM4-40GB", 4),
        ("gpu:nvidia_a100_80gb_pcie:2", "NVIDIA A100 80GB PCIe", 2),
        ("gpu:1g.10gb:1", "NVIDIA A100 80GB MIG 1g.10gb", 1),
        ("nvme:1,gpu:h100:8", "NVIDIA H100 80GB HBM3", 8),
        ("A100-80GB:8", "NVIDIA A100-SXM4-80GB", 8),
        ("8xH100", "NVIDIA H100 80GB HBM3", 8),
        ("L40Sx4", "NVIDIA L40S", 4),
        ("RTX 3090 x2", "NVIDIA GeForce RTX 3090", 2),
        ("rtx3090", "NVIDIA GeForce RTX 3090", 1),
        ("nvme:1", None, None),
        ("", None, None),
        ("lustre", None, None),
    ],
)
def test_gres(text: str, card: str | None, count: int | None) -> None:
    gpu, number = parse_gres(text)
    assert (gpu.name if gpu else None, number) == (card, count)


@pytest.mark.parametrize(
    ("name", "card", "count"),
    [
        ("p4d.24xlarge", "NVIDIA A100-SXM4-40GB", 8),
        ("ml.p4de.24xlarge", "NVIDIA A100-SXM4-80GB", 8),
        ("p5.48xlarge", "NVIDIA H100 80GB HBM3", 8),
        ("g5.12xlarge", "NVIDIA A10G", 4),
        ("a2-highgpu-8g", "NVIDIA A100-SXM4-40GB", 8),
        ("a3-highgpu-8g", "NVIDIA H100 80GB HBM3", 8),
        ("standard_nd96asr_v4", "NVIDIA A100-SXM4-40GB", 8),
        ("gpu_8x_h100_sxm5", "NVIDIA H100 80GB HBM3", 8),
        ("gpu_8x_b200_sxm6", "NVIDIA B200", 8),
        ("g7e.24xlarge", "NVIDIA RTX PRO 6000 Blackwell", 4),
        ("p6e-gb200.36xlarge", "NVIDIA GB200", 4),
        ("a4x-highgpu-4g", "NVIDIA GB200", 4),
        ("g4-standard-384", "NVIDIA RTX PRO 6000 Blackwell", 8),
        ("Standard_ND128isr_NDR_GB200_v6", "NVIDIA GB200", 4),
        ("NC24s_v2", "Tesla P100-PCIE-16GB", 4),
        ("BM.GPU.MI300X.8", "AMD Instinct MI300X", 8),
    ],
)
def test_instances(name: str, card: str, count: int) -> None:
    found = instance(name)
    assert found is not None
    assert (found[0].name, found[1]) == (card, count)


def test_an_unknown_instance_is_unknown() -> None:
    assert instance("m5.large") is None
    assert instance("gpu_8x_nosuch") is None


def test_suggestions() -> None:
    assert suggest("RTX 3091") == "NVIDIA GeForce RTX 3090"
    assert suggest("p4d.24xlage") == "p4d.24xlarge"
    assert suggest("something else entirely") is None


def test_a_flag_of_slurm_is_read_whole() -> None:
    card, count = parse_gres("--gres=gpu:a100:4")
    assert card is not None
    assert (card.name, count) == ("NVIDIA A100-SXM4-40GB", 4)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("8x3090", 8), ("2 x A100 80GB", 2), ("T4 x2", 2), ("4090 x1", 1), ("4090x2", 2), ("gpu:a100:4", 4),
        ("a100:8", 8), ("p4d.24xlarge", 8), ("g5.xlarge", 1), ("gpu_8x_a100", 8), ("a2-highgpu-4g", 4),
        *((name, None) for name in ("3090", "RTX 4090", "A100-SXM4-80GB", "1g.10gb", "gpu:a100", "a100-40gb", "H200")),
    ],
)  # fmt: skip
def test_the_count_that_a_name_states(name: str, count: int | None) -> None:
    assert stated_count(name) == count
    assert lookup(name) is not None


def test_ascend() -> None:
    """As torch_npu says: 60.97 GiB of the 64 GB ones, 29.50 of the 32 GB ones, for which a bare name stands."""
    for name, usable in (("Ascend 910B3", 60.97), ("910B2", 60.97), ("910B4", 29.5), ("Ascend 910B 32GB", 29.5)):
        found = lookup(name)
        assert found is not None and found.usable_bytes == int(usable * GIB), name
