"""Kubernetes: the containers of a Job, a Pod, a PyTorchJob or an MPIJob (Kubeflow's trainer), a JobSet, a RayJob.

GPUs are ``nvidia.com/gpu`` among a container's limits; their kind is what a node selector or an affinity names.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lintfit.documents.jobs import nodes
from lintfit.documents.jobs.model import Job, Said
from lintfit.documents.model import FileText, Kind, Node
from lintfit.documents.patterns import lazy_pattern
from lintfit.frozen import replace, word_set

_CARDS = ("nvidia.com/gpu", "amd.com/gpu")
_KINDS = word_set("""
    nvidia.com/gpu.product cloud.google.com/gke-accelerator gpu.nvidia.com/class gpu.nvidia.com/model accelerator
    nvidia.com/gpu.machine eks.amazonaws.com/instance-gpu-name k8s.amazonaws.com/accelerator
    karpenter.k8s.aws/instance-gpu-name
    """)
"""Labels of nodes that name their GPU: NVIDIA's feature discovery, GKE, CoreWeave, EKS and Karpenter."""
_INSTANCES = word_set("node.kubernetes.io/instance-type beta.kubernetes.io/instance-type")
_REPLICAS = ("pytorchReplicaSpecs", "mpiReplicaSpecs", "tfReplicaSpecs")
_KIND = lazy_pattern(r"(?m)^kind\s*:\s*[\"']?(?:Job|Pod|PyTorchJob|MPIJob|TrainJob|JobSet|RayJob|CronJob|Workflow)\b")


def is_one(path: Path, text: str) -> bool:
    return path.suffix in (".yaml", ".yml") and "apiVersion" in text and _KIND.search(text) is not None


def read(file: FileText) -> Iterator[Job]:
    for root in nodes.roots(file, Kind.YAML):
        if isinstance(root.get("kind"), Node) and nodes.text_of(root.get("kind")) == "RayJob":
            entry = root.get("spec", "entrypoint")
            if entry is not None and isinstance(entry.value, str):
                yield Job(nodes.script_of(file.text, [entry]))
            continue
        yield from _containers(file.text, root)


def _containers(text: str, root: Node) -> Iterator[Job]:
    found: dict[tuple[str | None, ...], Job] = {}
    machines = _machines(root)
    for pod in (node for _, node in root.walk() if node.shape == "mapping" and node.get("containers") is not None):
        containers = pod.get("containers")
        for each in containers.elements if containers is not None else ():
            batch = {**_gpus(each), **_kind(pod), **nodes.counted(nodes=machines)}
            job = nodes.command(text, [each.get("command"), each.get("args")], nodes.variables(each.get("env")), batch)
            if job is None:
                continue
            said = (*(word for word, _ in job.words), *job.script.split()[1:])
            # The master's command and the workers' are one.
            found[said] = replace(found[said], fixed=True) if said in found else job
    yield from found.values()


def _machines(root: Node) -> Said | None:
    """How many pods run the same command together: replicas of a PyTorchJob, a Job's parallelism."""
    spec = root.get("spec")
    for name in _REPLICAS if spec is not None else ():
        replicas = root.get("spec", name)
        if replicas is not None:
            return nodes.summed(entry.value.get("replicas") for entry in replicas.entries)
    jobs = root.get("spec", "replicatedJobs")
    if jobs is not None and len(jobs.elements) == 1:
        job = jobs.elements[0]
        each = job.get("template", "spec", "parallelism")
        times = job.get("replicas")
        if each is None or not isinstance(each.value, int):
            return nodes.said(times)
        factor = times.value if times is not None and isinstance(times.value, int) else 1
        return nodes.at(each, str(each.value * factor))
    return nodes.said(root.get("spec", "parallelism"))


def _gpus(container: Node) -> dict[str, Said]:
    for section in ("limits", "requests"):
        for name in _CARDS:
            found = nodes.said(container.get("resources", section, name))
            if found is not None:
                return {"gpus-per-node": found}
    return {}


def _kind(pod: Node) -> dict[str, Said]:
    selector = pod.get("nodeSelector")
    labels = [(entry.key, entry.value) for entry in selector.entries] if selector is not None else []
    affinity = pod.get("affinity", "nodeAffinity")
    for _, node in affinity.walk() if affinity is not None else ():
        values, key = node.get("values"), nodes.text_of(node.get("key"))
        if key is not None and values is not None and len(values.elements) == 1:
            labels.append((key, values.elements[0]))
    for key, value in labels:
        found = nodes.said(value)
        if found is not None and key in _KINDS:
            return {"constraint": found}
        if found is not None and key in _INSTANCES:
            return {"instance": found}
    return {}
