"""How axolotl spreads a training: the DeepSpeed file or FSDP that its recipe asks for, and ranks that share a model.

``prepare_optim_env`` and ``setup_parallelism_envs`` of ``axolotl/utils/trainer.py`` hand these to Accelerate (0.18.0).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

from lintfit.catalog import axolotl as catalog
from lintfit.documents.model import DataDocument
from lintfit.settings.model import UNKNOWN, Provenance, Setting
from lintfit.settings.values import Fsdp
from lintfit.sources.accelerate import SHARDING_STRATEGIES
from lintfit.sources.recipes.axolotl_config import ADAPTERS, Config
from lintfit.sources.recipes.keys import Stated
from lintfit.sources.recipes.zero_section import of_zero
from lintfit.versions import before

if TYPE_CHECKING:
    from lintfit.sources.recipes.base import OpenFile

FOLDER = "deepspeed_configs"
"""Where ``axolotl fetch deepspeed_configs`` puts the DeepSpeed files that come with axolotl."""


def parallel(config: Config, open_file: OpenFile) -> Iterator[Setting]:
    """``deepspeed`` or ``fsdp``, and the ranks that share a model or a sequence."""
    sharded = fsdp(config)
    if sharded is not None:  # FSDP's environment is set up before DeepSpeed's is looked at
        yield sharded
        yield from _shards_in_half(config, sharded)
    else:
        yield from _deepspeed(config, open_file)
    tensor = config.get("tensor_parallel_size")
    if tensor.value not in (None, 0, 1):
        yield config.number("tensor_parallel", "tensor_parallel_size")
    sequence = config.get("context_parallel_size")
    if sequence.value is None:
        sequence = config.get("sequence_parallel_degree")
    if sequence.value not in (None, 0, 1):
        for name in ("sequence_parallel", "context_parallel"):
            yield sequence.setting(name, sequence.value if isinstance(sequence.value, int) else UNKNOWN)
    if config.get("dp_replicate_size").value not in (None, 0, 1):
        yield config.number("replicas", "dp_replicate_size")
    experts = config.get("expert_parallel_size")
    if experts.value not in (None, 0, 1):
        # Which experts a rank holds, and what it sends to the others, is not counted.
        yield experts.setting("engine", UNKNOWN)


def _shards_in_half(config: Config, sharded: Setting) -> Iterator[Setting]:
    """axolotl's own ``fsdp2_prepare_model`` leaves out Accelerate's upcast of what trains (0.12 and up)."""
    whole = isinstance(sharded.value, Fsdp) and sharded.value.version == 2 and not config.adapter
    if whole and before(config.range.newest, "0.12") is False:
        yield Setting("fsdp_upcast", False, Provenance("derived", "axolotl shards parameters in the dtype they have"))


def _deepspeed(config: Config, open_file: OpenFile) -> Iterator[Setting]:
    found = config.get("deepspeed")
    if found.value in (None, "", False):
        return
    if isinstance(found.value, Mapping):
        yield found.setting("deepspeed", found.value)
        yield from of_zero(found, found.value)
        return
    if not isinstance(found.value, str):
        yield found.setting("deepspeed", UNKNOWN)
        return
    stock = packaged(found.value)
    if stock is not None and not isinstance(open_file(found.value), DataDocument):
        yield found.setting("deepspeed", stock)
        yield from of_zero(found, stock)
    else:
        yield found.setting("deepspeed", found.value)


def packaged(path: str) -> Mapping[str, Any] | None:
    """The DeepSpeed file that comes with axolotl under this name."""
    folder, slash, name = path.replace("\\", "/").rpartition("/")
    return catalog.deepspeed_file(name) if slash and folder.rpartition("/")[2] == FOLDER else None


def fsdp_config(config: Config, name: str) -> Stated | None:
    """A key of ``fsdp_config``, with or without the prefix ``fsdp_`` (``check_fsdp_config_kwargs_prefix``)."""
    return config.inner("fsdp_config", name, f"fsdp_{name}")


def asks_for_fsdp(config: Config) -> Stated | None:
    """The key that switches FSDP on: ``fsdp_config``, or ``fsdp`` alone; None where neither does."""
    for key in ("fsdp_config", "fsdp"):
        found = config.get(key)
        if found.value not in (None, False, "", [], {}):
            return found
    return None


def fsdp(config: Config) -> Setting | None:
    """How FSDP shards and wraps; None without FSDP, whose version is 1 where nobody says.

    (``check_fsdp_version_in_fsdp_config``; before 0.13 Accelerate's default, which is 1 as well.)
    """
    asked = asks_for_fsdp(config)
    if asked is None:
        return None
    if asked.value is UNKNOWN:
        return asked.setting("fsdp", UNKNOWN)
    top, inside = config.get("fsdp_version"), fsdp_config(config, "version")
    by = inside if top.value is None and inside is not None else top
    if by.value is UNKNOWN:
        return by.setting("fsdp", UNKNOWN)
    version: Literal[1, 2] = 2 if str(by.value) == "2" else 1
    words = _words(config.get("fsdp").value)
    offload = _value(config, "offload_params")
    value = Fsdp(
        version,
        _strategy(config, version, words),
        offload is True or "offload" in words,
        auto_wrap=_wraps(config, version, words),
    )
    return asked.setting("fsdp", UNKNOWN if offload is UNKNOWN else value)


def _strategy(config: Config, version: int, words: list[str]) -> str:
    """FSDP 2 reshards unless it is told not to. FSDP 1 goes by ``fsdp``, and before 0.13 by ``fsdp_config``, too."""
    if version == 2:
        return "SHARD_GRAD_OP" if _value(config, "reshard_after_forward") is False else "FULL_SHARD"
    stated = [] if config.range.all_since("0.13") else [str(_value(config, "sharding_strategy")).upper()]
    named = (word for word in (*[word.upper() for word in words], *stated) if word in SHARDING_STRATEGIES)
    return next(named, "FULL_SHARD")


def _wraps(config: Config, version: int, words: list[str]) -> bool:
    """Whether layers are units of their own: by a policy, or by PEFT's where adapters train under FSDP 1."""
    policy = _value(config, "auto_wrap_policy")
    if isinstance(policy, str):
        return policy.upper() != "NO_WRAP"
    return "auto_wrap" in words or policy is UNKNOWN or (version == 1 and config.adapter in ADAPTERS)


def _value(config: Config, name: str) -> Any:
    found = fsdp_config(config, name)
    return found.value if found is not None else None


def _words(asked: Any) -> list[str]:
    each = asked.split() if isinstance(asked, str) else asked
    return [str(word).lower() for word in each] if isinstance(each, list) else []
