"""A multimodal architecture as one row: a language model, an encoder, and what stands beside the two."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from lintfit.catalog import architectures
from lintfit.catalog.architectures._architecture import Architecture
from lintfit.catalog.architectures._blocks import Shape
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import Code, Tensor, VisionTower
from lintfit.errors import shown
from lintfit.frozen import field, frozen, replace

TIED = "tie_word_embeddings"


def part(config: Config, key: str, defaults: Mapping[str, Any], **more: Any) -> Config:
    """A nested config with its own defaults, under a name that says where it stands."""
    return Config({**config.section(key), **more}, defaults, f"{config.origin}: {key}")


def tied_at_the_top(config: Config) -> bool:
    """Whether the model's own keys say that the head is tied."""
    return config.flag(TIED)


def tied_anywhere(config: Config) -> bool:
    """The same; an old config says so among the language model's keys alone."""
    return config.flag(TIED) or bool(config.section("text_config").get(TIED))


def tied_as_the_text(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """A config that says nothing of tied embeddings, with what its language model's part says.

    ``LlavaOnevisionConfig`` does so itself. ``InternVLConfig`` and ``Mistral3Config`` tie there whatever the part says,
    but loading ties nothing that a checkpoint holds twice with different values (``PreTrainedModel.tie_weights``), as
    those of InternVL 3 and of Mistral Small 3.1 do.
    """
    text = given.get("text_config")
    tied = isinstance(text, Mapping) and text.get(TIED) is True and not given.get(TIED)
    return {**given, TIED: True} if tied else given


@frozen
class LanguageModel:
    """The language model of a config: its ``model_type``, its architecture and its part."""

    name: str
    model: Architecture
    config: Config

    @property
    def shape(self) -> Shape:
        """Its numbers."""
        return self.model.shape(self.config)


@frozen
class Text:
    """Which language model a type has, and how its part of the config is read."""

    of: str
    """Its architecture; with ``free`` that of a config that names none."""
    free: bool = False
    """Whether the part may name any other."""
    name: str = ""
    """Its ``model_type``, where it has a class of its own."""
    defaults: Mapping[str, Any] | None = None
    """What that class takes for keys left out; what its architecture's does where nothing is said."""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    """What it has whatever its part says."""
    tied: Callable[[Config], bool] | None = tied_at_the_top
    """Whether its head is tied, by the whole config; None where its own part says so."""
    key: str = "text_config"

    def __call__(self, config: Config) -> LanguageModel:
        """The language model of a config. Raises for a type that is none, or that lintfit does not know."""
        model = self._model(config) if self.free else architectures.known(self.of)
        values = model.defaults if self.defaults is None else self.defaults
        tied = {} if self.tied is None else {TIED: self.tied(config)}
        return LanguageModel(self.name or model.name, model, part(config, self.key, values, **tied, **self.fixed))

    def _model(self, config: Config) -> Architecture:
        model_type = str(config.section(self.key).get("model_type") or self.of)
        model = architectures.find(model_type)
        if model is None or model.language is not None:
            what = f"model_type {shown(model_type)} must be a language model that lintfit knows"
            raise config.error(self.key, what)
        return model


@frozen
class Encoder:
    """An encoder of a config: its part, how to read its numbers, and its tensors under a name."""

    config: Config
    read: Callable[[Config], VisionTower]
    write: Callable[[Config, VisionTower, str], list[Tensor]]

    @property
    def numbers(self) -> VisionTower:
        """Its numbers, without what becomes of its patches."""
        return self.read(self.config)

    def tensors(self, name: str) -> list[Tensor]:
        """Its parameters."""
        return self.write(self.config, self.numbers, name)


@frozen
class Parts:
    """A config of a multimodal model, taken apart."""

    config: Config
    text: LanguageModel
    encoder: Encoder

    @property
    def vision(self) -> Config:
        """The encoder's part."""
        return self.encoder.config

    @property
    def tower(self) -> VisionTower:
        """The encoder's numbers."""
        return self.encoder.numbers

    @property
    def hidden(self) -> int:
        """Width of the language model."""
        return self.text.shape.hidden


def as_it_is(parts: Parts) -> VisionTower:
    """The encoder's own numbers."""
    return parts.tower


def nothing(parts: Parts) -> list[Tensor]:
    """No more than an encoder and a language model."""
    return []


@frozen
class Multimodal:
    """A language model, an encoder before it, and what stands between and beside them."""

    about: str
    text: Callable[[Config], LanguageModel]
    vision: Callable[[Config], Encoder]
    beside: Callable[[Parts], Iterable[Tensor]] = nothing
    """All that is neither: a projector above all."""
    seen: Callable[[Parts], VisionTower | None] = as_it_is
    """The encoder's numbers with what becomes of an image; None where a config has no encoder."""
    encoders: tuple[str, ...] = ("model.vision_tower",)
    """Where the encoder stands; at several places where there are as many of them."""
    prefix: str = "model.language_model."
    """Where the language model stands."""
    whole: bool = False
    """Whether it stands there with its head."""
    apart: bool = True
    """Whether it is a type that also stands alone, by which an estimate counts its layers."""
    declared: bool = True
    """Whether transformers has a class of the type, whose defaults lie under these."""
    own: Mapping[str, Any] = field(default_factory=dict)
    """Defaults that transformers' class does not declare, or code of the type's own repository."""
    required: tuple[str, ...] = ("text_config",)
    """Keys that a config must state itself."""
    normalised: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None
    notes: tuple[str, ...] = ()
    code: Code = Code()

    def architecture(self, name: str) -> Architecture:
        """The architecture of this row, which stands under this name."""
        return Architecture(
            name=name,
            required=self.required,
            defaults={**(defaults(name) if self.declared else {}), **self.own},
            shape=self.shape,
            tensors=self.tensors,
            normalised=self.normalised,
            language=self.language if self.apart else None,
            notes=self.notes,
            code=self.code,
        )

    def parts(self, config: Config) -> Parts:
        """A config, taken apart."""
        return Parts(config, self.text(config), self.vision(config))

    def language(self, config: Config) -> tuple[str, Config]:
        """``model_type`` and config of the language model."""
        text = self.text(config)
        return text.name, text.config

    def shape(self, config: Config) -> Shape:
        """The language model's numbers, with the encoder's."""
        parts = self.parts(config)
        return replace(parts.text.shape, vision=self.seen(parts))

    def tensors(self, config: Config) -> tuple[Tensor, ...]:
        """Every parameter tensor. What the language model does not have counts as the encoder's where it says nothing
        else."""
        parts = self.parts(config)
        names = () if self.seen(parts) is None else self.encoders
        found = [*(each for name in names for each in parts.encoder.tensors(name)), *self.beside(parts)]
        spoken = (replace(each, name=self._inside(each.name)) for each in parts.text.model.tensors(parts.text.config))
        return (*(replace(each, where="vision") if each.where == "layer" else each for each in found), *spoken)

    def _inside(self, name: str) -> str:
        """What a tensor of the language model is called. A head that stands outside keeps its name."""
        if self.whole:
            return self.prefix + name
        return self.prefix + name.removeprefix("model.") if name.startswith("model.") else name
