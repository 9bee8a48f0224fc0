"""FSDP: shard all it can, and offload to the host."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lintfit.fit.options import Option, Subject


def options(subject: Subject) -> Iterator[Option]:
    spec = subject.spec
    here = spec.fsdp
    if spec.engine != "fsdp" or here is None or spec.data_parallel < 2:
        return
    whole = replace(here, strategy="FULL_SHARD")
    name = f"FSDP{here.version} FULL_SHARD"
    if whole != here:
        yield Option(name, {"fsdp": whole}, kind=name)
    if not here.cpu_offload:
        name += " offloaded to the host"
        yield Option(name, {"fsdp": replace(whole, cpu_offload=True)}, kind=name)
    if subject.both_ways and here.cpu_offload:
        yield Option(f"FSDP{here.version} without offload", {"fsdp": replace(here, cpu_offload=False)})
