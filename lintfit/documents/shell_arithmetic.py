"""Integer arithmetic of the shell, ``$((…))``, once its variables are filled in."""

from __future__ import annotations

import re

from lintfit.documents.numerals import natural
from lintfit.documents.steps import Steps

_LARGEST = 2**63 - 1


def calculate(expression: str, steps: Steps) -> int | None:
    """An integer expression of ``+ - * / %`` and brackets; division goes towards zero, as in C. A sign takes a step.

    None where a number leaves the 64 bits of the shell's integers: what it makes of it is nobody's intention.
    """
    found = re.findall(r"[0-9]+|[-+*/%()]|\S", expression)
    if not steps.take(len(found)):
        return None
    stack: list[list[str | int]] = [[]]
    for token in found:
        if token == "(":
            stack.append([])
        elif token == ")":
            if len(stack) < 2 or (inner := _reduce(stack.pop())) is None:
                return None
            stack[-1].append(inner)
        elif token[0] in "0123456789":
            number = natural(token)
            if number is None:
                return None
            stack[-1].append(number)
        else:
            stack[-1].append(token)
    return _reduce(stack[0]) if len(stack) == 1 else None


def _reduce(items: list[str | int]) -> int | None:
    sums: list[int] = []
    sign, operator, expect_value = 1, "+", True
    for item in items:
        if expect_value and item in ("-", "+"):
            sign = -sign if item == "-" else sign
        elif expect_value and isinstance(item, int):
            value, sign, expect_value = sign * item, 1, False
            if operator in "+-":
                sums.append(value if operator == "+" else -value)
            elif operator == "*":
                sums[-1] *= value
            elif value == 0:
                return None
            else:
                quotient = abs(sums[-1]) // abs(value) * (1 if (sums[-1] < 0) == (value < 0) else -1)
                sums[-1] = quotient if operator == "/" else sums[-1] - quotient * value
        elif not expect_value and isinstance(item, str) and item in "+-*/%":
            operator, expect_value = item, True
        else:
            return None
        if sums and abs(sums[-1]) > _LARGEST:
            return None
    total = sum(sums)
    return None if expect_value or abs(total) > _LARGEST else total
