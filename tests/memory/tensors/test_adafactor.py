"""Adafactor's step, as it goes from tensor to tensor."""

from __future__ import annotations

import math

from lintfit.memory.spec import DTYPE_BYTES, Dtype
from lintfit.memory.tensors import adafactor
from lintfit.memory.tensors.parameters import Weight


def weight(name: str, *shape: int, copies: int = 1, half: bool = True, trainable: bool = True) -> Weight:
    dtype: Dtype = "bf16" if half else "fp32"
    storage = DTYPE_BYTES[dtype] * math.prod(shape)
    return Weight(name, shape, copies, dtype, trainable, storage, "norm" if "norm" in name else "linear", "layer")


def test_a_tensor_alone_has_its_copies() -> None:
    turn = adafactor.worst([weight("head", 1024, 1024)])
    assert turn is not None
    assert (turn.own, turn.left) == (4 * 4 * 2**20, 0)
    turn = adafactor.worst([weight("head", 1024, 1024, half=False)])
    assert turn is not None
    assert turn.own == 2 * 4 * 2**20


def test_the_update_of_the_tensor_before_is_still_there() -> None:
    turn = adafactor.worst([weight("words", 512, 1024), weight("head", 1024, 1024)])
    assert turn is not None
    assert turn.before is not None and turn.before.name == "words"
    assert turn.total == 4 * 4 * 2**20 + 4 * 2**19


def test_layers_follow_each_other() -> None:
    first, last = weight("layers.{}.a", 1024, 1024, copies=2), weight("layers.{}.b", 512, 1024, copies=2)
    turn = adafactor.worst([weight("words", 8, 1024), first, last])
    assert turn is not None
    assert (turn.weight.name, turn.before) == ("layers.{}.a", last)


def test_a_single_layer_follows_none() -> None:
    turn = adafactor.worst([weight("layers.{}.a", 1024, 1024), weight("layers.{}.b", 512, 1024)])
    assert turn is not None
    assert turn.before is None


def test_norms_are_a_group_of_their_own() -> None:
    turn = adafactor.worst([weight("norm", 4096), weight("head", 1024, 1024)])
    assert turn is not None
    assert turn.before is None


def test_what_is_not_trained_has_no_turn() -> None:
    assert adafactor.worst([weight("words", 512, 1024, trainable=False)]) is None
    turn = adafactor.worst([weight("words", 512, 1024, trainable=False), weight("head", 1024, 1024)])
    assert turn is not None
    assert turn.before is None
