"""Which layers each GPU gets by ``device_map="auto"``, as Accelerate hands them out."""

from __future__ import annotations

import pytest

from lintfit.verdict.device_map import Blocks, layers_by_gpu

GIB = 2**30
LLAMA_8B = Blocks(128_256 * 4096 * 2, 436_224_000, 32, 128_256 * 4096 * 2)
QWEN_7B = Blocks(152_064 * 3584 * 2, 466_114_560, 28, 152_064 * 3584 * 2)
QWEN_05B = Blocks(151_936 * 896 * 2, 29_824_256, 24)
GEMMA_2B = Blocks(256_000 * 2048 * 2, 220_209_152, 18)
LLAMA_70B = Blocks(128_256 * 8192 * 2, 1_711_308_800, 80, 128_256 * 8192 * 2)


@pytest.mark.parametrize(
    ("blocks", "by_gpu"),
    [
        (LLAMA_8B, (14, 18)),
        (LLAMA_8B, (8, 13, 11)),
        (LLAMA_8B, (1, 5, 5, 5, 5, 5, 5, 1)),
        (QWEN_7B, (4, 9, 9, 6)),
        (QWEN_7B, (0, 5, 5, 5, 5, 5, 3, 0)),
        (QWEN_05B, (7, 17)),
        (QWEN_05B, (0, 0, 9, 15)),  # the first has no room for the embedding beside what it keeps free
        (GEMMA_2B, (3, 8, 7)),
        (LLAMA_70B, (9, 11, 11, 11, 11, 11, 11, 5)),
    ],
)
def test_layers_are_where_accelerate_puts_them(blocks: Blocks, by_gpu: tuple[int, ...]) -> None:
    """Recorded with ``infer_auto_device_map(model, get_balanced_memory(model, memory, model._no_split_modules))`` of
    accelerate 1.15 for bf16 models without weights on so many GPUs of 23.6 GiB."""
    assert layers_by_gpu(blocks, len(by_gpu), 23.6 * GIB, blocks.layer) == by_gpu


def test_what_has_no_room_is_not_told() -> None:
    assert layers_by_gpu(LLAMA_70B, 4, 23.6 * GIB, LLAMA_70B.layer) is None
