"""Parts of a model that a script freezes, or changes by helpers of its own: then not all of it is trained."""

from __future__ import annotations

import re
from itertools import dropwhile
from operator import itemgetter
from typing import NamedTuple

import libcst as cst

from lintfit.documents.python_reader import PythonDocument
from lintfit.documents.python_walk import walk
from lintfit.settings.model import UNKNOWN
from lintfit.sources.script.interpreter.operators import switched
from lintfit.sources.script.interpreter.state import Gradient
from lintfit.sources.script.interpreter.values import Record, Value, objects
from lintfit.sources.script.reading import turns
from lintfit.sources.script.reading.collector import Reading
from lintfit.sources.script.reading.facts import is_trained
from lintfit.sources.script.reading.frozen_names import EVERY, Switch, switches
from lintfit.sources.script.reading.module_paths import UNTOLD, Holder, chain
from lintfit.sources.script.reading.own_method import lineage
from lintfit.sources.script.reading.switched_on import switched_on

_ADAPTS = re.compile(r"(?:to|add|inject|apply|convert|insert)_?.*lora(?!\w*_to_)", re.IGNORECASE)
"""Names of helpers that put adapters of their own into a model."""

_CHOOSES = re.compile(
    r"(?:set|mark|make|keep|leave|train)_(?:\w+_)?(?:trainable|lora)(?!\w*(?:alpha|arg|config|lr|path|rank|rate|scal|state))",
    re.IGNORECASE,
)
"""Names of functions that choose which parameters of a model are trained (``set_trainable_lora``, loralib's
``mark_only_lora_as_trainable``): of one whose code is not read nobody knows which."""

_BESIDE = re.compile(r"vis|vpm|vit|tower|audio|apm|tts|image|embed|proj|resampler|head", re.IGNORECASE)
"""Parts of a model beside its language model."""

_FREEZES = frozenset(
    {"disable_model_gradients", "get_reft_model", "train_adapter", "train_adapter_fusion", "AdapterTrainer"}
)
"""What pyvene, pyreft and adapter-transformers (whose ``AdapterTrainer`` stops without an adapter to train) have to
train what they put beside a model alone."""

_TEXT_PART = re.compile(r"self\.(?:language_model|llm|lm|llm_model|llama_model|text_model|lang_model)$")
"""What a model's class of the project's own calls its language model."""

_OWN = re.compile(r"torch\.nn\.(?!functional\b|parallel\b|utils\b)")
"""Layers and parameters that a script makes itself."""


def read(reading: Reading) -> None:
    """``requires_grad`` of the model and its parts, in the order in which it is switched: what of it is not trained.

    Where that is not statically known of the language model, nobody knows what is trained; parts
    beside it are then trained.
    """
    load = reading.found.trained_load
    loads = [load] if load is not None else [r for r in reading.found.loads if r.taken is not False]
    names = {reading.found.trained_name, *(record.assigned_to for record in loads)}
    for record in reading.records:
        if record.taken is not False and _ADAPTS.search(record.name):
            reading.state("method", UNKNOWN, record.node, "adapters of the script's own are put in here")
            return
        if record.taken is not False and record.name in _FREEZES:
            reading.state("method", UNKNOWN, record.node, "what the model has of its own is frozen here")
            return
        if record.taken is not False and _is_left_to_others(reading, record):
            reading.state("method", UNKNOWN, record.node, "what is trained is chosen here, by code that is not read")
            return
    if (switching := turns.switched_by(reading)) is not None:
        node, method = switching
        reading.state("method", UNKNOWN, node, f"{method} switches what is trained as it trains")
        return
    if (frozen := _by_own_class(reading)) is not None:
        reading.state("method", UNKNOWN, frozen, "the model's own class freezes its language model here")
        return
    patterns: list[str] = []
    first: cst.CSTNode | None = None
    events = _events(reading, names)
    for index, event in enumerate(events):
        added = _added(patterns, event)
        if added is None and event.of_text:
            _partly(reading, event.node)
            if event.whole and not any(later.on for later in events[index + 1 :]):
                _beside_frozen(reading, event.node)
            return
        patterns += added or ()
        while "!*" in patterns:
            patterns, first = patterns[patterns.index("!*") + 1 :], None
            reading.settings.pop("partly_frozen", None)
        if patterns:
            first = first or event.node
        if event.of_text and any(not each.startswith("!") and not _BESIDE.search(each) for each in added or ()):
            reading.state("partly_frozen", True, event.node, _FROZEN)
    if first is None:
        return
    if "partly_frozen" in reading.settings and not _all_seen(reading):
        _partly(reading, first)
    else:
        _state(reading, tuple(patterns), first)


def _by_own_class(reading: Reading) -> cst.CSTNode | None:
    """Where a class of the project's own freezes the language model that it holds, and surely does, without one of its
    own statements behind it that may let it train: code that is not read may (TinyLLaVA's recipes)."""
    made = [each.cls for each in objects(reading.found.trained) if each.cls is not None]
    method = reading.settings.get("method")
    if not made or method is None or method.value != "full":
        return None
    switched_at = [
        *((r.order, r.node, r.receiver_name, switched(r), r.taken) for r in reading.called("requires_grad_")),
        *((g.order, g.node, g.source.receiver_name, g.value, g.taken) for g in reading.walk.gradients if g.source),
    ]
    named = [each for each in switched_at if each[4] is not False and _TEXT_PART.match(each[2] or "")]
    if not named:
        return None
    lines = (lineage(reading.calls.documents, cls.name) for cls in made)
    inside = {id(node) for line in lines for _, cls in line for node in walk(cls)}
    mine = sorted((each for each in named if id(each[1]) in inside), key=itemgetter(0))
    _, node, _, on, taken = mine[-1] if mine else (0, None, None, None, None)
    return node if on is False and taken is True else None


def _is_left_to_others(reading: Reading, record: Record) -> bool:
    """Whether a function of another package is handed a model to choose what of it is trained."""
    if not _CHOOSES.match(record.name):
        return False
    own = record.callee is not None or record.receiver is not None
    method = reading.settings.get("method")
    return not own and bool(record.passed) and method is not None and method.value == "full"


def _all_seen(reading: Reading) -> bool:
    """Whether all that the script's files switch on is known to be of the trained model, of another one, or not run."""
    names = {reading.found.trained_name, *(record.assigned_to for record in reading.found.loads)}
    switched_at: list[tuple[cst.CSTNode, Holder, bool | None]] = [
        *((each.node, Holder.of(each), each.taken) for each in reading.records if each.name == "requires_grad_"),
        *((each.node, _holder(each), each.taken) for each in reading.walk.gradients),
    ]
    seen = []
    for node, holder, taken in switched_at:
        path, index = chain(_document(reading, node), holder, names)
        known = bool(path) and path[0] in names and index != UNTOLD
        if taken is False or known or is_trained(reading.found, holder.value):
            seen.append(reading.calls.place(node))
    return all(
        any(place.document is document and place.span.start <= offset < place.span.end for place in seen)
        for document, offset in switched_on(reading.calls)
    )


def _document(reading: Reading, node: cst.CSTNode) -> PythonDocument:
    """The file that a statement stands in; the script, where that is none that was read."""
    try:
        return reading.calls.document_of(node)
    except KeyError:
        return reading.calls.script


class _Event(NamedTuple):
    """One statement that switches gradients of a part of the model, by the part's name; ``told``: None where what it
    does is not statically known; ``whole``: whether it surely freezes all of the model; ``on``: whether it may switch
    some on."""

    node: cst.CSTNode
    of_text: bool
    path: str
    told: tuple[Switch, ...] | None
    whole: bool = False
    on: bool = True


_FROZEN = "a part of the model is frozen here"
_ALL_FROZEN = "all of the model is frozen here, and layers of the script's own are trained with it"
"""Behind it, as heads are, they leave nothing of its layers to go backward through; in front of it, all of them."""


def _state(reading: Reading, patterns: tuple[str, ...], node: cst.CSTNode) -> None:
    """Put down what is frozen; layers of the script's own are trained beside it, and nobody knows which these are."""
    if "partly_frozen" in reading.settings and any(_OWN.match(record.function) for record in reading.records):
        del reading.settings["partly_frozen"]
        _partly(reading, node)
        if patterns == ("*",):
            _beside_frozen(reading, node)
    else:
        reading.state("frozen_modules", patterns, node, "is frozen here")


def _events(reading: Reading, names: set[str | None]) -> list[_Event]:
    """All of them in their order; of one loop those first that mean all names but some."""
    found: list[tuple[int, bool, bool, _Event | None]] = []
    for record in reading.records:
        if record.name == "requires_grad_" and record.taken is not False:
            on = switched(record) is not False
            sure = record.taken is True and switched(record) is not None
            told = (Switch(EVERY, on),) if sure or on else None
            found.append((record.order, False, on, _event(reading, Holder.of(record), record.node, names, told)))
    for gradient in reading.walk.gradients:
        if gradient.taken is False:
            continue
        on = gradient.value is not False
        if gradient.source is None:
            found.append((gradient.order, False, on, _of_one(reading, gradient, names)))
            continue
        by_name = switches(_document(reading, gradient.node), gradient)
        others = by_name is None or by_name[0].picked.others
        event = _event(reading, _holder(gradient), gradient.node, names, by_name)
        found.append((gradient.order, not others, on, event))
    in_order = sorted(found, key=itemgetter(0, 1))
    return [event._replace(on=on) for _, _, on, event in in_order if event is not None]


def _holder(gradient: Gradient) -> Holder:
    """The module whose parameters a loop goes through, or what one is of."""
    if gradient.source is not None:
        return Holder.of(gradient.source)
    return Holder(gradient.node.value if isinstance(gradient.node, cst.Attribute) else None)


def _of_one(reading: Reading, gradient: Gradient, names: set[str | None]) -> _Event | None:
    """``model.lm_head.weight.requires_grad = False``; on a module that switches nothing."""
    told = (Switch(EVERY, gradient.value),) if gradient.taken is True and gradient.value is not None else None
    event = _event(reading, _holder(gradient), gradient.node, names, told)
    if event is None or not event.path.endswith((".weight", ".bias")):
        return None
    return event._replace(path=f"*{event.path}")


def _event(
    reading: Reading, holder: Holder, node: cst.CSTNode, names: set[str | None], told: tuple[Switch, ...] | None
) -> _Event | None:
    """What a statement does to the model; None where it is about another, or does nothing that is sure to parts beside
    the language model. ``told``: what it does to the module that has the parameters."""
    path, index = chain(_document(reading, node), holder, names)
    of_text = _of_language_model(reading, path, names, holder.value)
    by_another_name = len(path) == 1 and is_trained(reading.found, holder.value)
    mine = bool(path) and (path[0] in names or by_another_name)
    if not of_text and not mine:
        return None
    sure = mine and index != UNTOLD
    whole = not index and told == (Switch(EVERY, on=False),) and is_trained(reading.found, holder.value)
    return _Event(node, of_text, _path(path[1:], of_text) + index, told if sure else None, whole)


def _added(before: list[str], event: _Event) -> list[str] | None:
    """What a statement adds to the patterns of ``frozen_modules``; None where that is not statically known."""
    if event.told is None or (event.path.endswith("]") and any(switch.picked != EVERY for switch in event.told)):
        return None
    found: list[str] = []
    for switch in event.told:
        marked = "" if switch.on is False else "!"
        named = [f"{event.path}.{name}" if event.path else name for name in switch.picked.names]
        if switch.picked.others:  # those of these names stay what they are
            if before not in ([], ["*"]):
                if event.path or not _speak_of(before, switch.picked.names):
                    return None
                frozen = {name: _is_frozen(before, name) for name in switch.picked.names}
                found += [f"{marked}*", *(f"{'' if frozen[name] else '!'}{name}" for name in frozen)]
                continue
            found.append(f"{marked}{event.path or '*'}")
            marked = "" if before else "!"
        found += [f"{marked}{name}" for name in ([event.path] if event.path and switch.picked == EVERY else named)]
    return found if before or any(not each.startswith("!") for each in found) else []


def _speak_of(patterns: list[str], names: tuple[str, ...]) -> bool:
    """Whether patterns are each about all parameters, or about those of one of these names alone."""
    return all(each.lstrip("!") == "*" or any(name.strip("*") in each for name in names) for each in patterns)


def _is_frozen(patterns: list[str], name: str) -> bool:
    """Whether what has a name is frozen, by the last pattern that speaks of it."""
    speaking = (each for each in reversed(patterns) if each.lstrip("!") == "*" or name.strip("*") in each)
    return not next(speaking, "!").startswith("!")


def _path(names: list[str], of_text: bool) -> str:
    """A part of the model by the name that it has there, without what wraps the model."""
    wrappers = ("module", "base_model") if of_text else ("model", "module", "base_model")
    return ".".join(dropwhile(wrappers.__contains__, names))


def _partly(reading: Reading, node: cst.CSTNode) -> None:
    """Not all of the language model is trained: no more than all of it where the script adds no layers of its own."""
    reading.state("method", UNKNOWN, node, _FROZEN)
    if reading.found.trained_load is not None and not any(_OWN.match(record.function) for record in reading.records):
        reading.state("partly_frozen", True, node, _FROZEN)


def _beside_frozen(reading: Reading, node: cst.CSTNode) -> None:
    """All of the model is frozen: what its forward pass keeps is not known where the script has layers of its own."""
    if any(_OWN.match(record.function) for record in reading.records):
        reading.state("forward_pass", True, node, _ALL_FROZEN)


def _of_language_model(reading: Reading, path: list[str], names: set[str | None], receiver: Value | None) -> bool:
    """Whether ``a.b.c`` is the trained model or a part of its language model."""
    if any(_BESIDE.search(part) for part in path[1:]):
        return False
    return (bool(path) and path[0] in names) or is_trained(reading.found, receiver)
