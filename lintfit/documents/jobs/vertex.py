"""Custom jobs of Vertex AI (``workerPoolSpecs``), as ``gcloud ai custom-jobs create --config`` takes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lintfit.documents.jobs import nodes
from lintfit.documents.jobs.model import Job
from lintfit.documents.model import FileText, Kind
from lintfit.frozen import replace


def is_one(path: Path, text: str) -> bool:
    return path.suffix in (".yaml", ".yml", ".json") and ("workerPoolSpecs" in text or "worker_pool_specs" in text)


def read(file: FileText) -> Iterator[Job]:
    kind = Kind.JSON if file.path.suffix == ".json" else Kind.YAML
    for root in nodes.roots(file, kind):
        pools = next((node for path, node in root.walk() if path[-1:] == ("workerPoolSpecs",)), None)
        machines = nodes.summed(pool.get("replicaCount") for pool in pools.elements) if pools is not None else None
        for pool in pools.elements[:1] if pools is not None else ():
            machine = pool.get("machineSpec")
            batch = nodes.counted(
                constraint=nodes.said(machine.get("acceleratorType")) if machine is not None else None,
                gpus_per_node=nodes.said(machine.get("acceleratorCount")) if machine is not None else None,
                nodes=machines,
            )
            if machine is not None and "constraint" not in batch:
                batch |= nodes.counted(instance=nodes.said(machine.get("machineType")))
            held = pool.get("containerSpec")
            if held is not None:
                env = nodes.variables(held.get("env"))
                job = nodes.command(file.text, [held.get("command"), held.get("args")], env, batch)
                if job is not None:
                    yield job
            packaged = pool.get("pythonPackageSpec")
            module = packaged.get("pythonModule") if packaged is not None else None
            if packaged is not None and module is not None:
                job = nodes.command(file.text, [module, packaged.get("args")], {}, batch)
                if job is not None:
                    yield replace(job, words=(nodes.at(module, "python"), nodes.at(module, "-m"), *job.words))
