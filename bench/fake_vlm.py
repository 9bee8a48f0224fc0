"""Images for vision-language models under fake tensors, for ``bench.fake_tensors``.

Where in the sequence the images stand is looked up in the data, which fake tensors have none of: ``masked_scatter``
here makes what it would make, and the features' gradient has their shape.
"""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections.abc import Iterator
from typing import Any
from unittest import mock

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_map


class _Scatter(torch.autograd.Function):
    """``masked_scatter``: a new tensor; on the way back a gradient for either."""

    @staticmethod
    def forward(ctx: Any, x: Any, mask: Any, source: Any) -> Any:
        ctx.save_for_backward(mask)
        ctx.shape = source.shape, source.dtype
        return torch.empty_like(x)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        shape, dtype = ctx.shape
        return torch.empty_like(grad), None, torch.empty(shape, dtype=dtype, device=grad.device)


TYPED = frozenset({"gemma3", "paligemma"})
"""Model types that are told which tokens stand for images."""
SEQUENCES = frozenset({"idefics2", "idefics3", "smolvlm"})
"""Model types whose pixels come by sequences."""
TILED = frozenset({"llava_next", "llava_next_video", "llava_onevision"})
"""Model types whose pixels come by images, and that look at the images' sizes."""


class _Take(torch.autograd.Function):
    """``x[mask, :]``: the rows of the images' tokens, and their places for the way back."""

    @staticmethod
    def forward(ctx: Any, x: Any, rows: int) -> Any:
        ctx.save_for_backward(torch.empty(rows, x.dim() - 1, dtype=torch.long, device=x.device))
        ctx.shape = x.shape
        return torch.empty(rows, x.shape[-1], dtype=x.dtype, device=x.device)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return torch.empty(ctx.shape, dtype=grad.dtype, device=grad.device), None


class _Put(torch.autograd.Function):
    """``x[mask, :] = values``, in place: on the way back a gradient for either."""

    @staticmethod
    def forward(ctx: Any, x: Any, values: Any) -> Any:
        ctx.save_for_backward(torch.empty(len(values), x.dim() - 1, dtype=torch.long, device=x.device))
        ctx.shape = values.shape
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return torch.empty_like(grad), torch.empty(ctx.shape, dtype=grad.dtype, device=grad.device)


PLAIN = frozenset({"exaone4_5_vision"})
"""Encoders whose model gives its text no positions of three kinds."""
MERGED = 4
PADDED = 1024
"""Patches of a picture that is filled up with padding."""
SIDE = 64
"""Patches along either side of an image whose size is not the config's."""


class _Values(TorchFunctionMode):
    """Answers what fake tensors cannot. ``rows``: tokens of all images."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.rows = rows

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.Tensor.__getitem__ and _cuts_off(args[1]):
            return args[0][:PADDED, args[1][1]]
        if func is torch.Tensor.masked_scatter:
            return _Scatter.apply(*args)
        if func is torch.Tensor.__bool__ or func is torch.Tensor.item:
            return True
        if func is torch.Tensor.__getitem__ and isinstance(args[1], torch.Tensor) and args[1].dtype is torch.bool:
            return args[0].flatten(0, args[1].dim() - 1)
        if func is torch.Tensor.__getitem__ and _looks_up(*args):
            return torch.empty(args[1][0].shape, dtype=args[0].dtype, device="cuda:0")
        if func in (torch.Tensor.__getitem__, torch.Tensor.__setitem__) and _masks(args[1]):
            return _Take.apply(args[0], self.rows) if len(args) == 2 else _Put.apply(args[0], args[2])
        if func is torch.Tensor.__setitem__ and _marks(args[1], args[2]):
            return _Put.apply(args[0], args[2][None])
        if func is torch.repeat_interleave and isinstance(args[1], torch.Tensor):
            return _repeated(args[0], self.rows * MERGED)
        return func(*args, **(kwargs or {}))


def _masks(place: Any) -> bool:
    """Whether a place in a tensor begins with a boolean mask and has more behind it."""
    return isinstance(place, tuple) and isinstance(place[0], torch.Tensor) and place[0].dtype is torch.bool


def _marks(place: Any, value: Any) -> bool:
    """Whether a row is put where a boolean mask says."""
    masked = isinstance(place, torch.Tensor) and place.dtype is torch.bool
    return masked and isinstance(value, torch.Tensor) and value.dim() == 1


def _cuts_off(place: Any) -> bool:
    """Whether a slice ends where a fake tensor says."""
    return isinstance(place, tuple) and isinstance(place[0], slice) and isinstance(place[0].stop, FakeTensor)


def _looks_up(table: Any, place: Any) -> bool:
    """Whether a fake tensor says which rows of a real one, the images' sizes, are meant."""
    return isinstance(place, tuple) and isinstance(place[0], FakeTensor) and not isinstance(table, FakeTensor)


def _repeated(x: Any, rows: int) -> Any:
    return torch.empty(rows, *x.shape[1:], dtype=x.dtype, device=x.device)


def images(config: Any, ids: Any, spec: dict[str, Any]) -> dict[str, Any]:
    """The pixels of a micro-batch and what comes with them: images of the config's size, or of 64 by 64 patches."""
    vision, batch = config.vision_config, len(ids)
    count, tiles = spec["images"], spec.get("image_tiles", 1)
    if config.model_type == "kimi_k25":
        return _framed(vision, batch * count)
    if config.model_type == "paddleocr_vl":
        places = torch.empty(3, *ids.shape, dtype=torch.long, device="cuda:0")
        grid = _Grid([(1, SIDE, SIDE)] * (batch * count))
        return {**_framed(vision, batch * count), "image_grid_thw": grid, "position_ids": places}
    if hasattr(vision, "temporal_patch_size"):
        return _packed(vision, ids, batch * count)
    size = getattr(vision, "image_size", 512)
    size = size if isinstance(size, int) else size[0]
    shape = (batch * count * tiles, 3, size, size)
    if config.model_type == "mllama":
        return _crossed(ids, (batch, count, vision.max_num_tiles), size)
    if config.model_type in SEQUENCES:
        shape = (batch, count * tiles, 3, size, size)
    elif config.model_type in TILED:
        shape = (batch * count, tiles, 3, size, size)
    elif vision.model_type == "pixtral":
        side = SIDE * vision.patch_size
        shape = (batch * count, 3, side, side)
    if config.model_type == "lfm2_vl":
        return _masked(vision, shape[0], (size // vision.patch_size) ** 2)
    given = {"pixel_values": torch.empty(*shape, device="cuda:0")}
    if config.model_type in TYPED:
        given["token_type_ids"] = torch.empty_like(ids)
    if vision.model_type == "pixtral" or config.model_type in TILED:
        rows = [int(tiles**0.5) * size or size] * 2 if config.model_type in TILED else [SIDE * vision.patch_size] * 2
        given["image_sizes"] = [rows] * (batch * count)
    return given


def _framed(vision: Any, count: int) -> dict[str, Any]:
    """Kimi's way: all patches of all images, each with its channels apart."""
    with torch._C._DisableTorchDispatch():
        grid = torch.tensor([[1, SIDE, SIDE]] * count)
    shape = count * SIDE * SIDE, 3, vision.patch_size, vision.patch_size
    return {"pixel_values": torch.empty(*shape, device="cuda:0"), "image_grid_thw": grid}


class _Counts(list[Any]):
    """Counts of images that are asked for as a tensor's are."""

    def __floordiv__(self, by: int) -> _Counts:
        return _Counts(each // by for each in self)

    def tolist(self) -> list[int]:
        return list(self)


class _Grid(list[Any]):
    """The patches of images along time and either side, as numbers: PaddleOCR looks at each."""

    def prod(self, dim: int) -> _Counts:
        return _Counts(time * high * wide for time, high, wide in self)


class _Sizes(list[Any]):
    """Sizes of pictures that are asked for as a tensor's are, whose values fake ones have none of."""

    @property
    def shape(self) -> tuple[int, int]:
        return len(self), 2

    def tolist(self) -> list[int]:
        return list(self)


def _masked(vision: Any, count: int, patches: int) -> dict[str, Any]:
    """SigLIP 2's way: patches of pictures, how many of these there are along either side, and which are padding."""
    side, width = int(patches**0.5), vision.num_channels * vision.patch_size**2
    return {
        "pixel_values": torch.empty(count, patches, width, device="cuda:0"),
        "spatial_shapes": _Sizes(_Sizes([side, side]) for _ in range(count)),
        "pixel_attention_mask": torch.empty(count, patches, dtype=torch.long, device="cuda:0"),
    }


def _crossed(ids: Any, seen: tuple[int, int, int], size: int) -> dict[str, Any]:
    """Llama 3.2 Vision's way: tiles of images of sequences, and which of them each token of the text attends to."""
    batch, images, _ = seen
    return {
        "pixel_values": torch.empty(*seen, 3, size, size, device="cuda:0"),
        "aspect_ratio_ids": torch.empty(batch, images, dtype=torch.long, device="cuda:0"),
        "aspect_ratio_mask": torch.empty(*seen, dtype=torch.long, device="cuda:0"),
        "cross_attention_mask": torch.empty(*ids.shape, *seen[1:], dtype=torch.long, device="cuda:0"),
    }


def pictures(spec: dict[str, Any]) -> int:
    """Pictures that the encoder gets in a micro-batch."""
    return int(spec["micro_batch_size"] * spec["images"] * spec.get("image_tiles", 1))


def _packed(vision: Any, ids: Any, count: int) -> dict[str, Any]:
    """Qwen's way: all patches of all images in one sequence."""
    width = 3 * vision.temporal_patch_size * vision.patch_size**2
    with torch._C._DisableTorchDispatch():
        grid = torch.tensor([[1, SIDE, SIDE]] * count)
    given = {"pixel_values": torch.empty(count * SIDE * SIDE, width, device="cuda:0"), "image_grid_thw": grid}
    if vision.model_type not in PLAIN:
        given["position_ids"] = torch.empty(3, *ids.shape, dtype=torch.long, device="cuda:0")
    return given


def _on_values(function: Any) -> Any:
    """A function of the images' sizes, run on their values; its tensors as fake ones."""

    def found(*args: Any, **kwargs: Any) -> Any:
        with _disable_current_modes(), torch._C.DisableTorchFunction():
            real = function(*[torch.tensor(one) if isinstance(one, _Grid) else one for one in args], **kwargs)
        return tree_map(
            lambda x: torch.empty(x.shape, dtype=x.dtype, device="cuda:0") if torch.is_tensor(x) else x, real
        )

    return found


def _lengths(model_type: str, pictures: int) -> Any:
    """Values of a tensor that counts: pictures of samples, or patches of images or windows, which are all alike.

    Qwen asks on the CPU for merged patches.
    """

    def lengths(tensor: Any) -> list[int]:
        merged = model_type == "mistral3" or tensor.device.type == "cpu"
        total = SIDE * SIDE * pictures // (MERGED if merged else 1)
        if model_type in SEQUENCES:
            total = pictures
        return [total // tensor.numel()] * tensor.numel()

    return lengths


NAMES = (
    "get_vision_position_ids", "get_vision_attention_seqlens", "get_vision_window_index", "get_max_seqlen",
    "get_vision_interpolation_indices_and_weights", "get_vision_frame_index", "get_vision_temporal_merge_index",
)  # fmt: skip


@contextlib.contextmanager
def features(model: Any, pictures: int) -> Iterator[None]:
    """A forward pass in which so many pictures are put into the sequences."""
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    written = {type(module).__module__ for module in base.modules()}  # an encoder may be another model's
    modules = [sys.modules[name] for name in sorted(written) if name.startswith("transformers.models.")]
    with contextlib.ExitStack() as stack:
        for module, name in itertools.product(modules, NAMES):
            if hasattr(module, name):
                stack.enter_context(mock.patch.object(module, name, _on_values(getattr(module, name))))
        stack.enter_context(mock.patch.object(FakeTensor, "tolist", _lengths(base.config.model_type, pictures)))
        if base.config.model_type == "lfm2_vl":  # a picture somewhere in the batch has padding
            stack.enter_context(
                mock.patch("transformers.masking_utils._ignore_bidirectional_mask_sdpa", lambda *_, **__: False)
            )
        stack.enter_context(_Values(SIDE * SIDE * pictures // MERGED))
        yield
