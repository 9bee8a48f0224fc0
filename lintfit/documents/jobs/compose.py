"""Services of Docker Compose (docs.docker.com/reference/compose-file): ``command`` and the devices they reserve."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from lintfit.documents.jobs import nodes
from lintfit.documents.jobs.model import Job, Said
from lintfit.documents.model import FileText, Kind, Node
from lintfit.documents.patterns import lazy_pattern

_SERVICES = lazy_pattern(r"^services\s*:", re.MULTILINE)


def is_one(path: Path, text: str) -> bool:
    return path.suffix in (".yaml", ".yml") and "command" in text and _SERVICES.search(text) is not None


def read(file: FileText) -> Iterator[Job]:
    for root in nodes.roots(file, Kind.YAML):
        services = root.get("services")
        for entry in services.entries if services is not None else ():
            service = entry.value
            parts = [service.get("entrypoint"), service.get("command")]
            job = nodes.command(
                file.text, parts, nodes.variables(service.get("environment")), _devices(service), shell=True
            )
            if job is not None:
                yield job


def _devices(service: Node) -> dict[str, Said]:
    devices = service.get("deploy", "resources", "reservations", "devices")
    for device in devices.elements if devices is not None else ():
        ids = device.get("device_ids")
        if ids is not None and ids.shape == "sequence":
            return {"gpus-per-node": nodes.at(ids, str(len(ids.elements)))}
        count = nodes.said(device.get("count"))
        if count is not None and count[0] is not None and count[0].isdigit():
            return {"gpus-per-node": count}
    return {}
