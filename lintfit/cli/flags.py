"""The flags that several commands share: the hardware, and the keys of a spec."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click

from lintfit.settings import registry

Flags = Mapping[str, tuple[str, str]]
"""Metavar and help by the flag's name, without its dashes."""

HARDWARE: Flags = {
    **{record.option: (record.placeholder, record.help) for record in registry.flags("hardware")},
    "gpu-memory": ("SIZE", "Of one GPU, where it is not its own: 23.7GiB."),
    "host-memory": ("SIZE", "Memory of one machine: 256GiB."),
    "versions": ("NAME=VERSION,…", "transformers=4.48.1,deepspeed=0.15.4."),
    "nvme-path": ("FOLDER", "Where plans may offload to, on an NVMe drive."),
}
SPEC: Flags = {record.option: (record.placeholder, record.help) for record in registry.flags("spec")}
"""The keys of a spec, as flags of ``estimate``."""


_Command = Callable[..., Any]


def flags(named: Flags, *, hidden: bool = False) -> Callable[[_Command], _Command]:
    """A decorator that adds flags to a command: metavar and help by name; ``hidden`` ones are not in its help."""

    def add(command: _Command) -> _Command:
        for name, (metavar, text) in reversed(list(named.items())):
            command = click.option(f"--{name}", metavar=metavar, help=text, hidden=hidden)(command)
        return command

    return add


def given(values: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """What click was given for flags, by their names on the command line; None for those that are not there."""
    return {name: values[name.replace("-", "_")] for name in names}


def color_option(command: _Command) -> _Command:
    choice = click.Choice(["auto", "always", "never"])
    return click.option("--color", type=choice, default="auto", help="Colours (NO_COLOR and FORCE_COLOR count).")(
        command
    )
