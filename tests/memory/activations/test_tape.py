"""The tape against autograd's rules on graphs small enough to follow by hand. Sizes in KiB below are exact blocks."""

from __future__ import annotations

from lintfit.memory.activations import replay
from lintfit.memory.activations.form import Live, Table, live
from lintfit.memory.activations.tape import BLOCK, LOGITS, Tape, Var, pairs, rounded

K = 1024


def saved(t: Tape, batch: int = 1, seq: int = 1) -> int:
    return sum(storage.size(batch, seq) for storage in t.saved())


def backward(t: Tape, out: Var, kept: float = 1.0, batch: int = 1, seq: int = 1) -> Live:
    table = Table()
    form = replay.backward(t, out, table)
    sizes = table.sizes(batch, seq)
    return form.peak(sizes, live(form.saved, sizes), kept=kept)


def test_blocks_of_512_bytes() -> None:
    assert (rounded(1), rounded(512), rounded(513)) == (BLOCK, BLOCK, 2 * BLOCK)


def test_a_storage_that_two_operations_save_counts_once() -> None:
    t = Tape()
    x = t.new(K, 2)
    t.op(t.new(K, 2), (x,), (x,))
    t.op(t.new(K, 2), (x,), (x,))
    assert saved(t) == 2 * K


def test_views_share_a_storage_that_lives_as_a_whole() -> None:
    t = Tape()
    whole = t.new(3 * K, 2)
    parts = t.split(whole, (K, K, K))
    t.op(t.new(K, 2), (parts[1],), (parts[1],))
    assert saved(t) == 6 * K


def test_nothing_is_saved_where_no_gradient_flows() -> None:
    t = Tape()
    x = t.new(K, 2, grad=False)
    out = t.op(t.new(K, 2), (x,), (x,))
    assert not out.grad
    assert t.nodes == []


def test_a_chain_holds_two_gradients_at_a_time() -> None:
    t = Tape()
    x = t.new(K, 4)
    y = t.map(t.map(t.map(x)))
    assert backward(t, y) == Live(temporaries=2 * 4 * K)


def test_a_residual_gradient_waits_while_the_branch_runs() -> None:
    t = Tape()
    x = t.new(K, 4)
    wide = t.op(t.new(4 * K, 4), (x,))
    branch = t.op(t.new(K, 4), (wide,))
    out = t.add(x, branch)
    # The residual's gradient, the branch's (the same buffer), the wide one and the narrow one in the making.
    assert backward(t, out).total == (4 + 16 + 4) * K


def test_parameter_gradients_stay_as_far_as_they_are_kept() -> None:
    t = Tape()
    x = t.new(K, 2)
    out = t.op(t.new(K, 2), (x,), (x,), weights=(8 * K,))
    assert backward(t, out, kept=1.0) == Live(2 * K, temporaries=4 * K, gradients=8 * K)
    assert backward(t, out, kept=0.0) == Live(2 * K, temporaries=4 * K + 8 * K)
    assert t.weights == 8 * K


def test_gradients_of_logits_are_logits() -> None:
    t = Tape()
    logits = t.new(K, 4, kind=LOGITS)
    log = t.new(K, 4, kind=LOGITS)
    t.op(log, (logits,), (log,))
    loss = t.op(t.new(1, 4), (log,))
    # The saved log-softmax, its gradient, and the logits' gradient.
    assert backward(t, loss).logits == 3 * 4 * K


def test_recomputation_stops_at_the_last_saved_tensor() -> None:
    t = Tape(watched=True)
    x = t.new(K, 2)
    x.storage.external = True
    y = t.map(x, (x,))
    z = t.op(t.new(16 * K, 2), (y,), (y,))
    table = Table()
    passed = replay.forward(t, x, table)
    worst, early = (passed.peak(table.sizes(1, 1), early=early) for early in (False, True))
    assert early == 2 * K
    assert worst == 2 * K + 32 * K
    assert z.grad


def test_a_forward_pass_peaks_at_an_operation_that_saves_its_own_result() -> None:
    t = Tape(watched=True)
    x = t.new(K, 2)
    x.storage.external = True
    t.op(wide := t.new(16 * K, 2), (x,), (wide,))
    t.op(t.new(K, 2), (wide,))
    table = Table()
    passed = replay.forward(t, x, table)
    assert passed.peak(table.sizes(1, 1), early=True) == 32 * K
    assert passed.peak(table.sizes(1, 1)) == (32 + 2) * K


def test_the_last_operation_may_be_the_peak() -> None:
    t = Tape(watched=True)
    x = t.new(K, 2)
    x.storage.external = True
    t.op(out := t.new(K, 2), (x,), (out,))
    table = Table()
    assert replay.forward(t, x, table).peak(table.sizes(1, 1)) == 2 * K


def test_the_input_stays_where_nobody_else_counts_it() -> None:
    t = Tape(watched=True)
    x = t.new(K, 2)
    t.map(t.map(x))
    table = Table()
    passed = replay.forward(t, x, table)
    assert passed.peak(table.sizes(1, 1)) == 3 * 2 * K


def test_a_sum_is_no_point_of_the_backward() -> None:
    """It allocates nothing: both terms get the gradient that comes in."""
    t = Tape()
    x = t.new(K, 4)
    out = t.add(t.map(x), x)
    form = replay.backward(t, out, Table())
    assert len(form.points) == 2
    assert backward(t, out) == Live(temporaries=2 * 4 * K)


def test_one_recording_holds_for_every_micro_batch() -> None:
    """The scores outgrow the wide tensor where the sequence is long: another point is the peak then."""
    t = Tape()
    x = t.new(K, 2)
    wide = t.op(t.new(64 * K, 2), (x,), (x,))
    narrow = t.op(t.new(K, 2), (wide,), (wide,))
    scores = t.op(t.new(1, 4, per=pairs), (narrow,), (narrow,))
    out = t.op(t.new(K, 2), (scores,), (scores,))
    for batch, seq in ((1, 64), (3, 64), (1, 200 * K)):
        tokens, matrix = 2 * batch * seq * K, 4 * batch * seq**2
        everything = 66 * tokens + matrix
        peaks = everything + tokens + matrix, 67 * tokens + matrix, (65 + 1 + 64) * tokens, 66 * tokens
        assert backward(t, out, batch=batch, seq=seq).total == max(peaks)
        assert saved(t, batch, seq) == everything
