"""Which of the things that the files say really holds, following the libraries' own precedence.

Each function resolves one group of settings. The winner remembers what it beat (``overrode``). ``"auto"`` never wins:
it gives way to the next in line, as the HF integration of DeepSpeed has it. What is written but cannot be told
(``UNKNOWN``) does win, because the run will not use the next in line either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lintfit.options import Options
from lintfit.settings import AUTO, UNKNOWN, Provenance, Setting

if TYPE_CHECKING:
    from lintfit.sources.accelerate import AccelerateSource
    from lintfit.sources.deepspeed import DeepSpeedSource
    from lintfit.sources.launcher import Launch
    from lintfit.sources.recipe import Recipe
    from lintfit.sources.script import ScriptSource

FROM_SCRIPT = (
    "method", "lora_rank", "lora_targets", "lora_modules_to_save", "lora_dropout", "lora_dtype", "use_dora",
    "quantization", "gradient_checkpointing", "use_reentrant", "activation_offload", "attention", "padded_batches",
    "loss", "use_cache", "weights_dtype", "trainer", "reference_model", "num_generations", "max_completion_length",
    "max_prompt_length", "use_vllm", "vllm_mode", "vllm_gpu_memory_utilization", "ds3_gather_for_generation",
    "vllm_enable_sleep_mode", "steps_per_generation", "reward_model", "value_model", "response_length",
    "rollout_batch_size", "mini_batches",
)  # fmt: skip
"""Settings that only a script (with the flags of its launch line) decides."""

_TRAINERS = frozenset({"transformers", "trl", "lightning", "pytorch_lightning", "unsloth", "peft"})
"""Packages whose trainers' ways are known."""

CHECKED_BY_HF = (
    "learning_rate", "adam_beta1", "adam_beta2", "adam_epsilon", "weight_decay", "warmup_steps",
)  # fmt: skip
"""Settings that DeepSpeed's JSON and TrainingArguments both state, without influence on memory."""


@dataclass(frozen=True, slots=True, eq=False)
class Sources:
    """What is known of one run before anything is resolved."""

    options: Options
    launch: Launch | None = None
    script: ScriptSource | None = None
    recipe: Recipe | None = None
    deepspeed: DeepSpeedSource | None = None
    accelerate: AccelerateSource | None = None

    def said(self, dialect: str, name: str) -> Setting | None:
        """What one of the documents says of a setting.

        ``dialect`` is ``launch``, ``script``, ``recipe``, ``deepspeed`` or ``accelerate``. A recipe takes the place of
        the script that its front end has no need of.
        """
        source = getattr(self, dialect)
        if source is None and dialect == "script":
            source = self.recipe
        return source.settings.get(name) if source is not None else None

    def flag(self, name: str) -> Setting | None:
        """What lintfit's own command line says."""
        return self._option(name, lambda origin: origin.startswith("--"))

    def config(self, name: str) -> Setting | None:
        """What lintfit's config file says."""
        return self._option(name, lambda origin: not origin.startswith("--"))

    def _option(self, name: str, wanted: Callable[[str], bool]) -> Setting | None:
        options = self.options
        if not options.stated(name) or not wanted(options.origins[name]):
            return None
        return Setting(name, getattr(options, name), options.provenance(name))

    @property
    def training_is_read(self) -> bool:
        """Whether the training is in sight: a recipe, or a script with a trainer, an engine or a backward pass."""
        if self.script is None:
            return self.recipe is not None
        facts = self.script.facts
        if facts.training_arguments is not None or facts.initialize is not None or facts.accelerator is not None:
            return True
        # A trainer of a package that is out of sight hides how it trains; a loop of the script's own does not.
        return facts.trains and (facts.trainer is None or facts.trainer.function.partition(".")[0] in _TRAINERS)

    @property
    def uses_trainer(self) -> bool:
        """Whether an HF Trainer (or a subclass such as TRL's) runs the loop and reads the DeepSpeed JSON."""
        if self.recipe is not None:
            return self.recipe.uses_trainer
        return self.script is not None and self.script.facts.training_arguments is not None


def resolve(sources: Sources) -> dict[str, Setting]:
    """The effective settings of a run by name."""
    settings: dict[str, Setting] = {}

    def put(setting: Setting | None) -> None:
        if setting is not None:
            settings[setting.name] = setting

    for name in ("model", "seq_len"):
        put(first(name, sources.flag(name), sources.said("script", name), sources.config(name)))
    for name in FROM_SCRIPT:
        put(sources.said("script", name))
    put(_cast_by_launcher(sources))
    put(number_of_gpus(sources, sources.said("recipe", "gpus")))
    put(_nodes(sources))
    put(_gpu(sources))
    put(_engine(sources, settings))
    if settings["engine"].value == "fsdp":
        put(_checkpointed_by_fsdp(sources))
    _zero(sources, settings, put)
    put(_mixed_precision(sources, settings))
    put(_micro_batch_size(sources))
    put(_accumulation(sources, settings))
    put(_optimizer(sources, settings))
    put(first("max_grad_norm", *_config_then_script(sources, "max_grad_norm")))
    put(sources.said("deepspeed", "train_batch_size"))
    put(_sequence_parallel(sources, settings))
    put(_fsdp(sources))
    for name in CHECKED_BY_HF:
        put(first(name, sources.said("script", name), sources.said("deepspeed", name)))
    return settings


def first(name: str, *candidates: Setting | None) -> Setting | None:
    """The first candidate that says something, over all that come after it; "auto" says nothing."""
    said = [candidate for candidate in candidates if candidate is not None]
    for index, candidate in enumerate(said):
        if candidate.value is not AUTO:
            beaten = (*said[:index], *said[index + 1 :])
            return Setting(name, candidate.value, candidate.provenance, (*candidate.overrode, *beaten))
    return None


def derived(name: str, value: Any, why: str, *beaten: Setting | None) -> Setting:
    """A setting that follows from others."""
    return Setting(name, value, Provenance("derived", why), tuple(b for b in beaten if b is not None))


def default(name: str, value: Any, whose: str) -> Setting:
    """A library's default."""
    return Setting(name, value, Provenance.default(whose))


def number_of_gpus(sources: Sources, recipe: Setting | None) -> Setting | None:
    """All processes of a run: lintfit's flag, else what the files say, else lintfit's config."""
    launch, config = sources.said("launch", "gpus"), sources.said("accelerate", "gpus")
    alone = _one_process(sources, recipe)
    if alone is not None:
        return alone
    stated = first("gpus", sources.flag("gpus"), recipe, _started_by_script(sources), launch, config)
    if stated is not None and stated.known:
        return stated
    configured = sources.config("gpus")
    if configured is not None:
        return configured.over(stated)
    return stated


def _one_process(sources: Sources, recipe: Setting | None) -> Setting | None:
    """``--gpus 4`` over a launch by plain python: it starts one process, however many GPUs there are.

    A Trainer that sees several then copies the model to each of them in every step (``nn.DataParallel``,
    transformers 5.23 ``Trainer._wrap_model``) where ``device_map`` has not spread it.
    """
    asked, launch = sources.flag("gpus"), sources.launch
    if asked is None or asked.value == 1 or recipe is not None or launch is None or launch.launcher != "python":
        return None
    own = launch.settings.get("gpus")
    if own is None or own.provenance.kind != "default" or own.value != 1 or launch.by_mpi:
        return None
    if "nodes" in launch.settings or _started_by_script(sources) is not None or _spawns(sources):
        return None
    why = f"python starts one process, which is judged on its first GPU of {asked.value}"
    return Setting("gpus", 1, Provenance("assumed", why), (asked,))


def _spawns(sources: Sources) -> bool:
    """Whether the script itself starts processes (``torch.multiprocessing.spawn``, ``notebook_launcher``)."""
    names = ("spawn", "notebook_launcher", "start_processes", "Process")
    return sources.script is not None and bool(sources.script.calls(*names))


def _started_by_script(sources: Sources) -> Setting | None:
    """Processes that the script starts itself (Fabric's ``devices``), where no launcher starts more than one."""
    stated = sources.script.settings.get("gpus") if sources.script is not None else None
    launch = sources.launch
    if stated is None or (launch is not None and launch.launcher != "python"):
        return None
    if launch is not None and "nodes" in launch.settings:
        guessed = launch.settings["gpus"].provenance.kind == "assumed"
        return Setting("gpus", UNKNOWN, stated.provenance) if guessed else None
    if launch is not None and launch.settings["gpus"].provenance.kind != "default":
        return None
    if stated.value is not AUTO:
        return stated
    visible = launch.settings.get("visible_devices") if launch is not None else None
    if visible is not None and isinstance(visible.value, str):
        count = len([device for device in visible.value.split(",") if device.strip()])
        return Setting("gpus", count, visible.provenance).over(stated)
    return Setting("gpus", UNKNOWN, stated.provenance)


def _gpu(sources: Sources) -> Setting | None:
    """The kind of card: what a batch system calls ``a100`` comes in sizes, and a config that names one is meant."""
    launch, config = sources.said("launch", "gpu"), sources.config("gpu")
    if launch is not None and config is not None and _bare(launch.value) in _bare(config.value):
        return first("gpu", sources.flag("gpu"), config, launch)
    return first("gpu", sources.flag("gpu"), launch, config)


def _bare(name: object) -> str:
    return "".join(letter for letter in str(name).lower() if letter.isalnum())


def _nodes(sources: Sources) -> Setting | None:
    files = (sources.said(dialect, "nodes") for dialect in ("recipe", "launch", "accelerate"))
    stated = first("nodes", sources.flag("nodes"), *files)
    if stated is not None and stated.known:
        return stated
    return sources.config("nodes") or stated


def _engine(sources: Sources, settings: Mapping[str, Setting]) -> Setting:
    launched = first("engine", sources.said("launch", "engine"), sources.said("accelerate", "engine"))
    in_script = sources.said("script", "engine")
    stated = first("engine", in_script, launched)
    if stated is not None and (stated.value in ("deepspeed", "fsdp") or in_script is not None):
        return stated
    handed = first("deepspeed", sources.said("script", "deepspeed"), sources.said("launch", "deepspeed"))
    if handed is not None and handed.value not in (None, False, ""):
        return Setting("engine", "deepspeed", handed.provenance)
    if sources.deepspeed is not None:
        return derived("engine", "deepspeed", f"{sources.deepspeed.document.path} configures DeepSpeed")
    fsdp = sources.said("script", "fsdp")
    if fsdp is not None and fsdp.value not in (None, False, "", UNKNOWN):
        return Setting("engine", "fsdp", fsdp.provenance)
    launched_with = sources.said("launch", "accelerate_config")
    if sources.accelerate is None and launched_with is not None and stated is None:
        return Setting("engine", UNKNOWN, launched_with.provenance)
    gpus = settings.get("gpus")
    if sources.launch is not None and not sources.training_is_read:
        return derived("engine", UNKNOWN, "the script that is launched decides it")
    if gpus is not None and isinstance(gpus.value, int) and gpus.value > 1:
        found = derived("engine", "ddp", f"{gpus.value} processes without DeepSpeed or FSDP", stated)
    elif gpus is not None and not gpus.known and sources.launch is not None and sources.launch.launcher != "python":
        found = derived("engine", "ddp", "one process on each GPU without DeepSpeed or FSDP")
    else:
        found = derived("engine", "single", "one process")
    if handed is not None and handed.provenance.kind == "assumed":
        return Setting("engine", found.value, handed.provenance)
    return found


def _zero(sources: Sources, settings: dict[str, Setting], put: Callable[[Setting | None], None]) -> None:
    engine = settings["engine"]
    if engine.value not in ("deepspeed", UNKNOWN):
        return
    inline = sources.said("script", "deepspeed")
    if sources.deepspeed is None and inline is not None and inline.provenance.kind != "derived" and _is_inline(inline):
        for name, fallback in (("zero_stage", 0), ("offload_optimizer", "none"), ("offload_param", "none")):
            put(first(name, sources.said("script", name)) or default(name, fallback, "DeepSpeed's default"))
        return
    missing = engine if engine.value is UNKNOWN else _missing_file(sources)
    if missing is not None:
        for name in ("zero_stage", "offload_optimizer", "offload_param"):
            put(Setting(name, UNKNOWN, missing.provenance))
        return
    for name, fallback in (("zero_stage", 0), ("offload_optimizer", "none"), ("offload_param", "none")):
        candidates = [
            sources.said("deepspeed", name),
            sources.said("script", name),
            sources.said("launch", name),
            sources.said("accelerate", name),
        ]
        if sources.deepspeed is not None and candidates[0] is None:
            # A file that is silent means DeepSpeed's own default; the launcher's values fill "auto" only.
            candidates.insert(0, default(name, fallback, "DeepSpeed's default"))
        plugin = 2 if name == "zero_stage" else "none"
        put(first(name, *candidates) or default(name, plugin, "Accelerate's DeepSpeedPlugin default"))


def _is_inline(handed: Setting) -> bool:
    return isinstance(handed.value, Mapping)


def _sequence_parallel(sources: Sources, settings: Mapping[str, Setting]) -> Setting | None:
    """Ranks that share a sequence: DeepSpeed divides the world by them before it multiplies the batch sizes."""
    said = sources.said("deepspeed", "sequence_parallel")
    gpus = settings["gpus"].value if "gpus" in settings else None
    if settings["engine"].value != "deepspeed" or said is None or type(said.value) is not int or said.value < 2:
        return None
    return said if not isinstance(gpus, int) or gpus % said.value == 0 else None


def _fsdp(sources: Sources) -> Setting | None:
    """How FSDP shards: a plugin or strategy of the script, else the launcher. A Trainer's own comes last."""
    in_script, launched = sources.said("script", "fsdp"), _launched_fsdp(sources)
    if sources.said("script", "engine") is not None:
        return first("fsdp", in_script, launched)
    return first("fsdp", launched, in_script)


def _checkpointed_by_fsdp(sources: Sources) -> Setting | None:
    """FSDP's own activation checkpointing, asked for by the launcher: on where either side switches it on."""
    name = "gradient_checkpointing"
    launched = first(name, sources.said("launch", name), sources.said("accelerate", name))
    in_script = sources.said("script", name)
    if launched is None or launched.value is not True or (in_script is not None and in_script.value is True):
        return None
    return launched.over(in_script)


def _launched_fsdp(sources: Sources) -> Setting | None:
    """Accelerate's file with the flags that were given beside it (``launch.py:_validate_launch_command``)."""
    file = sources.said("accelerate", "fsdp")
    if file is None:
        return sources.said("launch", "fsdp")
    given = {name: sources.said("launch", f"fsdp_{name}") for name in ("version", "strategy", "cpu_offload")}
    flags = {name: flag for name, flag in given.items() if flag is not None}
    if not flags:
        return file
    value = replace(file.value, **{name: flag.value for name, flag in flags.items()})
    return Setting("fsdp", value, next(iter(flags.values())).provenance).over(file)


def _cast_by_launcher(sources: Sources) -> Setting | None:
    """``fabric run --precision bf16-true`` casts the module, whatever it was loaded in."""
    cast = sources.said("launch", "weights_dtype")
    return cast.over(sources.said("script", "weights_dtype")) if cast is not None else None


def _missing_file(sources: Sources) -> Setting | None:
    """What names a config that was not found where nothing but that config could tell of ZeRO."""
    if sources.deepspeed is not None:
        return None
    named = (
        sources.said("script", "deepspeed"),
        sources.said("launch", "deepspeed"),
        sources.said("launch", "deepspeed_config_file"),
        sources.said("accelerate", "deepspeed_config_file"),
    )
    said = (setting for setting in named if setting is not None and not _is_inline(setting))
    return next((setting for setting in said if setting.value not in (None, False, "")), None)


def _mixed_precision(sources: Sources, settings: Mapping[str, Setting]) -> Setting | None:
    argument = _precision_arguments(sources)
    environment = first(
        "mixed_precision", sources.said("launch", "mixed_precision"), sources.said("accelerate", "mixed_precision")
    )
    in_code = sources.said("script", "mixed_precision")
    if settings["engine"].value == "deepspeed" and sources.deepspeed is not None:
        return _deepspeed_precision(sources, argument, in_code, environment)
    if sources.uses_trainer:
        if argument is not None and argument.value == "no" and argument.provenance.kind == "default":
            return first("mixed_precision", environment, argument)
        if argument is None and environment is not None and _partly_read(sources):
            return _unless_said(environment)
        return first("mixed_precision", argument, environment)
    if in_code is None and environment is not None and sources.launch is not None and not sources.training_is_read:
        return _unless_said(environment)
    return first("mixed_precision", in_code, environment) or argument


def _unless_said(environment: Setting) -> Setting:
    """The launcher's precision where a trainer's arguments that are not known may say another."""
    why = "the training's own arguments are not known; without a precision among them the launcher's holds"
    provenance = Provenance("assumed", why, environment.provenance.place)
    return Setting(environment.name, environment.value, provenance, (environment,))


def _partly_read(sources: Sources) -> bool:
    """Whether the trainer's arguments may say more than is known of them: a config file that is not at hand."""
    made = sources.script.facts.training_arguments if sources.script is not None else None
    return made is not None and made.spreads


def _precision_arguments(sources: Sources) -> Setting | None:
    """``bf16`` and ``fp16`` of TrainingArguments as one setting; None where there are no such arguments."""
    bf16, fp16 = sources.said("script", "bf16"), sources.said("script", "fp16")
    for name, flag in (("bf16", bf16), ("fp16", fp16)):
        if flag is not None and flag.value is True:
            return Setting("mixed_precision", name, flag.provenance)
    for flag in (bf16, fp16):
        if flag is not None and flag.value is UNKNOWN:
            return Setting("mixed_precision", UNKNOWN, flag.provenance)
    stated = next((flag for flag in (bf16, fp16) if flag is not None and flag.provenance.kind == "file"), bf16 or fp16)
    return Setting("mixed_precision", "no", stated.provenance) if stated is not None else None


def _deepspeed_precision(
    sources: Sources, argument: Setting | None, in_code: Setting | None, environment: Setting | None
) -> Setting:
    bf16, fp16 = sources.said("deepspeed", "bf16"), sources.said("deepspeed", "fp16")
    others = (argument, in_code, environment)
    for name, block in (("bf16", bf16), ("fp16", fp16)):
        if block is not None and block.value is True:
            return Setting("mixed_precision", name, block.provenance).over(*others)
    for block in (bf16, fp16):
        if block is not None and block.value is UNKNOWN:
            return Setting("mixed_precision", UNKNOWN, block.provenance)
    outside = argument if sources.uses_trainer else first("mixed_precision", in_code, environment)
    if outside is not None and outside.value in ("bf16", "fp16"):
        block = bf16 if outside.value == "bf16" else fp16
        if block is None or block.value is AUTO:
            return Setting("mixed_precision", outside.value, outside.provenance).over(block)
    if outside is not None and outside.value is UNKNOWN:
        return outside
    block = next((b for b in (bf16, fp16) if b is not None), None)
    if sources.launch is not None and not sources.training_is_read and AUTO in (b.value for b in (bf16, fp16) if b):
        return derived("mixed_precision", UNKNOWN, "the training that fills in auto is not read", block)
    if block is not None:
        why = "neither bf16 nor fp16 is switched on"
        return (
            Setting("mixed_precision", "no", block.provenance).over(*others)
            if block.value is False
            else derived("mixed_precision", "no", why, block, *others)
        )
    return default("mixed_precision", "no", "DeepSpeed's default without a bf16 or fp16 block").over(*others)


def _config_then_script(sources: Sources, name: str) -> tuple[Setting | None, ...]:
    """Trainer's arguments fill "auto" and must equal a literal; without a Trainer the JSON decides."""
    script, config = sources.said("script", name), sources.said("deepspeed", name)
    yaml = first(name, sources.said("launch", name), sources.said("accelerate", name))
    return (script, config, yaml) if sources.uses_trainer else (config, yaml, script)


def _micro_batch_size(sources: Sources) -> Setting | None:
    script, config = sources.said("script", "micro_batch_size"), sources.said("deepspeed", "micro_batch_size")
    return _unless_changed(sources, first("micro_batch_size", script, config))


def _unless_changed(sources: Sources, setting: Setting | None) -> Setting | None:
    """A number of DeepSpeed's file where the script that reads the file is not at hand: it may put in another."""
    unread = sources.launch is not None and sources.script is None and sources.recipe is None
    if setting is None or not unread or setting.provenance.kind != "file":
        return setting
    why = "the script that reads this file is not at hand and may change it"
    return replace(setting, provenance=Provenance("assumed", why, setting.provenance.place))


def _accumulation(sources: Sources, settings: Mapping[str, Setting]) -> Setting | None:
    name = "gradient_accumulation_steps"
    plugin = sources.said("script", "plugin_accumulation")
    if plugin is not None and plugin.value is not AUTO and sources.said("deepspeed", name) is None:
        return first(name, plugin, *_config_then_script(sources, name)[:-1])
    found = first(name, *_config_then_script(sources, name))
    if not sources.uses_trainer and sources.deepspeed is not None and sources.said("deepspeed", name) is None:
        inferred = _inferred_accumulation(sources, settings)
        return inferred or default(name, 1, "DeepSpeed's default").over(found)
    return _unless_changed(sources, found)


def _inferred_accumulation(sources: Sources, settings: Mapping[str, Setting]) -> Setting | None:
    """DeepSpeed works the third of the batch triple out from the other two."""
    total = sources.said("deepspeed", "train_batch_size")
    samples, micro, gpus = (_whole(s) for s in (total, settings.get("micro_batch_size"), settings.get("gpus")))
    if samples is None or micro is None or gpus is None:
        return None
    steps, rest = divmod(samples, micro * gpus)
    if steps == 0 or rest:
        why = Provenance("derived", "DeepSpeed stops: train_batch_size is no multiple of micro-batch * ranks")
        return Setting("gradient_accumulation_steps", UNKNOWN, why, (total,) if total is not None else ())
    return derived("gradient_accumulation_steps", steps, "train_batch_size / micro-batch / ranks", total)


def _whole(setting: Setting | None) -> int | None:
    value = setting.value if setting is not None else None
    return value if isinstance(value, int) and value > 0 else None


def _optimizer(sources: Sources, settings: Mapping[str, Setting]) -> Setting | None:
    in_config, in_script = sources.said("deepspeed", "optimizer"), sources.said("script", "optimizer")
    if in_config is not None:
        return first("optimizer", in_config, in_script)
    offload = settings.get("offload_optimizer")
    forced = sources.deepspeed is None or sources.deepspeed.config.get("zero_force_ds_cpu_optimizer", True)
    if offload is not None and offload.value in ("cpu", "nvme") and forced:
        return derived("optimizer", "deepspeed_cpu_adam", "an offloaded optimizer runs as DeepSpeedCPUAdam", in_script)
    return in_script
