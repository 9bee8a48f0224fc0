"""Whether a script survives an engine that shards its weights, and saves them, or weights of 16 bits."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lintfit.catalog.quantized import loaded_whole
from lintfit.documents.model import Document, Kind, Span
from lintfit.run.engine_location import has_trainer
from lintfit.run.model import Run
from lintfit.settings.model import Place
from lintfit.versions import before

if TYPE_CHECKING:
    from lintfit.sources.script.interpreter.values import Record
    from lintfit.sources.script.source import ScriptSource

_GATHERS = ("GatheredParameters", "_zero3_consolidated_16bit_state_dict", "zero_to_fp32", ".save_16bit_model(")
"""Words of scripts that know how to save what ZeRO-3 shards."""


def unfit_for_shards(run: Run, changes: Mapping[str, Any]) -> str:
    """Why a change to ZeRO-3 or FSDP would end a script, or leave it without its weights."""
    if run.spec is None:
        return ""
    if run.spec.engine == "fsdp" and changes.get("engine", "fsdp") != "fsdp" and (place := _within_fsdp(run)):
        return (
            f"{place} saves within FSDP.state_dict_type, which stops where FSDP wraps nothing: tell the engines apart"
        )
    if changes.get("zero_stage") == 3 and run.spec.zero_stage != 3:
        if run.spec.facts.model_type == "chatglm" and not run.mentions("empty_init"):
            # modeling_chatglm.py: skip_init makes each layer on the meta device, which zero.Init then finds empty.
            return "chatglm's own code takes ZeRO-3 only with from_pretrained(…, empty_init=False)"
        if loaded_whole(run.spec.facts.name) and run.spec.quantization is None:
            return f"transformers loads {run.spec.facts.name}, which is stored quantised, whole on every rank"
        kept = _copies_shards(run) or _hands_on_shards(run) or _saves_shards(run) or _rewards_by_shards(run)
        return refusing_stage_3(run.documents) or kept or _lost(run, "ZeRO-3")
    if changes.get("engine") == "fsdp" and run.spec.engine != "fsdp":
        return _lost(run, "FSDP")
    return ""


_AGAINST_TEACHER = re.compile(
    r"(?:\b(?:mse|smooth_l1|huber)_loss|\b(?:MSE|SmoothL1|Huber)Loss\([^()\n]{0,80}\)|\b\w{0,20}mse\w{0,20})"
    r"\((?P<given>[^\n]{0,200}\b(?:teacher|reference|ref)_?\w{0,40}[^\n]{0,80})"
)
_CASTS = (".float()", ".to(", ".half()", ".bfloat16()", ".type(", ".double()")


def unfit_for_half(run: Run, changes: Mapping[str, Any]) -> str:
    """Why weights of 16 bits would stop the backward pass of a loop of the script's own: its loss sets the model's
    outputs against those of another model, which stay in fp32.

    ``mse_loss`` and its kin take two dtypes forward and none but the input's backward (RuntimeError: Found dtype Float
    but expected BFloat16).
    """
    spec = run.spec
    if spec is None or changes.get("weights_dtype") not in ("bf16", "fp16") or spec.weights_dtype != "fp32":
        return ""
    if run.script is None or has_trainer(run) or changes.get("mixed_precision", spec.mixed_precision) != "no":
        return ""
    for document in run.documents:
        for found in _AGAINST_TEACHER.finditer(document.text) if document.kind is Kind.PYTHON else ():
            if not any(cast in found["given"] for cast in _CASTS):
                place = Place(document, Span(*found.span()))
                return f"{place} sets the model's outputs against fp32 ones: cast them with .float() there first"
    return ""


_REFUSES = re.compile(
    r"^[ \t]*(?:el)?if\b(?P<others>[^:#]{0,400}?)"
    r"(?:\w*zero_?3\w*|zero_?stage\w*[\"'\])]{0,3}[ \t]*(?:(?:==|>=)[ \t]*3|>[ \t]*2)\b)(?P<more>[^:#]{0,400}):[ \t]*\n"
    r"(?:[ \t]*#[^\n]*\n)*[ \t]*(?P<raise>raise\b)",
    re.MULTILINE | re.IGNORECASE,
)
"""A test for ZeRO-3 that raises: ``is_deepspeed_zero3_enabled()``, ``deepspeed_plugin.zero_stage == 3``."""
_NOT = re.compile(r"\bnot[ \t(]+[\w.]*$")
_ASKED_FOR = "precompute_ref_log_probs"
"""What TRL's DPO and KTO trainers refuse beside ZeRO-3 (0.7 to 0.24), and so do copies of them: an argument that is off
unless a run asks for it."""


def refusing_stage_3(documents: Sequence[Document]) -> str:
    """The place where a script, or a module of its tree, raises an error when ZeRO-3 is on, if other things hold that
    may hold; empty where there is none."""
    for document in documents:
        for found in _REFUSES.finditer(document.text) if document.kind is Kind.PYTHON else ():
            if _NOT.search(found["others"]) is not None:
                continue
            asked = any(_ASKED_FOR in each.text for each in documents if each is not document)
            if asked or _ASKED_FOR not in found["others"] + found["more"]:
                return f"{Place(document, Span(*found.span('raise')))} may refuse ZeRO-3"
    return ""


def _copies_shards(run: Run) -> str:
    """That PEFT copies the modules that are trained whole beside adapters (``modules_to_save``), of which ZeRO-3 has
    left a placeholder by then: 0.9 is the first that gathers them (``ModulesToSaveWrapper.update``).

    Where no file says which PEFT there is, one beside an older transformers than it had in its time is older, too.
    """
    whole = run.spec.lora_modules_to_save if run.spec is not None and run.spec.method == "lora" else ()
    peft, transformers = run.versions.get("peft"), run.versions.get("transformers")
    older = before(peft, "0.9") if peft is not None else before(transformers, "4.38")
    if not whole or older is not True:
        return ""
    return f"PEFT before 0.9 copies modules_to_save ({', '.join(whole)}) from what ZeRO-3 has sharded"


_HANDED_ON = re.compile(
    r"(?P<model>\w{1,60})[ \t]*=[ \t]*[\w.]{1,80}\.from_pretrained\((?:[^()]|\([^()]{0,400}\)){0,800}\)"
    r"(?P<at_once>\.state_dict\(\))?"
)
"""A model that is loaded, by name, and its state dict where that is taken at once."""


def _hands_on_shards(run: Run) -> str:
    """That a script loads a model to hand its weights to another one: under ZeRO-3 they have no size by then
    (DeepSpeed: ``zero/partition_parameters.py``), and ``load_state_dict`` stops, strict or not."""
    for document in run.documents:
        if document.kind is not Kind.PYTHON or "load_state_dict(" not in document.text:
            continue
        for found in _HANDED_ON.finditer(document.text):
            taken = found["at_once"] or re.search(
                rf"\bload_state_dict\(\s*{found['model']}\.state_dict\(", document.text
            )
            if taken and not run.mentions(*_GATHERS):
                return f"{Place(document, Span(*found.span('model')))} hands weights on that ZeRO-3 shards as they load"
    return ""


_PREPARED_REWARD = re.compile(r"^[ \t]*self\.reward_funcs\[\w+\] = self\.accelerator\.prepare_model\(", re.MULTILINE)


def _rewards_by_shards(run: Run) -> str:
    """That GRPO asks a reward model whose weights ZeRO-3 has sharded as it was loaded: TRL before 0.17 hands it to no
    engine that would gather them (0.16.1 ``grpo_trainer.py``: ``prepare_model`` alone), nor do copies of it."""
    if run.spec is None or run.spec.trainer != "grpo" or not run.spec.frozen_models:
        return ""
    for document in run.documents:
        own = document.kind is Kind.PYTHON and "prepare_deepspeed(reward_func" not in document.text
        found = _PREPARED_REWARD.search(document.text) if own else None
        if found is not None:
            return f"{Place(document, Span(*found.span()))} gives the reward model no engine, and ZeRO-3 shards it"
    if before(run.versions.get("trl"), "0.17") is True:
        return "TRL before 0.17 gives the reward model no engine, and ZeRO-3 shards it as it loads"
    return ""


def _saves_shards(run: Run) -> str:
    """That a script saves ``state_dict()`` of the whole model, of which ZeRO-3 leaves every rank a placeholder
    (DeepSpeed: ``zero/partition_parameters.py``)."""
    taken = run.settings.get("whole_state_dict")
    place = taken.provenance.place if taken is not None else None
    if taken is None or taken.value is not True or place is None or run.mentions(*_GATHERS):
        return ""
    return (
        f"{place} saves state_dict() of the model, which ZeRO-3 shards: "
        "write trainer.save_model() or DeepSpeed's GatheredParameters there"
    )


_WITHIN_FSDP = re.compile(r"^[ \t]*with[ \t]+(?:\w+\.){0,3}state_dict_type\(", re.MULTILINE)
_TELLS_ENGINES = re.compile(r"is_deepspeed|is_fsdp|args\.fsdp\b|DistributedType|deepspeed_plugin|fsdp_plugin")


def _within_fsdp(run: Run) -> Place | None:
    """Where a script saves within ``FSDP.state_dict_type`` whatever engine it has: on leaving it torch looks up the
    type that the first FSDP module had before, and there is none (KeyError: None; torch 2.13
    ``fully_sharded_data_parallel.py:set_state_dict_type``)."""
    for document in run.documents:
        if document.kind is not Kind.PYTHON or _TELLS_ENGINES.search(document.text) is not None:
            continue
        if (found := _WITHIN_FSDP.search(document.text)) is not None:
            return Place(document, Span(*found.span()))
    return None


def _lost(run: Run, engine: str) -> str:
    return _on_one_rank(run, engine) or next(_saved(run, engine), "")


_ONE_RANK = re.compile(
    r"^(?P<indent>[ \t]{0,40})if [^\n]{0,120}?(?:is_(?:local_)?main_process|\brank(?:\(\))? *(?:==|<=) *0)\b"
    r"[^\n]{0,120}\n"
    r"(?:(?P=indent)[ \t][^\n]{0,300}\n|[ \t]{0,40}\n){0,12}?(?P=indent)[ \t][^\n]{0,200}?"
    r"(?:unwrap_model\(|(?:model|module|engine|policy|actor)\w{0,30}\.(?:generate|save_pretrained|state_dict)\()",
    re.MULTILINE,
)
"""A loop of a project's own that runs or saves the model on one rank."""


def _on_one_rank(run: Run, engine: str) -> str:
    """Why an engine that shards would leave a loop of a script's own waiting, or without its weights: one rank alone
    runs or saves the model, whose parameters the others have to gather with it."""
    if run.script is None or has_trainer(run) or run.mentions(*_GATHERS, *_WITHIN, "get_state_dict("):
        return ""
    for document in run.documents:
        found = _ONE_RANK.search(document.text) if document.kind is Kind.PYTHON else None
        if found is not None:
            place = Place(document, Span(*found.span("indent")))
            return f"{place} runs or saves the model on one rank, and {engine} gathers its parameters on all of them"
    return ""


_WITHIN = ("state_dict_type(", "summon_full_params(")
"""Words of scripts that know how to save what FSDP shards."""
_COLLECTIVE = frozenset({"save_model", "get_state_dict", "save_checkpoint", "save_16bit_model", "save_fp16_model"})
"""What every rank has to call where the weights are sharded: ``Trainer.save_model`` (transformers 4.57, ``trainer.py``)
asks ``Accelerator.get_state_dict``, which gathers by ``_zero3_consolidated_16bit_state_dict`` or within
``FSDP.state_dict_type``; a release before that by ``save_16bit_model``."""
_BY = re.compile(r"trainer|accelerator|engine|deepspeed", re.IGNORECASE)
_RANK_0 = re.compile(
    r"is_\w*main|is_\w*master|is_\w*process_zero|is_rank_?(?:0|zero)|should_save|\bnot (?:\w+\.)*\w*rank\b"
    r"|(?:(?<!lora_)rank|process_index)\b\W{0,4}(?:[^=<>\n]{0,20}[)\]])?\W{0,2}(?:==|<=|\bin\b)\W{0,3}(?:-1, *)?0\b",
    re.IGNORECASE,
)
"""A test that one rank alone passes: ``is_main_process``, ``int(os.environ.get("LOCAL_RANK", 0)) == 0``."""
_SHARDS = re.compile(r"zero_?3|zero_?stage|deepspeed|fsdp|world_size", re.IGNORECASE)
"""Words of a test that knows how the run is sharded."""
_TRAINERS_MODEL = re.compile(r"(^|\.)\w*Trainer\.model(_wrapped)?\.save_pretrained$")


def _saved(run: Run, engine: str) -> Iterator[str]:
    """Where a script saves what an engine shards in a way that leaves its ranks waiting, or takes a shard for all."""
    if run.script is None or run.mentions(*_GATHERS, *_WITHIN):
        return
    reading = run.script.reading
    for record in reading.records:
        if record.taken is False or record.callee is not None:
            continue
        tests = [_text(test) for test in reading.calls.call(record).conditions] if record.name in _COLLECTIVE else ()
        alone = next((test for test in tests if _RANK_0.search(test)), None)
        if alone is not None and _BY.search(record.function) and not any(map(_SHARDS.search, tests)):
            place = reading.calls.call(record).place
            yield f"{place} calls {record.name}() on one rank ({alone}), and {engine} gathers weights on all of them"
        elif record.name == "save_pretrained" and _is_shard(run.script, record):
            instead = "trainer.save_model()" if has_trainer(run) else "state_dict=accelerator.get_state_dict(model)"
            place = reading.calls.call(record).place
            yield f"{place} saves the model itself, of which {engine} leaves each rank a shard: write {instead} there"


def _is_shard(script: ScriptSource, record: Record) -> bool:
    """Whether a model saves what it holds itself after an engine has sharded it: placeholders under ZeRO-3, and under
    FSDP what the root has left of its flat parameters."""
    from lintfit.sources.script.reading.facts import is_trained

    found = script.reading.found
    wraps = [each for each in (found.trainer, found.accelerator, found.initialize) if each is not None]
    model = is_trained(found, record.receiver) or _TRAINERS_MODEL.search(record.function) is not None
    given = record.spreads or record.keyword("state_dict") is not None
    return record.taken is True and model and not given and any(each.order < record.order for each in wraps)


def _text(place: Place) -> str:
    return " ".join(place.document.text[place.span.start : place.span.end].split())
