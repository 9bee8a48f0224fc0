"""Facts about models: by Hugging Face id, by the content of a ``config.json``, or from a directory that holds one."""

from __future__ import annotations

import functools
import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lintfit.catalog import architectures, config_types
from lintfit.catalog.config import CatalogError, Config, UnknownArchitectureError
from lintfit.catalog.facts import LONGEST_NAME, Code, ModelFacts, VisionTower
from lintfit.catalog.quantized import by_name, of_checkpoint
from lintfit.documents import door
from lintfit.documents.door import MAX_MODEL_CONFIG
from lintfit.documents.patterns import lazy_pattern
from lintfit.errors import shown
from lintfit.frozen import names, replace
from lintfit.resources import packaged
from lintfit.suggest import most_alike

if TYPE_CHECKING:
    from lintfit.catalog.architectures._architecture import Architecture
    from lintfit.catalog.architectures._blocks import Shape

__all__ = [
    "CatalogError",
    "find",
    "from_config",
    "from_directory",
    "from_hf_cache",
    "ids",
    "lookup",
    "suggest",
]

DATA = Path(__file__).parent / "data" / "models.json"
DTYPES: Mapping[str, str] = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "half": "fp16", "float": "fp32"}
LLAMA_KEYS = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size")
EXPERTS = lazy_pattern(r"(moe_)?(num|n)_([a-z]+_)?experts")
"""Keys that count routed experts: ``num_experts``, ``num_local_experts``, ``n_routed_experts``, ``moe_num_experts``."""
OWN_CONFIG = "--model-config FILE takes its own"
UNCONFIRMED = f"the shape of {{}} as remembered, compared with nothing published ({OWN_CONFIG})"
COPY = lazy_pattern(
    r"(-(unsloth-)?(bnb-(?:[48]bit|nf4)|awq(-int4)?|gptq(model)?(-int[48]|-[48]-?bit)?(-\w+)*|autoround|[48]-?bits?|(i1-)?gguf"
    r"|fp8(-dynamic)?|int[48]|quantized\.w\d+a\d+|w\d+a\d+(-g\d+)?|nvfp4|mxfp4|bf16|fp16|dequantized|(mlx|hqq|exl2)(-\w+)?))+$",
    re.IGNORECASE,
)
"""What copies of a model in another dtype or quantisation have behind its name."""
TRAINED = lazy_pattern(
    r"^(?:(?:your|my|the|path[-_ ]?to)[-_ ]){1,3}|[-_](?:sft|dpo|rlhf|kto|orpo|grpo|simpo)(?:-full|-lora)?$",
    re.IGNORECASE,
)
"""What stands around a model's name where somebody has trained it further, or is told where it lies (``path-to-…``):
its shape is the same."""
_SAVED = lazy_pattern(
    r"(?:/(?:checkpoint|global_?step|step|epoch)[-_]?[\w-]*|/v[\dx]+-[\dx-]+|/(?:final|merged?|latest|best))+$",
    re.IGNORECASE,
)
"""Folders that a training saves below the one that is named after its model: ``checkpoint-100``, ms-swift's
``v0-…``."""


def from_config(config: Mapping[str, Any], name: str = "") -> ModelFacts:
    """Facts of the model that a ``config.json`` describes.

    ``name`` is how messages and the facts call it. An unknown ``model_type`` with llama's keys is taken as a llama
    (``exact`` is False and ``notes`` say so). Raises :class:`CatalogError` with one line for missing, negative or
    absurd numbers and for a hidden size that the heads do not divide, :class:`UnknownArchitectureError` for an
    architecture of unknown shape.
    """
    origin = name or "config.json"
    if not isinstance(config, Mapping):
        raise CatalogError(f"{origin}: must be a JSON object with a model's config")
    facts, stored = _of_type(config, origin, name), of_checkpoint(config, name)
    return facts if stored is None else replace(facts, stored=stored)


def _of_type(config: Mapping[str, Any], origin: str, name: str) -> ModelFacts:
    model_type = architectures.type_of(config)
    if model_type is not None and not isinstance(model_type, str):
        raise CatalogError(f"{origin}: model_type is {shown(model_type)}, must be a string such as 'llama'")
    if model_type != config.get("model_type"):
        config = {**config, "model_type": model_type}
    found = architectures.find(model_type) if model_type else None
    if found is not None:
        return _facts(found, config, origin, name)
    part = next((key for key in config_types.TEXT_PARTS if isinstance(config.get(key), Mapping)), None)
    if part is not None:
        return _text_part(config, part, origin, name)
    return _llama_like(config, origin, name)


def _facts(found: Architecture, given: Mapping[str, Any], origin: str, name: str, required: bool = True) -> ModelFacts:
    """Facts by the architecture's own numbers and tensors."""
    values = found.normalised(given) if found.normalised else given
    config = Config(values, found.defaults, origin)
    if required:
        config.require(found.required)
    config_types.check(config)
    shape = found.shape(config)
    if shape.vision is not None:
        _check_tower(config, shape.vision)
    if "num_experts_per_tok" in config.given and shape.moe is not None and shape.moe.top_k > shape.moe.experts:
        raise config.error("num_experts_per_tok", f"must be no more than the {shape.moe.experts} experts")
    dtype = config.text("dtype", "torch_dtype").removeprefix("torch.")
    text_type, text = found.language(config) if found.language else ("", {})
    return ModelFacts(
        name=name or _stated_name(given),
        model_type=str(given.get("model_type") or found.name),
        **{name: getattr(shape, name) for name in names(shape.__class__)},
        tensors=tuple(tensor for tensor in found.tensors(config) if tensor.copies),
        checkpoint_dtype=DTYPES.get(dtype),
        text_type=text_type,
        text_config=dict(text),
        text_code=code_of(text_type),
        config=_complete(config, shape),
        notes=found.notes,
        source=origin,
        code=found.code,
    )


def code_of(model_type: str) -> Code:
    """What libraries have for a model type; what they have for most, where lintfit does not know it."""
    found = architectures.find(model_type) if model_type else None
    return found.code if found is not None else Code()


def _stated_name(given: Mapping[str, Any]) -> str:
    """What a config calls its model, in one line."""
    stated = str(given.get("_name_or_path") or given.get("model_type") or "config.json")
    return stated if stated.isprintable() else shown(stated)


def _check_tower(config: Config, tower: VisionTower) -> None:
    """Raise for an encoder whose heads do not divide its width, or whose pictures are not even one patch or token."""
    section = config.section("vision_config")
    width = next((key for key in ("embed_dim", "hidden_size") if section.get(key) == tower.hidden), "hidden_size")
    part = Config({width: tower.hidden, "image_size": tower.image_size}, {}, f"{config.origin}: vision_config")
    if tower.hidden % tower.heads:
        raise part.error(width, f"must be a multiple of the encoder's {tower.heads} heads")
    if tower.image_size is not None and tower.image_size < tower.patch:
        raise part.error("image_size", f"must be no less than a patch ({tower.patch})")
    if tower.tokens == 0:
        raise part.error("image_size", "must be large enough to give a token")


def _complete(config: Config, shape: Shape) -> dict[str, Any]:
    """The config with defaults, the rotary share in one spelling whichever of its names the file uses."""
    values = dict(config)
    if "partial_rotary_factor" in values and shape.head_dim:
        values["partial_rotary_factor"] = shape.rotary_dim / shape.head_dim
    return values


def _text_part(config: Mapping[str, Any], part: str, origin: str, name: str) -> ModelFacts:
    """Facts of a multimodal model that lintfit has no module for: its language model alone."""
    model_type = str(config.get("model_type") or "multimodal")
    inner = dict(config[part])
    for key in ("tie_word_embeddings", "torch_dtype", "dtype"):
        if key in config:
            inner.setdefault(key, config[key])
    found = architectures.find(str(inner.get("model_type") or ""))
    if found is None:
        facts = _llama_like(inner, f"{origin}: {part}", name)
    else:
        facts = _facts(found, inner, f"{origin}: {part}", name, required=False)
        if not facts.text_type:
            facts = replace(facts, text_type=facts.model_type, text_config=facts.config, text_code=facts.code)
    note = f"its {part} alone, without encoders (model_type {shown(model_type)} is not known)"
    return replace(facts, model_type=model_type, exact=False, notes=(*facts.notes, note), code=Code())


def _llama_like(config: Mapping[str, Any], origin: str, name: str) -> ModelFacts:
    """Facts of an unknown architecture whose config has llama's keys."""
    model_type = config.get("model_type")
    named = "model_type is missing" if model_type is None else f"model_type is {shown(model_type)}, which is not known"
    error = CatalogError if model_type is None else UnknownArchitectureError
    experts = next((key for key, value in config.items() if EXPERTS.fullmatch(key) and _many(value)), None)
    if experts is not None:
        what = f"its {config[experts]} experts ({experts}) cannot be counted as a llama-like model's"
        raise error(f"{origin}: {named}, and {what}")
    missing = [key for key in LLAMA_KEYS if config.get(key) is None]
    if missing:
        raise error(f"{origin}: {named}, and without {missing[0]} it cannot be taken as a llama-like model")
    facts = _facts(architectures.known("llama"), config, origin, name)
    note = f"the shape of a Llama with these numbers (model_type {shown(model_type)} is not known)"
    return replace(facts, exact=False, notes=(*facts.notes, note), code=Code())


def from_directory(path: Path | str, name: str = "") -> ModelFacts:
    """Facts from ``config.json`` in a directory, or from a config file itself; the same object while that is the same.

    Raises :class:`CatalogError`.
    """
    file = Path(path)
    try:
        file = file / "config.json" if door.is_folder(file) else file
        known = door.state(file)
    except OSError as error:
        raise CatalogError(f"{file}: cannot be read ({error.strerror or error})") from error
    except ValueError as error:  # a null byte in the path
        raise CatalogError(f"{str(file)!r}: cannot be read ({error})") from error
    if known.st_size > MAX_MODEL_CONFIG:
        raise CatalogError(f"{file}: larger than {MAX_MODEL_CONFIG} bytes; not a model's config.json")
    return _of_file(file, name, (known.st_dev, known.st_ino, known.st_mtime_ns, known.st_size))


@functools.lru_cache(maxsize=64)
def _of_file(file: Path, name: str, state: tuple[int, ...]) -> ModelFacts:
    """The facts of a file; ``state`` tells it from what it was before."""
    try:
        config = json.loads(door.read_regular(file, MAX_MODEL_CONFIG).decode("utf-8-sig"))
    except OSError as error:
        raise CatalogError(f"{file}: cannot be read ({error.strerror or error})") from error
    except (ValueError, RecursionError) as error:
        raise CatalogError(f"{file}: not valid JSON ({str(error).splitlines()[0]})") from error
    known = name or file.parent.name
    return replace(from_config(config, name=str(file)), name=known, stored=of_checkpoint(config, known))


_REVISION = 4096
"""Bytes of the name of a revision."""


def hf_cache() -> Path:
    """Where huggingface_hub keeps downloads, by the same environment variables in the same order."""
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if os.environ.get(variable):
            return Path(os.environ[variable]).expanduser()
    if os.environ.get("HF_HOME"):
        return Path(os.environ["HF_HOME"]).expanduser() / "hub"
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base).expanduser() if base else Path.home() / ".cache") / "huggingface" / "hub"


def from_hf_cache(model: str) -> ModelFacts | None:
    """Facts from a downloaded model's ``config.json``; None where the cache has none. Reads files only."""
    if not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", model):
        return None
    folder = hf_cache() / f"models--{model.replace('/', '--')}"
    try:
        main = folder / "refs" / "main"
        named = door.read_regular(main, _REVISION).decode("utf-8", "replace").strip() if door.is_file(main) else None
        snapshots = _newest_first(folder / "snapshots") if named is None else [folder / "snapshots" / named]
        config = next((item / "config.json" for item in snapshots if door.is_file(item / "config.json")), None)
    except OSError:
        return None
    return from_directory(config, name=model) if config else None


def _newest_first(folder: Path) -> list[Path]:
    found = door.listed(folder) if door.is_folder(folder) else []
    return sorted(found, key=lambda item: door.state(item).st_mtime, reverse=True)


def _many(value: Any) -> bool:
    """Whether a config counts more than one of something."""
    return isinstance(value, int) and not isinstance(value, bool) and value > 1


@functools.cache
def _lines() -> Mapping[str, str]:
    """The catalogue's rows by id, as JSON with what follows it. A row is a line: only those asked for are parsed."""
    lines = packaged(DATA).split('\n  "')[1:]
    return {model: row for model, _, row in (line.partition('": ') for line in lines)}


@functools.cache
def _by_lower() -> Mapping[str, str]:
    return {model.lower(): model for model in _lines()}


@functools.cache
def _by_last_part() -> Mapping[str, tuple[str, ...]]:
    """Ids by what stands after their slash, in lower case."""
    found: dict[str, tuple[str, ...]] = {}
    for model in _lines():
        last = model.lower().rpartition("/")[2]
        found[last] = (*found.get(last, ()), model)
    return found


def ids() -> tuple[str, ...]:
    """Every id of the catalogue."""
    return tuple(_lines())


def _row(model: str) -> dict[str, Any]:
    """A row with what it inherits from the one that it is ``like``; a source of its own confirms it."""
    row: dict[str, Any] = json.JSONDecoder().raw_decode(_lines()[model])[0]
    like = row.pop("like", None)
    if like is None:
        return row
    return {**_row(like), **({"confirmed": True} if "source" in row else {}), **row}


def config_of(model: str) -> tuple[dict[str, Any], str]:
    """The config and the source of a catalogue id, spelled exactly; ``like`` rows inherit from another row."""
    row = _row(model)
    source = str(row.pop("source"))
    row.pop("confirmed", None)
    return row, source


def confirmed(model: str) -> bool:
    """Whether the shape of a catalogue id, spelled exactly, has been compared with a published source."""
    return bool(_row(model).get("confirmed", True))


@functools.cache
def _known(model: str) -> ModelFacts:
    config, source = config_of(model)
    facts = replace(from_config(config, name=model), source=source)
    return facts if confirmed(model) else replace(facts, notes=(*facts.notes, UNCONFIRMED.format(model)))


def _taken_by_name(last: str) -> str | None:
    """The id that a name without owner stands for; None where it is unknown or owners' models differ."""
    found = _by_last_part().get(last, ())
    if not found or any(config_of(other)[0] != config_of(found[0])[0] for other in found[1:]):
        return None
    return found[0]


@functools.lru_cache(maxsize=1024)
def lookup(model: str) -> ModelFacts | None:
    """Facts of a model that the catalogue has, or None.

    Case, a trailing slash and blanks do not matter. A local path, another owner's copy or a quantised copy is taken
    by its last part where that names one model only, else by the family, version and size in its name
    (:mod:`lintfit.catalog.families`); ``notes`` then say so. Builds only the model asked for.
    """
    if len(model) > LONGEST_NAME:
        return None
    wanted = model.strip().rstrip("/").replace("\\", "/").replace("___", ".")  # as ModelScope's cache has points
    cached = re.search(r"models--([\w.-]+?)--([\w.-]+)", wanted)
    if cached:
        wanted = f"{cached[1]}/{cached[2]}"
    known = _by_lower().get(wanted.lower())
    if known is not None:
        return _known(known)
    wanted = _SAVED.sub("", wanted)
    owner, _, last = wanted.lower().rpartition("/")
    bare = COPY.sub("", last)
    own = _by_lower().get(f"{owner}/{bare}")
    trained = TRAINED.sub("", bare)
    spellings = (last, bare, f"{bare}-hf", bare.removesuffix("-hf"), bare.replace("_", "-"), trained, f"{trained}-hf")
    from lintfit.catalog.families import names_all_sizes

    if owner and own is None and names_all_sizes(bare, ids()):
        return None
    like = next(filter(None, map(_taken_by_name, spellings)), own)
    if like is not None:
        return _called(last, _known(like), like)
    from lintfit.catalog.families import published

    found = published(wanted, ids(), config_of)
    if found is None:
        return None
    facts = _called(last, _known(found.model), found.model)
    if found.words is None:
        return facts
    config, _ = config_of(found.model)
    larger = _called(last, from_config({**config, "vocab_size": found.words}, name=found.model), found.model)
    return replace(facts, larger=larger)


def _called(last: str, facts: ModelFacts, like: str) -> ModelFacts:
    """Facts of a model that is taken by its name's last part."""
    note = f"the shape of {like}, by the name {last} ({OWN_CONFIG})"
    return replace(facts, notes=(*facts.notes, note), stored=by_name(last))


def find(model: str) -> ModelFacts | None:
    """Facts by any means at hand: a directory with a ``config.json``, the catalogue, the Hugging Face cache.

    None where nobody knows the model. Raises :class:`CatalogError` for a local config that cannot be used.
    """
    if len(model) > LONGEST_NAME:
        return None
    path = Path(model)
    try:
        path = path.expanduser() if model.startswith("~") else path
        local = door.is_file(path / "config.json") or (model.endswith(".json") and door.is_file(path))
    except (OSError, ValueError, RuntimeError):  # a name that no file can have; the home folder of nobody
        local = False
    if local:
        return from_directory(path)
    return lookup(model) or from_hf_cache(model)


@functools.lru_cache(maxsize=256)
def suggest(model: str) -> str | None:
    """The catalogue's id that an unknown one most resembles, or None.

    Only one with the same digits: another version or size is another model, not a slip. Kept: the launches of a tree
    often name the same model.
    """
    if len(model) > LONGEST_NAME:
        return None
    wanted = model.strip().rstrip("/").lower()
    close = most_alike(wanted, _same_digits(wanted, _by_lower()), 0.75)
    if close is not None:
        return _by_lower()[close]
    last = wanted.rpartition("/")[2]
    by_last = most_alike(last, _same_digits(last, _by_last_part()), 0.75)
    return _by_last_part()[by_last][0] if by_last is not None else None


def _same_digits(wanted: str, names: Iterable[str]) -> list[str]:
    digits = _digits(wanted)
    return [name for name in names if _digits(name) == digits]


def _digits(name: str) -> str:
    return "".join(filter(str.isdigit, name))
