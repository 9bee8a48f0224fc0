"""What torch, CUDA, NCCL, bitsandbytes, launchers, schedulers and the kernel print when memory ends, and its figures.

Sources: ``c10/cuda/CUDACachingAllocator.cpp`` of torch 1.10 to 2.13 (its message changed in 1.10, 2.1 and 2.2),
``c10/core/impl/alloc_cpu.cpp``, NCCL's ``debug.cc``, bitsandbytes' ``csrc/ops.cu``, ``torch/distributed/elastic``,
``deepspeed/launcher/launch.py``, ``mm/oom_kill.c`` of Linux, slurmstepd, and Ray's memory monitor. Every pattern is
linear, of one line.
"""

from __future__ import annotations

import re

from lintfit.frozen import replace
from lintfit.sources.logs.model import Death, Of, Says

LONGEST = 4000
"""Characters of a line that are looked at; torch's longest message has some 900."""

_UNITS = {
    "bytes": 1,
    "b": 1,
    "kib": 2**10,
    "kb": 2**10,
    "mib": 2**20,
    "mb": 2**20,
    "gib": 2**30,
    "gb": 2**30,
    "tib": 2**40,
    "tb": 2**40,
}
_NUMBER = r"([0-9]{1,15}(?:\.[0-9]{1,6})?)"
_SIZE = rf"{_NUMBER} ?(bytes|[KMGT]i?B|B)"

_TORCH = re.compile(
    rf"(?:CUDA|HIP|XPU|NPU|MPS backend|cuda) out of memory(?: \([^()\n]{{1,200}}\))?\. "
    rf"Tried to allocate (?:{_SIZE}|more than)"
)
_GPU = re.compile(r"[GN]PU ([0-9]{1,3})\b")
_TOTAL = re.compile(rf"(?:total capaci?ty of {_SIZE}|{_SIZE} total capacity|max allowed: {_SIZE})")
_FREE = re.compile(rf"(?:of which {_SIZE} is free|{_SIZE} free)")
_ALLOCATED = re.compile(rf"(?:{_SIZE} is allocated by PyTorch|{_SIZE} already allocated|MPS allocated: {_SIZE})")
_RESERVED = re.compile(rf"{_SIZE} reserved in total by PyTorch|{_SIZE} cached")
_UNALLOCATED = re.compile(rf"{_SIZE} is reserved by PyTorch but unallocated")
_OWN = re.compile(rf"this process has {_SIZE} memory in use")
_PROCESS = re.compile(rf"Process [0-9]{{1,10}} has {_SIZE} memory in use")

_ASYNC = re.compile(r"Allocation on device [0-9]{0,3} ?would exceed allowed memory")
_DRIVER = re.compile(
    r"CUDA [Ee]rror: out of memory|cudaErrorMemoryAllocation|CUDA_ERROR_OUT_OF_MEMORY|"
    r"error(?: \(2\)|=2) : out of memory"
)
_NCCL = re.compile(
    r"(?:NCCL|Cuda failure|ncclUnhandledCudaError)[^\n]{0,200}out of memory|Cuda failure 2\b|"
    r"NCCL WARN Failed to CUDA (?:host )?(?:calloc|malloc)"
)
_CUBLAS = re.compile(r"CUBLAS_STATUS_ALLOC_FAILED|CUDNN_STATUS_ALLOC_FAILED|CUSOLVER_STATUS_ALLOC_FAILED")
_BITSANDBYTES = re.compile(
    r"Error(?: out of memory|:? ?CUDA.{0,40}out of memory).{0,80}(?:ops\.cu|pythonInterface|bitsandbytes)"
)
_VLLM = re.compile(
    r"No available memory for the cache blocks|"
    r"Free memory on device .{0,60} is less than desired GPU memory utilization"
)

_CPU = re.compile(
    r"DefaultCPUAllocator: (?:not enough memory|can't allocate memory): you tried to allocate ([0-9]{1,18}) bytes"
)
_ON_HOST = re.compile(
    r"DataLoader worker \(pid\(?s?\)? ?[0-9, ]{1,200}\) is killed by signal: Killed|"
    r"\[Errno 12\] Cannot allocate memory|"
    r"Cannot allocate memory \(12\)|std::bad_alloc|MemoryError: Unable to allocate"
)
_UNABLE = re.compile(rf"Unable to allocate {_SIZE}")
_RAY = re.compile(
    r"killed due to (?:the node running low on memory|memory pressure \(OOM\))|NODE_OUT_OF_MEMORY|"
    r"exceeds the memory usage threshold"
)
_OF_NODE = re.compile(rf"was {_NUMBER} ?GB / {_NUMBER} ?GB")
_KERNEL = re.compile(
    r"(?:Out of memory|Memory cgroup out of memory): Kill(?:ed)? process [0-9]+|oom-kill:constraint=|"
    r"invoked oom-killer|systemd-oomd.{0,40}: Killed .{1,200} due to memory pressure"
)
_RSS = re.compile(r"anon-rss:([0-9]{1,15})kB")
_SCHEDULER = re.compile(
    r"[Dd]etected [0-9]+ oom[_-]kill event|\bOUT_OF_MEMORY\b|\bOOMKilled\b|Exceeded job memory limit|"
    r"srun: error: .{1,80}: tasks? [0-9,-]{1,80}: Out Of Memory"
)
_SHARED = re.compile(
    r"insufficient shared memory|unable to (?:open|allocate) shared memory|No space left on device.{0,60}/dev/shm|"
    r"Bus error"
)
_LAUNCHER = re.compile(
    r"exits with return code = -9|exit ?code {0,4}: ?-9|exitcode=-9|exit(?:ed)?(?: with)? code:? 137\b|"
    r"Signal 9 \(SIGKILL\)|died with <Signals\.SIGKILL: 9>|"
    r"\bSIGKILL\b"
)
_KILLED = re.compile(r"^\s*(?:[\w./-]+: line [0-9]+: +[0-9]+ )?Killed\b|^\[[0-9]{1,3}\] +[0-9]+ killed ")

_HOST = re.compile(rf"CPU Virtual Memory: +used = {_NUMBER} GB, percent = {_NUMBER}%")


def death(line: str, number: int) -> Death | None:
    """The death that a line reports, None where it reports none."""
    line = line[:LONGEST]
    if " out of memory" in line and "Tried to allocate" in line and (found := _torch(line, number)) is not None:
        return found
    for words, pattern, of, says in _OTHERS:
        if any(word in line for word in words) and pattern.search(line):
            made = Death(of, says, number, _shortened(line))
            return _with_figures(made, line)
    return None


def host_memory(line: str) -> tuple[int, int] | None:
    """Bytes in use of the host and its total, where DeepSpeed's ``see_memory_usage`` prints them."""
    found = _HOST.search(line[:LONGEST]) if "Virtual Memory" in line else None
    if found is None:
        return None
    used, share = float(found[1]), float(found[2])
    return (int(used * 2**30), int(used * 2**30 / share * 100)) if share > 0 else None


def _torch(line: str, number: int) -> Death | None:
    asked = _TORCH.search(line)
    if asked is None:
        return None
    rest = line[asked.end() :]
    allocated, unused = _size(_ALLOCATED, rest), _size(_UNALLOCATED, rest)
    reserved = _size(_RESERVED, rest)
    if reserved is None and allocated is not None and unused is not None:
        reserved = allocated + unused
    gpu = _GPU.search(rest)
    processes = [_bytes(found[1], found[2]) for found in _PROCESS.finditer(rest)]
    own, total = _size(_OWN, rest), _size(_TOTAL, asked[0]) or _size(_TOTAL, rest)
    allocated = allocated or _size(_ALLOCATED, asked[0])
    if own is not None and total is not None and own > 2 * total:
        own = None  # a size below zero, printed as one without a sign
    if own is None and len(processes) == 1:
        own, processes = processes[0], []  # in a container it does not know itself among the processes
    return Death(
        "gpu",
        "torch",
        number,
        _shortened(line[asked.start() :]),
        requested=_bytes(asked[1], asked[2]) if asked[1] else None,
        total=total,
        free=_size(_FREE, rest),
        gpu=int(gpu[1]) if gpu else None,
        allocated=allocated,
        reserved=reserved,
        own=own,
        others=sum(processes) if processes else None,
    )


def _with_figures(found: Death, line: str) -> Death:
    cpu, rss = _CPU.search(line), _RSS.search(line)
    if cpu:
        return replace(found, requested=int(cpu[1]))
    unable, node = _size(_UNABLE, line), _OF_NODE.search(line) if found.says == "ray" else None
    if node is not None:
        return replace(found, used=_bytes(node[1], "gb"), total=_bytes(node[2], "gb"))
    if unable is not None:
        return replace(found, requested=unable)
    return replace(found, used=int(rss[1]) << 10) if rss else found


def _size(pattern: re.Pattern[str], text: str) -> int | None:
    found = pattern.search(text)
    if found is None:
        return None
    number, unit = (group for group in found.groups() if group is not None)
    return _bytes(number, unit)


def _bytes(number: str, unit: str) -> int:
    return int(float(number) * _UNITS[unit.lower()])


def _shortened(line: str) -> str:
    text = " ".join(line.split())
    return text if len(text) <= 160 else f"{text[:159]}…"


_OTHERS: tuple[tuple[tuple[str, ...], re.Pattern[str], Of, Says], ...] = (
    (("would exceed allowed memory",), _ASYNC, "gpu", "torch"),
    (("out of memory",), _BITSANDBYTES, "gpu", "bitsandbytes"),
    (("Cuda failure", "ncclUnhandledCudaError", "NCCL WARN"), _NCCL, "gpu", "nccl"),
    (("_ALLOC_FAILED",), _CUBLAS, "gpu", "cublas"),
    (("out of memory", "cudaErrorMemory", "OUT_OF_MEMORY"), _DRIVER, "gpu", "driver"),
    (("for the cache blocks", "GPU memory utilization"), _VLLM, "gpu", "vllm"),
    (("DefaultCPUAllocator",), _CPU, "host", "torch-cpu"),
    (("DataLoader worker", "annot allocate memory", "bad_alloc", "Unable to allocate"), _ON_HOST, "host", "torch-cpu"),
    (("on memory", "memory pressure (OOM)", "NODE_OUT_OF_MEMORY", "usage threshold"), _RAY, "host", "ray"),
    (("ut of memory:", "oom-kill", "systemd-oomd"), _KERNEL, "host", "kernel"),
    (("oom", "OOMKilled", "OUT_OF_MEMORY", "job memory limit", "Out Of Memory"), _SCHEDULER, "host", "scheduler"),
    (("shared memory", "/dev/shm", "Bus error"), _SHARED, "shared-memory", "kernel"),
    (("-9", "SIGKILL", "137"), _LAUNCHER, "other", "launcher"),
    (("Killed", "killed"), _KILLED, "other", "launcher"),
)
"""Words of which one stands in every such message (a log has thousands of lines without), the message, what it is."""
