from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from lintfit.documents.shell_document import ShellDocument
from lintfit.settings.model import UNKNOWN
from lintfit.sources.launchers.hostfile import read_hosts
from lintfit.sources.launchers.launcher import read_launches

HOSTS = "# cluster\nworker-1 slots=8\n\nworker-2   slots=4\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (HOSTS, {"worker-1": 8, "worker-2": 4}),
        ("worker-1\n", None),
        ("a slots=2\na slots=2\n", None),
        ("a slots=x\n", None),
        ("", None),
    ],
)
def test_the_file(text: str, expected: Mapping[str, int] | None) -> None:
    assert read_hosts(text) == expected


@pytest.mark.parametrize(
    ("options", "gpus", "nodes"),
    [
        ("--hostfile h", 12, 2),
        ("-H h --num_nodes 1", 8, 1),
        ("-H h --num_gpus 2", 4, 2),
        ("-H h --include worker-2", 4, None),
        ("-H h --include worker-1:0,1@worker-2", 6, 2),
        ("-H h --exclude worker-1:0", UNKNOWN, UNKNOWN),
        ("-H h --num_gpus $N", UNKNOWN, UNKNOWN),
        ("-H missing", UNKNOWN, UNKNOWN),
        ("--hostfile= --num_gpus 4", 4, None),
        ("--hostfile=$NONE --num_gpus 4", 4, None),
    ],
)
def test_what_a_launch_takes_of_it(
    shell_document: Callable[[str], ShellDocument], options: str, gpus: Any, nodes: Any
) -> None:
    document = shell_document(f'NONE=""\ndeepspeed {options} train.py --do_train\n')
    (launch,) = read_launches(document, lambda name: HOSTS if name == "h" else None)
    said = {name: setting.value for name, setting in launch.settings.items()}
    assert (said["gpus"], said.get("nodes")) == (gpus, nodes)
