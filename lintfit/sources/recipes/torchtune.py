"""torchtune's launches as settings: ``tune run [torchrun's options] RECIPE --config CONFIG key=value``.

Keys, defaults and what follows from them are those of the recipes' code (``recipes/*.py``, torchtune 0.6.1 and 0.7.0):
a recipe for a single device or one that shards with FSDP, in the dtype that the config states, without autocast.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from lintfit.catalog.torchtune import Recipe, registry
from lintfit.settings.model import UNKNOWN, Provenance, Setting, is_count
from lintfit.settings.values import Fsdp
from lintfit.sources.recipes import torchtune_parts as parts
from lintfit.sources.recipes.base import OpenFile, World
from lintfit.sources.recipes.keys import Keys, OfKeys, Stated
from lintfit.sources.recipes.torchtune_beside import trained_for
from lintfit.sources.recipes.torchtune_keys import COMPONENT, read_keys, write
from lintfit.sources.recipes.torchtune_refused import refused
from lintfit.sources.recipes.torchtune_usual import usual_command as usual_command
from lintfit.versions import before

if TYPE_CHECKING:
    from lintfit.documents.model import FileEdit
    from lintfit.sources.flag_grammars.model import Refused
    from lintfit.sources.launchers.launch import Launch

_FSDP2 = "0.3"
"""The torchtune whose distributed recipes are the first on FSDP 2."""

_NUMBERS = {"micro_batch_size": "batch_size", "seq_len": "tokenizer.max_seq_len", "lora_rank": "model.lora_rank"}
_PLAIN = {
    **_NUMBERS,
    "gradient_accumulation_steps": "gradient_accumulation_steps",
    "gradient_checkpointing": "enable_activation_checkpointing",
}
"""Keys that say a setting as it is."""

_WORDS = {
    "per_device_train_batch_size": "batch_size",
    "gradient_accumulation_steps": "gradient_accumulation_steps",
    "gradient_checkpointing": "enable_activation_checkpointing",
    "max_length": "tokenizer.max_seq_len",
}
"""torchtune's keys by names of ``TrainingArguments``."""


@dataclass(frozen=True, eq=False)
class TorchtuneRecipe(OfKeys):
    """One launch of torchtune with its config."""

    launch: Launch
    name: str
    """The recipe's, as the launch line says it."""
    keys: Keys
    world: World = field(repr=False)
    versions: Mapping[str, str] = field(repr=False)
    dialect: str = "torchtune"
    trains: bool = True
    uses_trainer: bool = False
    uses_trl: bool = False
    arguments_place: None = None

    @property
    def elsewhere(self) -> str | None:
        """The config that decides the run and is not at hand, by a name that stands for no file here."""
        missing = self.keys.missing
        if missing is None or self.trained.value not in (None, UNKNOWN):
            return None
        name = str(missing.value)
        at_hand = name.endswith((".yaml", ".yml"))
        return None if at_hand else f"the config {name}, which is neither among these files nor in torchtune's registry"

    @cached_property
    def known(self) -> Recipe | None:
        """The recipe of the registry; None for one of somebody's own."""
        return registry().recipe(self.name)

    @property
    def distributed(self) -> bool:
        """Whether it shards over several processes; of one's own, whether torchrun starts it."""
        if self.known is not None:
            return self.known.distributed
        return bool(self.launch.invocation.options)

    @cached_property
    def refused(self) -> tuple[Refused, ...]:
        return tuple(refused(self.launch, self.known, self.keys.config))

    # -- writing ----------------------------------------------------------------------------------------------------

    @property
    def adjustable(self) -> frozenset[str]:
        names = {"micro_batch_size", "gradient_accumulation_steps", "gradient_checkpointing", "seq_len"}
        if self.ppo or self.found("optimizer_in_bwd").value is True:
            # A step inside the backward pass refuses to accumulate.
            names -= {"micro_batch_size", "gradient_accumulation_steps"}
        if self.builder is not None and self.builder.adapts and not self._quantizes:
            names |= {"quantization"}
        if self.settings["weights_dtype"].value == "fp32":
            names.add("weights_dtype")
        optimizer = self.component("optimizer")
        if optimizer.value in parts.FUSES and self.keys.config is not None and optimizer.flag is None:
            names.add("optimizer")
        if self.distributed:
            names.add("fsdp")
        return frozenset(names)

    def write(self, name: str, value: Any) -> tuple[FileEdit, ...] | None:
        """Changes the override where one decides, else the config's key."""
        match name:
            case "quantization" if self._quantizes:
                return ()
            case _ if name not in self.adjustable and name != "gpus":
                return None
            case _ if name in _PLAIN:
                return write(self.keys, _PLAIN[name], value)
            case "weights_dtype" if value == "bf16":
                return write(self.keys, "dtype", value)
            case "quantization":
                return self._write_quantizing()
            case "optimizer":
                return self._write_optimizer(value)
            case "fsdp" if isinstance(value, Fsdp):
                return self._write_fsdp(value)
            case "gpus":
                return self.launch.set_option("nproc_per_node", str(value)) if self._nodes == 1 else None
        return None

    def _write_quantizing(self) -> tuple[FileEdit, ...] | None:
        now = self.component("model").value
        wanted = parts.quantizing(now) if isinstance(now, str) else None
        return write(self.keys, f"model.{COMPONENT}", wanted) if wanted is not None else None

    def _write_optimizer(self, value: Any) -> tuple[FileEdit, ...] | None:
        """Another class; bitsandbytes' take no ``fused``."""
        from lintfit.sources.data_writer import REMOVE, edits

        found, document, wanted = self.component("optimizer"), self.keys.config, parts.WRITTEN.get(value)
        if wanted is None or document is None or found.flag is not None:
            return None
        given = {name: found for name in ("fused", "foreach") if document.root and document.root.get("optimizer", name)}
        return edits(document, {("optimizer", COMPONENT): wanted, **{("optimizer", name): REMOVE for name in given}})

    def _write_fsdp(self, value: Fsdp) -> tuple[FileEdit, ...] | None:
        if value.cpu_offload != self.keys.found("fsdp_cpu_offload").value:
            return write(self.keys, "fsdp_cpu_offload", value.cpu_offload)
        whole = value.strategy == "FULL_SHARD"
        if whole != self.keys.found("fsdp_reshard_after_forward").value:
            return write(self.keys, "fsdp_reshard_after_forward", whole)
        return ()

    def argument(self, *names: str) -> None:
        """None: torchtune has no trainer with arguments."""

    def write_argument(self, name: str, value: Any) -> None:
        """None: torchtune has no trainer with arguments."""

    def spelled(self, argument: str, value: Any) -> str | None:
        """torchtune's own word for an argument of ``TrainingArguments``, where it has one."""
        if argument == "bf16":
            return "dtype: bf16" if value is True else None
        key = _WORDS.get(argument)
        return f"{key}: {value}" if key is not None else None

    # -- reading ----------------------------------------------------------------------------------------------------

    def reads(self, key: str) -> bool:
        """Whether the recipe's code reads a key at the top; one of somebody's own is taken to."""
        return self.known is None or key.partition(".")[0] in self.known.keys

    def found(self, key: str) -> Stated:
        """What a key comes to: by default where the recipe does not read it."""
        return self.keys.found(key) if self.reads(key) else self.keys.default(key)

    def component(self, key: str) -> Stated:
        return self.keys.found(f"{key}.{COMPONENT}")

    @property
    def ppo(self) -> bool:
        """Whether it trains a policy by PPO."""
        return "ppo" in self.name

    @property
    def trained(self) -> Stated:
        return self.component("policy_model" if self.ppo else "model")

    @property
    def builder(self) -> parts.Builder | None:
        return parts.builder(self.trained.value)

    @property
    def _quantizes(self) -> bool:
        built = self.builder
        return built is not None and (built.quantizes or self.keys.found("model.quantize_base").value is True)

    @property
    def _nodes(self) -> int:
        nodes = self.launch.settings.get("nodes")
        return nodes.value if nodes is not None and is_count(nodes.value) else 1

    @cached_property
    def _gpus(self) -> Setting | None:
        """The processes that the recipe itself says; None where the launch line does."""
        if not self.launch.assumed:
            return None
        if not self.distributed:
            return Setting("gpus", 1, Provenance("derived", f"{self.name} runs on one device"))
        asked = self.launch.settings.get("gpus")
        open_ = Setting("gpus", UNKNOWN, Provenance("assumed", "one process on each GPU"))
        there_are = self.world(open_)
        if asked is None or "nproc_per_node" not in self.launch.invocation.options:
            return open_
        if there_are is not None and is_count(there_are.value):
            return open_
        return Setting("gpus", asked.value, Provenance("assumed", "by the command in the config's head"))

    @cached_property
    def _ranks(self) -> int | None:
        found = self.world(self._gpus)
        return found.value if found is not None and is_count(found.value) else None

    def _settings(self) -> Iterator[Setting]:
        yield from self._model()
        yield from self._precision()
        yield from self._method()
        yield from self._batch()
        yield from self._parallel()
        yield from self._memory()
        yield self._optimizer()
        yield from trained_for(self)
        yield Setting("attention", "sdpa", Provenance.default("torchtune calls scaled_dot_product_attention"))
        yield Setting("padded_batches", False, Provenance.default("torchtune hands over no padding mask"))
        yield Setting("front_end", "torchtune", Provenance.default("torchtune trains models of its own"))
        yield Setting("use_cache", False, Provenance.default("torchtune trains without a cache"))

    def _model(self) -> Iterator[Setting]:
        """The checkpoint by its folder where that has the builder's shape, else the one that the builder is for."""
        found, built = self.trained, self.builder
        known = built.model if built is not None else None
        where = self.keys.get("checkpointer.checkpoint_dir")
        if (
            where is not None
            and isinstance(where.value, str)
            and found.value is not None
            and parts.fits(where.value, known)
        ):
            yield where.setting("model", where.value)
        elif found.value is not None:
            yield found.setting("model", known if known is not None else UNKNOWN)

    def _precision(self) -> Iterator[Setting]:
        found = self.keys.found("dtype")
        dtype: Any = parts.DTYPES.get(str(found.value), UNKNOWN)
        if found.value is None:
            dtype = "fp32"  # get_dtype: torch's default
        yield found.setting("weights_dtype", dtype)
        why = Provenance("derived", "torchtune trains in the dtype of the weights, without autocast", _place(found))
        yield Setting("mixed_precision", "no", why)
        if self.builder is not None and self.builder.adapts:
            yield found.setting("lora_dtype", dtype)

    def _method(self) -> Iterator[Setting]:
        found, built = self.trained, self.builder
        if built is None:
            yield found.setting("method", UNKNOWN)
            return
        yield found.setting("method", "lora" if built.adapts else "full")
        if not built.adapts:
            yield found.setting("quantization", None)
            return
        quantizes = self.keys.found("model.quantize_base")
        by_key = "model.quantize_base" in self.keys and not built.quantizes
        # torchao's NF4Tensor quantizes its scales, too (to_nf4: blocks of 64 weights, and of 256 scales).
        name = "nf4-double" if self._quantizes else UNKNOWN if quantizes.value is UNKNOWN else None
        yield (quantizes if by_key else found).setting("quantization", name)
        if self._quantizes:
            yield Setting("kbit_upcast", "none", Provenance.default("torchtune casts no weights to fp32"))
        yield self.keys.number("lora_rank", "model.lora_rank")
        yield self.keys.number("lora_dropout", "model.lora_dropout")
        yield self.keys.found("model.use_dora").setting("use_dora", self._truth("model.use_dora"))
        modules, mlp = self.keys.found("model.lora_attn_modules"), self._truth("model.apply_lora_to_mlp")
        output = self._truth("model.apply_lora_to_output")
        told = isinstance(modules.value, list) and UNKNOWN not in modules.value
        known = told and isinstance(mlp, bool) and isinstance(output, bool)
        yield modules.setting("lora_targets", parts.adapted(modules.value, mlp, output) if known else UNKNOWN)

    def _batch(self) -> Iterator[Setting]:
        asked = self.found("gradient_accumulation_steps")
        steps = self.keys.number("gradient_accumulation_steps", "gradient_accumulation_steps")
        if asked.value is None and not self.reads("gradient_accumulation_steps"):
            steps = asked.setting("gradient_accumulation_steps", 1)
        micro = self.keys.number("micro_batch_size", "batch_size")
        if self.ppo:
            samples = self.keys.number("micro_batch_size", "ppo_batch_size")
            both = is_count(samples.value) and is_count(steps.value)
            share = samples.value // steps.value if both else UNKNOWN
            micro = Setting("micro_batch_size", share, samples.provenance)
        yield micro
        yield steps
        length = self.keys.found("tokenizer.max_seq_len")
        if length.value is not None:
            yield self.keys.number("seq_len", "tokenizer.max_seq_len")
        yield self.keys.found("dataset.packed").setting("packing", self._truth("dataset.packed"))
        norm = self.found("clip_grad_norm")
        if norm.value is None:
            yield norm.setting("max_grad_norm", 0.0)
        else:
            yield norm.setting("max_grad_norm", norm.value if isinstance(norm.value, (int, float)) else UNKNOWN)

    def _parallel(self) -> Iterator[Setting]:
        if self._gpus is not None:
            yield self._gpus
            if "nodes" in self.launch.settings:
                yield self.launch.settings["nodes"]
        if self.distributed and self.known is None:
            yield Setting("engine", UNKNOWN, Provenance("derived", f"{self.name} is no recipe of torchtune's"))
        elif self.distributed and self._ranks != 1:
            strategy = self.found("fsdp_reshard_after_forward")
            version: Literal[1, 2] = 1 if before(self.versions.get("torchtune"), _FSDP2) is True else 2
            kind = "SHARD_GRAD_OP" if strategy.value is False else "FULL_SHARD"
            fsdp = Fsdp(version, kind, self.found("fsdp_cpu_offload").value is True)
            why = Provenance("derived", f"{self.name} shards with FSDP")
            yield Setting("fsdp", fsdp, why)
            yield Setting("engine", "fsdp", why)
            yield from self._splits()

    def _splits(self) -> Iterator[Setting]:
        split = {
            "tensor_parallel": "tensor_parallel_dim",
            "context_parallel": "context_parallel_dim",
            "replicas": "data_parallel_replicate_dim",
        }
        for name, key in split.items():
            found = self.found(key)
            if found.value not in (None, 1):
                yield found.setting(name, found.value if is_count(found.value) else UNKNOWN)

    def _memory(self) -> Iterator[Setting]:
        recomputes, mode = self.found("enable_activation_checkpointing"), self.found("ac_mode")
        every = self.found("ac_option").value
        if recomputes.value is True and mode.value is None:
            yield recomputes.setting("gradient_checkpointing", True)
        elif recomputes.value is False and mode.value == "full":
            yield mode.setting("gradient_checkpointing", True)
        elif mode.value is not None and recomputes.value is False:
            yield mode.setting("gradient_checkpointing", True if every == 1 else UNKNOWN)  # some layers of all
        else:
            yield recomputes.setting("gradient_checkpointing", False if recomputes.value is not UNKNOWN else UNKNOWN)
        yield Setting("use_reentrant", False, Provenance.default("torchtune checkpoints without reentering"))
        offloads = self.found("enable_activation_offloading")
        yield offloads.setting("activation_offload", offloads.value if isinstance(offloads.value, bool) else UNKNOWN)
        steps = self.found("optimizer_in_bwd")
        yield steps.setting("optimizer_in_backward", steps.value if isinstance(steps.value, bool) else UNKNOWN)
        compiles = self.found("compile")
        if compiles.value is True:
            yield compiles.setting("torch_compile", True)

    def _optimizer(self) -> Setting:
        found, fused = self.component("optimizer"), self.keys.found("optimizer.fused").value
        name: Any = parts.OPTIMIZERS.get(found.value, UNKNOWN) if isinstance(found.value, str) else UNKNOWN
        if found.value in parts.FUSES and fused is not None:
            name = UNKNOWN if fused is UNKNOWN else "adamw_torch_fused" if fused else name
        return found.setting("optimizer", name)

    def _truth(self, key: str) -> Any:
        value = self.keys.found(key).value
        return value if isinstance(value, bool) else UNKNOWN


def _place(found: Stated) -> Any:
    return found.provenance.place


def read_recipe(
    launch: Launch, open_file: OpenFile, world: World, versions: Mapping[str, str] | None = None
) -> TorchtuneRecipe:
    """A launch of torchtune with its config."""
    name = (launch.action or "").removeprefix("run ")
    return TorchtuneRecipe(launch, name, read_keys(launch, open_file, name), world, versions or {})
