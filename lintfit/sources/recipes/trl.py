"""TRL's command line: ``trl sft --model_name_or_path … --num_processes 8``, read as the script that it starts.

``trl/scripts/*.py`` of TRL 1.16 all do the same: fill the trainer's config and ``ModelConfig`` from flags and
``--config``, and hand the trainer the model's name with the dtype, adapters and quantization of ``ModelConfig``.
``accelerate launch`` gets the options that none of these classes has (``lintfit/sources/launchers/command_line.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lintfit.documents.model import DataDocument, Document, FileText, Kind
from lintfit.settings.model import Provenance, Setting
from lintfit.sources.recipes.base import OpenFile, World
from lintfit.sources.recipes.keys import spelled, write_key

if TYPE_CHECKING:
    from lintfit.documents.model import FileEdit
    from lintfit.sources.launchers.launch import Launch
    from lintfit.sources.script.source import ScriptSource

TRAINERS: Mapping[str, str] = {
    "sft": "SFT",
    "dpo": "DPO",
    "grpo": "GRPO",
    "kto": "KTO",
    "reward": "Reward",
    "rloo": "RLOO",
}
"""The commands by what their config and trainer are called."""

_SCRIPT = """\
from trl import {kind}Config, {kind}Trainer, ModelConfig, ScriptArguments, TrlParser
from trl import get_peft_config, get_quantization_config

parser = TrlParser((ScriptArguments, {kind}Config, ModelConfig))
script_args, training_args, model_args = parser.parse_args_and_config()
trainer = {kind}Trainer(
    model=model_args.model_name_or_path,
    args=training_args,
    eval_dataset=dataset[script_args.dataset_test_split] if training_args.eval_strategy != "no" else None,
    model_init_kwargs=dict(attn_implementation=model_args.attn_implementation, dtype=model_args.{dtype}),
    quantization_config=get_quantization_config(model_args),
    peft_config=get_peft_config(model_args),
)
trainer.train()
trainer.save_model(training_args.output_dir)
"""
"""What a command amounts to."""

_RENAMED = (0, 23)
"""The TRL whose ``ModelConfig`` first has ``dtype`` for ``torch_dtype``."""

_FLAGS: Mapping[str, str] = {"seq_len": "max_length", "lora_rank": "lora_r"}
"""Settings that are a flag of another name."""

_ADJUSTABLE = frozenset({
    "eval_batch_size", "gradient_accumulation_steps", "gradient_checkpointing", "lora_rank", "lora_targets", "method",
    "micro_batch_size", "optimizer", "quantization", "seq_len", "weights_dtype",
})  # fmt: skip
"""Settings that are flags of the command or keys of its file, which the planner may write."""


@dataclass(frozen=True, eq=False)
class TrlRecipe:
    """One ``trl`` launch."""

    launch: Launch
    source: ScriptSource

    @property
    def document(self) -> Document:
        return self.launch.document

    @property
    def dialect(self) -> str:
        return "trl"

    @property
    def uses_trainer(self) -> bool:
        return True

    @property
    def uses_trl(self) -> bool:
        return True

    @property
    def trains(self) -> bool:
        return True

    @property
    def arguments_place(self) -> None:
        """None: the launch line is all that there is."""
        return None

    @property
    def adjustable(self) -> frozenset[str]:
        return _ADJUSTABLE

    @cached_property
    def missing(self) -> Setting | None:
        """Always None: a ``--config`` that is not there leaves its settings unknown."""
        return None

    @cached_property
    def settings(self) -> Mapping[str, Setting]:
        return {name: self._placed(setting) for name, setting in self.source.settings.items()}

    def write(self, name: str, value: Any) -> tuple[FileEdit, ...] | None:
        """Changes or adds the flag, or the key of the ``--config`` file where that decides."""
        if name in _FLAGS:
            return self.launch.set_flag(_FLAGS[name], str(value))
        return self._outside(self.source.write(name, value))

    def _outside(self, edits: tuple[FileEdit, ...] | None) -> tuple[FileEdit, ...] | None:
        """Edits of the user's files; None where they would change TRL's own script."""
        if edits is None or any(edit.document is self.source.document for edit in edits):
            return None
        return edits

    def argument(self, *names: str) -> Setting | None:
        """A field of the trainer's config or of ``ModelConfig``: a flag, a key of the config file, or the default."""
        from lintfit.sources.script.interpreter.values import plain

        reading = self.source.reading
        for made in reading.parsed:
            value = reading.attribute(made, *names)
            if value is not None:
                return self._placed(Setting(names[0], plain(value), reading.calls.provenance(value.origin)))
        return None

    def write_argument(self, name: str, value: Any) -> tuple[FileEdit, ...] | None:
        """Changes or adds the flag, or the key of the ``--config`` file where that decides."""
        found = self.argument(name)
        place = found.provenance.place if found is not None else None
        if place is not None and isinstance(place.document, DataDocument):
            return write_key(place.document, name, value)
        return self.launch.set_flag(name, spelled(value, none="None"))

    def spelled(self, argument: str, value: Any) -> str:
        """An argument as a flag: ``--bf16 true``."""
        return f"--{argument} {spelled(value, none='None')}"

    def _placed(self, setting: Setting) -> Setting:
        """What stands in no file of the user's follows from how TRL's own script goes."""
        place = setting.provenance.place
        if place is None or place.document is not self.source.document:
            return setting
        if setting.name == "quantization":
            for name in ("load_in_4bit", "load_in_8bit"):
                asked = self.argument(name)
                if asked is not None and asked.value is True and asked.provenance.kind == "file":
                    return replace(setting, provenance=asked.provenance)
        return replace(setting, provenance=Provenance("derived", f"trl {self.launch.action} does so"))


def read_recipe(
    launch: Launch, open_file: OpenFile, world: World, versions: Mapping[str, str] | None = None
) -> TrlRecipe | None:
    """A ``trl`` launch with the file of its ``--config``; None for a command that does not train."""
    from lintfit.documents.python_reader import read_python
    from lintfit.sources.script.reading.collector import version_numbers
    from lintfit.sources.script.source import read_script

    kind = TRAINERS.get(launch.action or "")
    if kind is None:
        return None
    numbers = version_numbers((versions or {}).get("trl"))
    dtype = "torch_dtype" if numbers is not None and numbers < _RENAMED else "dtype"
    file = FileText(launch.document.path.parent / f"trl-{launch.action}.py", _SCRIPT.format(kind=kind, dtype=dtype))
    source = read_script(
        read_python(file),
        flags=launch.flags,
        env=launch.environment,
        versions=versions or {},
        has_launch=True,
        add_flag=launch.set_flag,
        open_data=_opener(open_file),
    )
    return TrlRecipe(launch, source)


def _opener(open_file: OpenFile) -> Callable[[str, Kind], DataDocument | None]:
    def opened(name: str, kind: Kind) -> DataDocument | None:
        document = open_file(name)
        return document if isinstance(document, DataDocument) and document.kind is kind else None

    return opened
