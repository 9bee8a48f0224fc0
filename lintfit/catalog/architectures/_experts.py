"""Routed experts: their numbers by the keys of a config, and their parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lintfit.catalog.architectures._blocks import Shape, fused_experts, gated_mlp, router
from lintfit.catalog.config import Config
from lintfit.catalog.facts import MoE, Tensor
from lintfit.frozen import frozen, replace

NO_MTP = ("no multi-token-prediction layers (transformers does not load those of a checkpoint)",)
"""What the tensors of many of these leave out."""


@frozen
class Experts:
    """Routed experts, in one parameter for each projection, and a shared one beside them where there is one."""

    keys: tuple[str, ...]
    """How a config may spell their number."""
    width: str = ""
    """The key of an expert's width; all are as wide as the MLP where nothing is said."""
    top_k: str = "num_experts_per_tok"
    layers: Callable[[Config, int], int] | None = None
    """How many of so many layers have them; all where nothing is said."""
    shared_count: str = ""
    """The key that counts shared experts, each as wide as a routed one."""
    shared_width: str = ""
    """The key of the width of all shared experts together."""
    gate: str = "mlp.gate"
    """The module that scores them, below a layer."""
    name: str = "mlp.experts"
    shared: str = "mlp.shared_experts"
    shared_gate: str = ""
    """The module that weighs the shared expert, where there is one."""
    gate_first: bool = True
    """Whether the class makes what scores them before the experts."""
    correction: str = ""
    """A parameter with a number for each expert that is added to its scores, where there is one."""
    input_first: bool = False
    """Whether their projections are stored as (in, out)."""
    biased: bool = False
    """Whether they have biases, and what scores them as well."""
    apart: bool = False
    """Whether each is a module of its own."""
    optional: bool = False
    """Whether a config may have none."""


def moe_of(experts: Experts, config: Config, numbers: Shape) -> MoE:
    """The numbers of a config's experts, beside those of the rest."""
    width = config.size(experts.width, kind="intermediate") if experts.width else numbers.intermediate
    shared = width * config.count(experts.shared_count, kind="experts") if experts.shared_count else 0
    if experts.shared_width:
        shared = config.size(experts.shared_width, kind="intermediate")
    return MoE(
        experts=config.size(*experts.keys, kind="experts"),
        top_k=config.size(experts.top_k, kind="experts"),
        intermediate=width,
        layers=experts.layers(config, numbers.layers) if experts.layers else numbers.layers,
        shared_intermediate=shared,
    )


def routed(experts: Experts, layer: str, numbers: Shape, *, bias: bool = False) -> list[Tensor]:
    """What the layers with experts have in the MLP's place. ``bias``: of the shared expert."""
    moe, hidden = numbers.moe, numbers.hidden
    assert moe is not None
    scores = router(f"{layer}.{experts.gate}", moe.experts, hidden, moe.layers, bias=experts.biased)
    each = _each(experts, f"{layer}.{experts.name}", moe, hidden)
    found = [*scores, *each] if experts.gate_first else [*each, *scores]
    if moe.shared_intermediate:
        found += gated_mlp(f"{layer}.{experts.shared}", hidden, moe.shared_intermediate, moe.layers, bias=bias)
    if experts.shared_gate:
        found += router(f"{layer}.{experts.shared_gate}", 1, hidden, moe.layers)
    if experts.correction:
        found.append(Tensor(f"{layer}.{experts.correction}", (moe.experts,), moe.layers, "other"))
    return found


def _each(experts: Experts, name: str, moe: MoE, hidden: int) -> list[Tensor]:
    """The experts' projections."""
    if experts.apart:
        return gated_mlp(f"{name}.{{}}", hidden, moe.intermediate, moe.layers * moe.experts)
    found = fused_experts(name, moe.experts, hidden, moe.intermediate, moe.layers)
    if experts.input_first:
        found = [replace(tensor, shape=(moe.experts, *tensor.shape[:0:-1])) for tensor in found]
    if not experts.biased:
        return found
    biases = [
        Tensor(f"{name}.{part}_bias", (moe.experts, width), moe.layers, "bias")
        for part, width in (("gate_up_proj", 2 * moe.intermediate), ("down_proj", hidden))
    ]
    return [tensor for pair in zip(found, biases, strict=True) for tensor in pair]


def behind_first(config: Config, layers: int) -> int:
    """Layers with experts: all but the first ``first_k_dense_replace`` (DeepSeek)."""
    return max(0, layers - config.count("first_k_dense_replace"))


def behind_dense(config: Config, layers: int) -> int:
    """Layers with experts: all but the first ``num_dense_layers``."""
    return max(0, layers - config.count("num_dense_layers", kind="layers"))


def listed(config: Config, layers: int) -> int:
    """Layers with experts: as ``mlp_layer_types`` says, or all but the first ``first_k_dense_replace``."""
    kinds = config.strings("mlp_layer_types")
    if not kinds:
        return max(0, layers - config.count("first_k_dense_replace", kind="layers"))
    if len(kinds) != layers:
        raise config.error("mlp_layer_types", f"must have one entry for each of the {layers} layers")
    return kinds.count("sparse")


def named(config: Config, layers: int) -> int:
    """Layers with experts: as ``mlp_layer_types`` says."""
    return config.strings("mlp_layer_types").count("sparse")


def every_few(config: Config, layers: int) -> int:
    """Layers with experts: every ``decoder_sparse_step``-th that ``mlp_only_layers`` does not name (Qwen)."""
    step, dense = config.size("decoder_sparse_step", kind="layers"), config.numbers("mlp_only_layers")
    return sum((layer + 1) % step == 0 and layer not in dense for layer in range(layers))


DEEPSEEK = Experts(
    ("n_routed_experts",),
    width="moe_intermediate_size",
    layers=behind_first,
    shared_count="n_shared_experts",
    gate_first=False,
)
"""DeepSeek's, which many have taken over."""

QWEN2 = Experts(
    ("num_experts",),
    width="moe_intermediate_size",
    layers=every_few,
    shared_width="shared_expert_intermediate_size",
    shared="mlp.shared_expert",
    shared_gate="mlp.shared_expert_gate",
)
"""Qwen 1.5's and 2's, beside a shared one."""

QWEN3 = Experts(("num_experts", "num_local_experts"), width="moe_intermediate_size", layers=every_few)
"""Qwen 3's."""

EXAONE = replace(QWEN3, layers=listed, shared_count="num_shared_experts", gate_first=False)
"""K-EXAONE's, beside shared ones."""


def first_dense(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """A config whose ``mlp_layer_types`` says which layers route, and nothing else; the dense ones come first."""
    kinds = given.get("mlp_layer_types")
    if not isinstance(kinds, list) or "sparse" not in kinds:
        return {key: value for key, value in given.items() if key != "first_k_dense_replace"}
    return {**given, "first_k_dense_replace": kinds.index("sparse")}


def first_dense_where_listed(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same where it has one; without it ``first_k_dense_replace`` counts."""
    return first_dense(given) if given.get("mlp_layer_types") is not None else given
