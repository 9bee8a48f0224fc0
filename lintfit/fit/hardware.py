"""What GPUs can do, from the vendors' data sheets: arithmetic, memory and links. Rates are decimal, as published."""

from __future__ import annotations

from collections.abc import Mapping

from lintfit.frozen import frozen
from lintfit.memory.spec import Spec


@frozen
class Card:
    """Dense TFLOPS in 16 bits (fp32 accumulation) and in fp32 outside the tensor cores, memory in GB/s, and PCIe's GB/s
    one way (half of it where GPUs share a switch or go through the host); ``nvlink`` GB/s of ring traffic, 0 without.
    """

    half: float
    single: float
    memory: float
    pcie: float
    nvlink: float = 0.0


PCIE_3, PCIE_4, PCIE_5 = 12.0, 26.3, 51.0
"""GB/s that an x16 link moves one way. The third generation's is NCCL's ``PCI_BW`` (``src/graph/topo.h``, 2.30), the
others were measured from host to device by nvbandwidth on A100 and H100 (Azure's AI-benchmarking-guide, 2024)."""

NVLINK_2, NVLINK_3, NVLINK_4, NVLINK_5 = 6 * 20.0, 231.6, 18 * 20.6, 18 * 40.1
"""GB/s bus bandwidth of a ring: what NCCL counts on from a link (``SM70_NVLINK_BW`` and its like, ``src/graph/topo.h``,
2.30) times a GPU's links. A100's was measured on eight GPUs (all-reduce of 8 GB, Azure's AI-benchmarking-guide,
2024; NCCL counts on 12 x 20); H100's 479 there is no ring's: only all-reduce has SHARP."""

NVLINK_A800, NVLINK_H800 = 8 * 20.0, 8 * 20.6
"""The same with eight links, all that the export versions have."""

CARDS: Mapping[str, Card] = {
    "GB200": Card(2500, 80, 8000, PCIE_5, NVLINK_5),
    "B300": Card(2250, 75, 8000, PCIE_5, NVLINK_5),
    "B200": Card(2250, 75, 8000, PCIE_5, NVLINK_5),
    "GH200": Card(989, 67, 4000, PCIE_5, NVLINK_4),
    "H200 NVL": Card(835, 60, 4800, PCIE_5, NVLINK_4),
    "H200": Card(989, 67, 4800, PCIE_5, NVLINK_4),
    "H100 PCIe": Card(756, 51, 2000, PCIE_5),
    "H100": Card(989, 67, 3350, PCIE_5, NVLINK_4),
    "H800 PCIe": Card(756, 51, 2000, PCIE_5),
    "H800": Card(989, 67, 3350, PCIE_5, NVLINK_H800),
    "H20": Card(148, 44, 4000, PCIE_5, NVLINK_4),
    "A100-SXM4-40GB": Card(312, 19.5, 1555, PCIE_4, NVLINK_3),
    "A100-PCIE-40GB": Card(312, 19.5, 1555, PCIE_4),
    "A100 80GB PCIe": Card(312, 19.5, 1935, PCIE_4),
    "A100": Card(312, 19.5, 2039, PCIE_4, NVLINK_3),
    "A800": Card(312, 19.5, 2039, PCIE_4, NVLINK_A800),
    "A40": Card(150, 37.4, 696, PCIE_4),
    "A30": Card(165, 10.3, 933, PCIE_4),
    "A10G": Card(70, 31.5, 600, PCIE_4),
    "A10": Card(125, 31.2, 600, PCIE_4),
    "A6000": Card(155, 38.7, 768, PCIE_4),
    "A5000": Card(111, 27.8, 768, PCIE_4),
    "A4000": Card(77, 19.2, 448, PCIE_4),
    "L40S": Card(362, 91.6, 864, PCIE_4),
    "L40": Card(181, 90.5, 864, PCIE_4),
    "L20": Card(119, 59.8, 864, PCIE_4),
    "L4": Card(121, 30.3, 300, PCIE_4),
    "6000 Ada": Card(364, 91.1, 960, PCIE_4),
    "RTX PRO 6000": Card(503, 125, 1792, PCIE_5),
    "5090": Card(210, 104.8, 1792, PCIE_5),
    "4090": Card(165, 82.6, 1008, PCIE_4),
    "4080": Card(97, 48.7, 717, PCIE_4),
    "3090": Card(71, 35.6, 936, PCIE_4),
    "3080": Card(60, 29.8, 760, PCIE_4),
    "2080": Card(54, 13.4, 616, PCIE_3),
    "V100-SXM2": Card(125, 15.7, 900, PCIE_3, NVLINK_2),
    "V100": Card(112, 14, 900, PCIE_3),
    "P100": Card(19, 9.5, 732, PCIE_3),
    "T4": Card(65, 8.1, 300, PCIE_3),
}
"""By a part of the GPU's name, the more special first."""

COMMON = Card(150, 30, 900, PCIE_4)
"""Where the GPU is not known: one of the middle."""


def card_of(spec: Spec) -> Card:
    """The rates of the run's GPUs."""
    name = spec.gpu.name if spec.gpu is not None else ""
    return next((card for part, card in CARDS.items() if part in name), COMMON)
