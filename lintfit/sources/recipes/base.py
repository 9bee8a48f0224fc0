"""What a front end's recipe is to a run: settings from its YAML file and its launch line, and a way to restate them.

A format is one module with ``read_recipe(launch, open_file, world, versions)`` that returns a :class:`Recipe` and
``usual_command(document)``, the command that people start such a file with (None for one that does not train), and a
line in :data:`lintfit.sources.recipes.front_ends.READERS`. Its keys, defaults and their order are its own;
:mod:`lintfit.sources.recipes.keys` holds what they state, and :mod:`lintfit.sources.recipes.trainer` makes settings of
those that are transformers' own. The recipe takes the script's place: it states the settings that a script would state,
under the same names, and besides them ``gpus``, ``nodes``, ``engine`` and ``fsdp`` where the front end starts its
processes itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

from lintfit.documents.model import Document
from lintfit.settings.model import Setting
from lintfit.sources.recipes.front_ends import READERS, FrontEnd
from lintfit.sources.training import Training

if TYPE_CHECKING:
    from lintfit.sources.flag_grammars.model import Refused
    from lintfit.sources.launchers.launch import Launch

OpenFile = Callable[[str], Document | None]
"""Opens a file that the launch line names; None where there is none to read."""

World = Callable[[Setting | None], Setting | None]
"""The number of processes in the end, given what the recipe says: lintfit's own options come in here."""


class Recipe(Training, Protocol):
    """One launch of a front end, read with its recipe.

    ``document`` is the recipe's own file, the launch's where everything stands on the command line; ``settings`` are
    the effective ones, with what they overrode, defaults included.
    """

    @property
    def missing(self) -> Setting | None:
        """The setting that names the recipe's file, where that was not found or could not be read."""

    @property
    def adjustable(self) -> frozenset[str]:
        """The settings that :meth:`write` can change in this launch; what is not here cannot be planned.

        Of a front end that brings DeepSpeed configs, ``write`` is asked for ``packaged_deepspeed`` (another of them,
        by stage and offload) and ``packaged_zero_stage`` and the like first; None where it has none for that.
        """

    @property
    def refused(self) -> Iterable[Refused]:
        """The keys and flags that the front end refuses or passes over."""


def read_recipe(
    launch: Launch,
    open_file: OpenFile,
    world: World,
    versions: Mapping[str, str] | None = None,
    front_end: FrontEnd | None = None,
) -> Recipe | None:
    """The recipe of a front end's launch; None where lintfit does not read this format.

    ``versions`` are those of the libraries, as far as the project says them. ``front_end`` is whose script a launcher
    starts by its path; else the launcher itself is the front end.
    """
    module = READERS.get(front_end or cast("FrontEnd", launch.launcher))
    if module is None or launch.action is None:
        return None
    return cast("Recipe | None", import_module(module).read_recipe(launch, open_file, world, versions))
