"""What libraries print when memory ends, in all its forms."""

# ruff: noqa: E501
from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest

from lintfit.sources.logs.messages import death, host_memory
from lintfit.sources.logs.model import Says

GIB, MIB = 2**30, 2**20


def test_torch_until_2_0() -> None:
    found = death(
        "RuntimeError: CUDA out of memory. Tried to allocate 2.26 GiB (GPU 0; 6.00 GiB total capacity; 781.59 MiB already "
        "allocated; 3.03 GiB free; 1.24 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try",
        7,
    )
    assert found is not None and (found.of, found.says, found.line, found.gpu) == ("gpu", "torch", 7, 0)
    assert found.requested == int(2.26 * GIB) and found.total == 6 * GIB and found.free == int(3.03 * GIB)
    assert found.allocated == int(781.59 * MIB) and found.reserved == int(1.24 * GIB)
    assert found.own is None and found.others is None


def test_torch_2_1_with_its_typing_mistake() -> None:
    found = death(
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 496.00 MiB. GPU 0 has a total capacty of 14.75 "
        "GiB of which 235.06 MiB is free. Process 20398 has 14.52 GiB memory in use. Of the allocated memory 14.06 GiB is "
        "allocated by PyTorch, and 330.42 MiB is reserved by PyTorch but unallocated.",
        1,
    )
    assert found is not None and found.total == int(14.75 * GIB) and found.unused == int(330.42 * MIB)
    assert found.own == int(14.52 * GIB) and found.others is None, "in a container that is the process itself"


def test_torch_2_2_and_later_with_another_process() -> None:
    found = death(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 172.00 MiB. GPU 4 has a total capacity of 23.69 GiB "
        "of which 100.00 MiB is free. Process 11 has 3.30 GiB memory in use. Including non-PyTorch memory, this process has "
        "20.20 GiB memory in use. Of the allocated memory 17.00 GiB is allocated by PyTorch, and 2.40 GiB is reserved by "
        "PyTorch but unallocated.",
        1,
    )
    assert found is not None and found.gpu == 4
    assert found.own == int(20.2 * GIB) and found.others == int(3.3 * GIB)
    assert found.unused == int(2.4 * GIB)


@pytest.mark.parametrize(
    ("line", "of", "says"),
    [
        ("RuntimeError: CUDA error: out of memory", "gpu", "driver"),
        ("torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp, Cuda failure 2 'out of memory'", "gpu", "nccl"),
        ("RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", "gpu", "cublas"),
        ("Error out of memory at line 380 in file /mmfs1/bitsandbytes/csrc/pythonInterface.c", "gpu", "bitsandbytes"),
        ("HIP out of memory. Tried to allocate 2.00 GiB (GPU 0; 16.00 GiB total capacity; 1.00 GiB free)", "gpu", "torch"),
        ("RuntimeError: [enforce fail at alloc_cpu.cpp:75] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to "
         "allocate 1073741824 bytes. Error code 12 (Cannot allocate memory)", "host", "torch-cpu"),
        ("[42.1] Out of memory: Killed process 4242 (python) total-vm:1kB, anon-rss:62914560kB, file-rss:0kB", "host", "kernel"),
        ("slurmstepd: error: Detected 1 oom_kill event in StepId=1.batch.", "host", "scheduler"),
        ("slurmstepd: error: Detected 3 oom-kill event(s) in step 1.0 cgroup.", "host", "scheduler"),
        ("ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).",
         "shared-memory", "kernel"),
        ("[ERROR] [launch.py:434:sigkill_handler] ['python', 'main.py'] exits with return code = -9", "other", "launcher"),
        ("ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -9) local_rank: 0 (pid: 4)", "other", "launcher"),
        ("subprocess.CalledProcessError: Command 'x' died with <Signals.SIGKILL: 9>.", "other", "launcher"),
        ("run.sh: line 12: 4242 Killed                  python train.py", "other", "launcher"),
        ("Killed", "other", "launcher"),
    ],
)  # fmt: skip
def test_everybody_else(line: str, of: str, says: str) -> None:
    found = death(line, 1)
    assert found is not None and (found.of, found.says) == (of, says)


CASES = [json.loads(line) for line in (Path(__file__).parent / "messages.jsonl").read_text("utf-8").splitlines()]
"""What programs printed in public threads (``source``), with the figures that stand in each."""
SIZES = {"bytes": 1, "MiB": MIB, "MB": MIB, "GiB": GIB, "GB": GIB}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["source"])
def test_messages_of_threads(case: dict[str, Any]) -> None:
    found = death(case["line"], 3)
    assert found is not None and (found.of, found.says, found.line) == (case["of"], case["says"], 3)
    for name in ("requested", "total", "free", "allocated", "reserved", "own", "others", "used"):
        if name in case:
            stated, size = case[name], getattr(found, name)
            assert size == (None if stated is None else _bytes(stated)), name
    if "gpu" in case:
        assert found.gpu == case["gpu"]


def _bytes(text: str) -> int:
    number, unit = text.split()
    return int(float(number) * SIZES[unit])


def test_there_are_a_hundred_messages() -> None:
    """With those that stand in this module."""
    assert len(CASES) >= 80 and len({case["line"] for case in CASES}) == len(CASES)
    assert {case["says"] for case in CASES} == set(get_args(Says))


def test_figures_of_the_host() -> None:
    cpu = death("DefaultCPUAllocator: not enough memory: you tried to allocate 8589934592 bytes.", 1)
    kernel = death("Memory cgroup out of memory: Killed process 7 (python) total-vm:9kB, anon-rss:1048576kB", 1)
    assert cpu is not None and cpu.requested == 8 * GIB
    assert kernel is not None and kernel.used == GIB
    assert host_memory("CPU Virtual Memory:  used = 30.0 GB, percent = 25.0%") == (30 * GIB, 120 * GIB)
    assert host_memory("CPU Virtual Memory:  used = 1.2.3 GB, percent = 22.6%") is None
    assert host_memory("CPU Virtual Memory:  used = 0.0 GB, percent = 0.0%") is None


def test_figures_that_are_no_numbers_are_left_out() -> None:
    node = "Memory on the node was {} / {} (0.95), which exceeds the memory usage threshold of 0.95."
    assert (found := death(node.format("15.20GB", "16.00GB"), 1)) is not None and found.total == 16 * GIB
    for used, total in (("1.2.3GB", "4.0GB"), ("1.2GB", "4.GB")):
        assert (found := death(node.format(used, total), 1)) is not None
        assert found.says == "ray" and found.used is None and found.total is None


@pytest.mark.parametrize("unit", ["KB", "MiB", "GB", "TiB", "TB"])
def test_every_unit_has_its_size(unit: str) -> None:
    found = death(f"numpy.core._exceptions._ArrayMemoryError: MemoryError: Unable to allocate 2.00 {unit} for x", 1)
    assert found is not None and found.requested == 2 << 10 * ("KMGT".index(unit[0]) + 1)


@pytest.mark.parametrize(
    "line",
    [
        "{'loss': 1.2, 'memory(GiB)': 20.1, 'epoch': 0.1}",
        "It is the user's choice to skip memory efficient attention",
        "--max_memory 23GB --killed no",
        "INFO killing subprocess 80",
        "step 12-9 of -90",
        "x" * 100_000,
        "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 147456, Hardware limit: 101376",
        "RuntimeError: DataLoader worker (pid 8102) is killed by signal: Terminated.",
        "pip: command exited with code 1370",
        "rank 137 joined",
        "UserWarning: expandable_segments lessens what is reserved but unallocated",
        "Killing subprocess 3210, killed 4 of 8",
    ],
)
def test_quiet_on_other_lines(line: str) -> None:
    assert death(line, 1) is None
