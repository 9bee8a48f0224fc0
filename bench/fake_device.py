"""A CUDA device that is not there: torch's fake tensors on ``cuda:0``, autograd and autocast included, without CUDA.

Python sees ``cuda:0``. What torch's C++ asks for a device is told the one that torch lets Python backends register,
because its autograd engine insists on streams of a device that it knows. Its autocast does not take tensors of such a
device, so that autocast's policy is carried out here (the lists of ``aten/src/ATen/autocast_mode.h``).
"""

from __future__ import annotations

import contextlib
import math
import types
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as F
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.weak import TensorWeakRef

from bench import fake_experts

NAME = "nogpu"
_REGISTERED: list[str] = []

HALF = {
    torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__, torch.mm, torch.Tensor.mm, torch.bmm, torch.Tensor.bmm,
    torch.addmm, torch.baddbmm, torch.addbmm, F.linear, torch._C._nn.linear, F.scaled_dot_product_attention,
    torch.conv1d, torch.conv2d, torch.conv3d,
}  # fmt: skip
"""Functions that autocast runs in half precision (``AT_FORALL_LOWER_PRECISION_FP``, those in use here)."""

FULL = {
    torch.pow, torch.Tensor.pow, torch.Tensor.__pow__, torch.rsqrt, torch.Tensor.rsqrt, torch.exp, torch.Tensor.exp,
    torch.log, torch.Tensor.log, torch.reciprocal, F.layer_norm, torch.layer_norm, F.softplus, F.nll_loss,
    F.cross_entropy, torch.expm1, torch.norm, F.rms_norm,
}  # fmt: skip
"""Functions that autocast runs in fp32 (``AT_FORALL_FP32``)."""

FULL_UNLESS_TOLD = {
    F.softmax, torch.softmax, torch.Tensor.softmax, F.log_softmax, torch.log_softmax, torch.Tensor.log_softmax,
    torch.sum, torch.Tensor.sum, torch.cumsum, torch.Tensor.cumsum, torch.prod,
}  # fmt: skip
"""Functions that run in fp32 unless a dtype is given (``AT_FORALL_FP32_SET_OPT_DTYPE``)."""


class _Autocast(TorchFunctionMode):
    """Autocast's casts, with its cache of trained fp32 weights, wherever ``torch.autocast("cuda")`` is on.

    The cache owns its copies, and knows weakly what they are of (``autocast_mode.cpp:cached_casts``).
    """

    def __init__(self) -> None:
        super().__init__()
        self.cache: list[tuple[Any, Any]] = []
        self.found: dict[int, tuple[Any, Any]] = {}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if torch.is_autocast_enabled("cuda"):
            if func in HALF:
                args, kwargs = self._cast(args, kwargs, self._half)
            elif func in FULL or (func in FULL_UNLESS_TOLD and kwargs.get("dtype") is None):
                args, kwargs = self._cast(args, kwargs, self._full)
        replaced = _KERNELS.get(func)
        return replaced(*args, **kwargs) if replaced else func(*args, **kwargs)

    def _cast(self, args: Any, kwargs: Any, how: Any) -> tuple[Any, Any]:
        with torch._C.DisableTorchFunction():
            return tuple(map(how, args)), {name: how(value) for name, value in kwargs.items()}

    def _half(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.dtype != torch.float32:
            return value
        if not (value.is_leaf and value.requires_grad) or value._is_view():
            return value.to(torch.get_autocast_dtype("cuda"))
        source, copy = self.found.get(id(value), (None, None))
        if source is None or source() is not value:
            made = value.to(torch.get_autocast_dtype("cuda"))
            source, copy = self.found[id(value)] = TensorWeakRef(value), made
            self.cache.append((source, copy))
        return copy

    def clear(self) -> None:
        """What the outermost context does when it ends."""
        self.cache.clear()
        self.found.clear()

    def _full(self, value: Any) -> Any:
        half = isinstance(value, torch.Tensor) and value.dtype in (torch.bfloat16, torch.float16)
        return value.to(torch.float32) if half else value


class _Silu(torch.autograd.Function):
    """One kernel each way, as on CUDA; elsewhere the backward is a formula of several operations."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return torch.empty_like(x)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return torch.empty_like(x)


class _RmsNorm(torch.autograd.Function):
    """One kernel each way, as on CUDA, for a norm without a weight; elsewhere a formula of several operations."""

    @staticmethod
    def forward(ctx: Any, x: Any, width: int) -> Any:
        ctx.save_for_backward(x, torch.empty(x.numel() // width, dtype=torch.float32, device=x.device))
        return torch.empty(x.shape, dtype=x.dtype, device=x.device)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        x, _ = ctx.saved_tensors
        return torch.empty(x.shape, dtype=x.dtype, device=x.device), None


def _rms_norm(x: Any, shape: Any, weight: Any = None, eps: Any = None) -> Any:
    if weight is not None:
        return F.rms_norm(x, shape, weight, eps)
    return _RmsNorm.apply(x, math.prod(shape))


class _Grouped(torch.autograd.Function):
    """The grouped product in full precision, which torch's kernel for CUDA has and its fake one refuses."""

    @staticmethod
    def forward(ctx: Any, x: Any, weight: Any) -> Any:
        ctx.save_for_backward(*(t if needed else None for t, needed in zip((x, weight), _other(ctx), strict=True)))
        ctx.laid_out = (x.shape, x.stride()), (weight.shape, weight.stride())
        return torch.empty(len(x), weight.shape[-1], dtype=x.dtype, device=x.device)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return tuple(
            torch.empty_strided(*like, dtype=grad.dtype, device=grad.device) if needed else None
            for like, needed in zip(ctx.laid_out, ctx.needs_input_grad, strict=True)
        )


def _other(ctx: Any) -> tuple[bool, bool]:
    """Which factors the other one's gradient needs."""
    of_x, of_weight = ctx.needs_input_grad
    return of_weight, of_x


def _grouped_mm(x: Any, weight: Any, *, offs: Any = None, bias: Any = None, out_dtype: Any = None) -> Any:
    if x.dtype is torch.bfloat16:
        return torch._grouped_mm(x, weight, offs=offs, bias=bias, out_dtype=out_dtype)
    return _Grouped.apply(x, weight)


AMPERE = (8, 0)
"""The compute capability from which SDPA has FlashAttention, and its memory-efficient kernel bf16."""

ALIGNED = 8
"""Elements that the rows of an additive mask come in (``transformers/attention.cpp:preprocess_mask``)."""


def _attention(
    query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False,
    scale: float | None = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    """The kernel that CUDA would take (``aten/src/ATen/native/transformers/cuda/sdp_utils.cpp``)."""
    aten = torch.ops.aten
    if attn_mask is not None and attn_mask.dtype is torch.bool:  # ``convert_boolean_attn_mask``
        attn_mask = torch.zeros_like(attn_mask, dtype=query.dtype).masked_fill_(attn_mask, 0.0)
    if attn_mask is not None and any(step % ALIGNED for step in attn_mask.stride()[:-1]):  # ``pad_bias``
        attn_mask = F.pad(attn_mask, (0, ALIGNED - attn_mask.shape[-1] % ALIGNED))[..., : attn_mask.shape[-1]]
    if not enable_gqa and query.shape[1] != key.shape[1]:  # ``check_batch_size_and_num_heads_dense``
        every = aten._scaled_dot_product_attention_math(query, key, value, attn_mask, dropout_p, is_causal, scale=scale)
        return every[0]
    ampere = torch.cuda.get_device_capability() >= AMPERE
    same = query.shape[-1] == value.shape[-1]
    if ampere and attn_mask is None and query.dtype != torch.float32 and query.shape[-1] <= 256 and same:
        return aten._scaled_dot_product_flash_attention(query, key, value, dropout_p, is_causal, scale=scale)[0]
    grouped = query.shape[1] != key.shape[1]
    if grouped or (query.dtype is torch.bfloat16 and not ampere):  # ``use_mem_efficient_attention``: its dtypes
        return aten._scaled_dot_product_attention_math(
            query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=grouped
        )[0]
    return aten._scaled_dot_product_efficient_attention(
        query, key, value, attn_mask, True, dropout_p, is_causal, scale=scale
    )[0]


def _to(x: Any, *args: Any, **kwargs: Any) -> Any:
    """``Tensor.to`` without the device that x is on: torch's C++, told of another one, would make a copy."""
    left = [value for value in args if not _is_device(value, x)]
    named = {key: value for key, value in kwargs.items() if not (key == "device" and _is_device(value, x))}
    return torch.Tensor.to(x, *left, **named) if left or "dtype" in named or "device" in named else x


def _is_device(value: Any, x: Any) -> bool:
    return isinstance(value, torch.device | str) and torch.device(value).type == x.device.type == "cuda"


def _einsum(equation: str, a: Any, b: Any) -> Any:
    """``torch.einsum`` of two tensors, whose one product autocast runs in half precision (``Linear.cpp``, ``einsum``,
    ``sumproduct_pair``): both are laid out as its factors first."""
    given, wanted = equation.replace(" ", "").split("->")
    first, second = given.split(",")
    sizes = dict(zip(first, a.shape, strict=True)) | dict(zip(second, b.shape, strict=True))
    both = [name for name in wanted if name in first and name in second]
    left = [name for name in wanted if name in first and name not in second]
    right = [name for name in wanted if name in second and name not in first]
    summed = sorted(set(first) - set(wanted))
    if set(summed) != set(second) - set(wanted):
        return torch.einsum(equation, a, b)
    if left and right and wanted.index(right[0]) < wanted.index(left[0]):  # ``swap_lo_ro``
        (a, first, left), (b, second, right) = (b, second, right), (a, first, left)

    def factor(x: Any, names: str, *groups: list[str]) -> Any:
        shape = [math.prod(sizes[name] for name in group) for group in groups]
        laid_out = x.permute([names.index(name) for group in groups for name in group]).reshape(shape)
        half = torch.is_autocast_enabled("cuda") and x.dtype is torch.float32
        return laid_out.to(torch.get_autocast_dtype("cuda")) if half else laid_out

    out = torch.bmm(factor(a, first, both, left, summed), factor(b, second, both, summed, right))
    made = [*both, *left, *right]
    return out.view([sizes[name] for name in made]).permute([made.index(name) for name in wanted])


_KERNELS = {
    torch.Tensor.to: _to,
    torch.einsum: _einsum,
    F.silu: lambda x, inplace=False: _Silu.apply(x),
    F.rms_norm: _rms_norm,
    F.scaled_dot_product_attention: _attention,
    torch._grouped_mm: _grouped_mm,
}


_CONVOLUTIONS = {torch.ops.aten.convolution.default: 0, torch.ops.aten.convolution_backward.default: 1}
"""Convolutions each way, and which of their arguments is the input."""


def _rearranged(x: Any, groups: int) -> int:
    """Bytes of the copy that CUDA's kernel for a convolution of every channel makes of an input that has gaps
    (``Convolution.cpp``, ``_conv_depthwise2d(input.contiguous(), …)``)."""
    return 0 if groups == 1 or x.is_contiguous() else x.numel() * x.itemsize


def _flash_scratch(grad: Any, q: Any, k: Any, *rest: Any) -> list[int]:
    """``flash_api.cpp:mha_bwd``: softmax_d, dq_accum, dk_expanded, dv_expanded."""
    batch, heads, length, dim = q.shape
    rows = batch * heads * _up(length, 128) * 4
    expanded = [k.shape[0] * heads * k.shape[2] * dim * 2] * 2 if k.shape[1] != heads else []
    return [rows, rows * _up(dim, 32), *expanded]


def _efficient_scratch(grad: Any, q: Any, k: Any, v: Any, *rest: Any) -> list[int]:
    """``attention_backward.cu:_efficient_attention_backward``: delta and the workspace, on an A100 or newer."""
    batch, heads, length, dim = q.shape
    value, widest = v.shape[-1], max(dim, v.shape[-1])
    half = q.itemsize == 2
    rows = 64 if widest <= 64 else 128
    columns = 128 if half and 64 < widest <= 128 else 64
    delta = batch * heads * length * 4
    tiles = -(-length // rows) * -(-dim // columns) * (rows * columns * 4 + 16)
    if not half:
        return [delta, max(batch * heads * tiles, delta * value + delta)]
    if widest > 128:
        parts = max(1, min(-(-k.shape[2] // columns), 200 // (batch * heads)))
        tiles += parts * columns * (_up(dim, rows) + _up(value, rows)) * 4
    return [delta, batch * heads * tiles]


def _up(size: int, step: int) -> int:
    return -(-size // step) * step


_SCRATCH = {
    torch.ops.aten._scaled_dot_product_flash_attention_backward.default: _flash_scratch,
    torch.ops.aten._scaled_dot_product_efficient_attention_backward.default: _efficient_scratch,
}
"""Room that the fused kernels of attention take in their backward."""


_IN_PLACE = (torch.ops.aten.add.Tensor, torch.ops.aten.scatter_add.default)
"""What the backward does in place, the second in ``gather``'s, unless tensors are subclasses."""


class Counter(TorchDispatchMode):
    """Notes every tensor that an operation makes in a log, and sums of gradients that the engine makes."""

    def __init__(self, log: Any) -> None:
        super().__init__()
        self.log = log

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        numbers = [
            self.log.see(tensor)
            for tensor in torch.utils._pytree.tree_leaves(out)
            if isinstance(tensor, torch.Tensor) and tensor.device.type == "cuda"
        ]
        if func in _CONVOLUTIONS:
            self.log.passing(_rearranged(args[_CONVOLUTIONS[func]], args[-1] if len(args) == 9 else args[-2]))
        if func in _SCRATCH:
            self.log.passing(*_SCRATCH[func](*args))
        if func is torch.ops.aten.embedding_dense_backward.default:
            grad = args[0]
            tokens = grad.numel() // grad.shape[-1]
            if tokens > 3072:
                self.log.passing(tokens * (4 * grad.shape[-1] + 6 * 8))
        if func in _IN_PLACE and _in_backward() and _whole(args[0]) and numbers:
            term = self.log.see(args[0])
            if term != numbers[0]:
                self.log.heirs[numbers[0]] = term
        return out


def _in_backward() -> bool:
    """Whether the autograd engine runs, and no checkpointed forward inside it: a ``no_grad`` alone is an evaluation."""
    return not torch.is_grad_enabled() and torch._C._current_graph_task_id() != -1


def _whole(tensor: Any) -> bool:
    """Whether a tensor fills its storage without gaps: what the engine may add into."""
    return (
        isinstance(tensor, torch.Tensor)
        and torch.ops.aten.is_non_overlapping_and_dense(tensor)
        and tensor.numel() * tensor.itemsize == tensor.untyped_storage().nbytes()
        and tensor._base is None
    )


PREPARE = "_preprocess_mask_arguments"
"""What transformers' masks are made of, whatever kind of them is asked for."""


@contextlib.contextmanager
def machine(*, padded: bool = False, capability: tuple[int, int] = AMPERE) -> Iterator[FakeTensorMode]:
    """Fake tensors on ``cuda:0``, forward, backward and autocast; ``padded``: masks hide something.

    ``capability``: the GPU's compute capability, by which SDPA takes its kernel.
    """
    _register()
    inside, outside = torch.device("cuda:0"), torch.device(f"{NAME}:0")
    make, dispatch = FakeTensor.__new__, FakeTensor.__torch_dispatch__.__func__
    device = torch.ops.prim.device.default
    answer = fake_tensor._DISPATCH_META_HANDLERS[device]

    def new(cls: Any, mode: Any, elem: Any, place: Any, *rest: Any, **more: Any) -> Any:
        here = inside if torch.device(place).type == NAME else place
        return make(cls, mode, elem, here, *rest, **more)

    def dispatched(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is device and not args[0].fake_mode.in_kernel_invocation and args[0].fake_device.type == "cuda":
            return outside
        return dispatch(cls, func, types, args, kwargs or {})

    def answered(args: Any) -> Any:
        found = answer(args)
        return outside if found.type == "cuda" else found

    autocast = _Autocast()
    clear = torch.clear_autocast_cache

    def clear_both() -> None:
        autocast.clear()
        clear()

    engine = torch.autograd._engine_run_backward

    def run_backward(*args: Any, **kwargs: Any) -> Any:
        with autocast:  # a mode is off inside its own calls, and checkpointing runs forwards inside this one
            return engine(*args, **kwargs)

    patches = (
        mock.patch("torch.autograd._engine_run_backward", run_backward),
        mock.patch.object(FakeTensor, "__new__", staticmethod(new)),
        mock.patch.object(FakeTensor, "__torch_dispatch__", classmethod(dispatched)),
        mock.patch.dict(fake_tensor._DISPATCH_META_HANDLERS, {device: answered}),
        mock.patch("torch.cuda.amp.common.amp_definitely_not_available", lambda: False),
        mock.patch("torch.cuda.is_bf16_supported", lambda *_, **__: True),
        mock.patch("torch.cuda.get_device_capability", lambda *_: capability),
        mock.patch("torch.clear_autocast_cache", clear_both),
        torch.autograd.set_multithreading_enabled(False),
    )
    import transformers.masking_utils as masking

    # Whether sequences are packed is looked up in the data, which fake tensors have none of: they are not. Whether a
    # mask hides anything is not looked up in fake tensors, as though they were traced: it is kept, as one that does,
    # but for those that a model makes of ones, which it would find to hide nothing.
    patches = (*patches, mock.patch.object(masking, "find_packed_sequence_indices", lambda position_ids: None))
    patches = (*patches, mock.patch.object(masking, PREPARE, _but_ones(getattr(masking, PREPARE))))
    if not padded:  # nor does a mask hide anything that a model makes itself
        patches = (*patches, mock.patch.object(masking, "is_tracing", lambda tensor=None: False))
        patches = (*patches, mock.patch.object(masking, "fast_all", lambda mask: True))
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    with contextlib.ExitStack() as stack:
        stack.enter_context(fake_experts.spread())
        for patch in patches:
            stack.enter_context(patch)
        stack.enter_context(mode)
        stack.enter_context(autocast)
        yield mode


def _but_ones(prepare: Callable[..., Any]) -> Callable[..., Any]:
    """Without masks of floats, which are the ones that a decoder makes itself (``modeling_bart.py``)."""

    def prepared(config: Any, inputs_embeds: Any, attention_mask: Any, *rest: Any, **more: Any) -> Any:
        own = attention_mask is not None and attention_mask.ndim == 2 and attention_mask.is_floating_point()
        return prepare(config, inputs_embeds, None if own else attention_mask, *rest, **more)

    return prepared


def _register() -> None:
    """Tell torch of a device for Python backends, once in a process."""
    if _REGISTERED:
        return
    from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

    module = types.SimpleNamespace(
        is_available=lambda: False,
        is_initialized=lambda: False,
        device_count=lambda: 0,
        current_device=lambda: 0,
        _is_in_bad_fork=lambda: False,
        manual_seed_all=lambda seed: None,
        get_amp_supported_dtype=lambda: [torch.bfloat16, torch.float16],
    )
    _setup_privateuseone_for_python_backend(NAME, module)
    _REGISTERED.append(NAME)
