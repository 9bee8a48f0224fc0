"""How many rows there are where neighbouring patches have become one."""

from __future__ import annotations

from lintfit.frozen import frozen


@frozen
class Merged:
    """Merged patches: one of ``each`` positions, without the first ``less`` of an image."""

    each: int = 1
    less: int = 0

    def __call__(self, batch: int, seq: int) -> int:
        return batch * (seq - self.less) // self.each
