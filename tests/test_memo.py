"""What is kept, for whom, and until when."""

from __future__ import annotations

import gc

from lintfit.memo import Memo


def test_an_owner_is_told_by_its_identity() -> None:
    memo: Memo[str] = Memo()
    one, other = [1], [1]
    assert memo.get(one, "", lambda: "first") == "first"
    assert memo.get(one, "", lambda: "again") == "first"
    assert memo.get(other, "", lambda: "second") == "second"
    assert memo.get(one, "key", lambda: "third") == "third"


def test_the_identity_of_an_owner_that_is_gone_is_nobody_elses() -> None:
    memo: Memo[int] = Memo(most=10_000)
    for number in range(1000):
        # Were the list not kept, the next one would lie where it lay.
        assert memo.get([number], "", lambda number=number: number) == number  # type: ignore[misc]
        gc.collect(0)


def test_when_there_are_too_many_all_go() -> None:
    memo: Memo[int] = Memo(most=2)
    owners = [[1], [2], [3]]
    for number, owner in enumerate(owners):
        memo.keep(owner, "", number)
    assert [memo.find(owner, "") for owner in owners] == [None, None, 2]
