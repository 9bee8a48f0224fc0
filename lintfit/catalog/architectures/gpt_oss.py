"""gpt-oss 20b and 120b: biases everywhere, attention sinks, experts stored input-first."""

from __future__ import annotations

from lintfit.catalog.architectures import known
from lintfit.catalog.architectures._blocks import Shape, router
from lintfit.catalog.architectures._decoder import KEYS, DecoderStyle, around, layer_norms, self_attention
from lintfit.catalog.config import Config
from lintfit.catalog.config_defaults import defaults
from lintfit.catalog.facts import NEVER, Code, Tensor
from lintfit.frozen import replace

MIXTRAL = known("mixtral")

REQUIRED = (*KEYS, "num_local_experts")
DEFAULTS = defaults("gpt_oss")
CODE = Code(sdpa=NEVER, flash_attention_2=NEVER, flash_by_another_kernel=True, liger=True)


def shape(config: Config) -> Shape:
    numbers = MIXTRAL.shape(config)
    if numbers.sliding_window and not config.strings("layer_types"):
        return replace(numbers, sliding_layers=(numbers.layers + 1) // 2)
    return numbers


def tensors(config: Config) -> tuple[Tensor, ...]:
    numbers, bias, layer = shape(config), config.flag("attention_bias"), "model.layers.{}"
    style = DecoderStyle(qkv_bias=bias, out_bias=bias)
    assert numbers.moe is not None
    experts, hidden, width, copies = numbers.moe.experts, numbers.hidden, numbers.intermediate, numbers.layers
    layers = [
        Tensor(f"{layer}.self_attn.sinks", (numbers.heads,), copies, "other"),
        *self_attention(numbers, style),
        *router(f"{layer}.mlp.router", experts, hidden, copies, bias=True),
        Tensor(f"{layer}.mlp.experts.gate_up_proj", (experts, hidden, 2 * width), copies, "expert"),
        Tensor(f"{layer}.mlp.experts.gate_up_proj_bias", (experts, 2 * width), copies, "bias"),
        Tensor(f"{layer}.mlp.experts.down_proj", (experts, width, hidden), copies, "expert"),
        Tensor(f"{layer}.mlp.experts.down_proj_bias", (experts, hidden), copies, "bias"),
        *layer_norms(numbers, style),
    ]
    return around(numbers, style, layers)
