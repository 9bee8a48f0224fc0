"""Integer arithmetic of the shell, ``$((…))``, once its variables are filled in."""

from __future__ import annotations

import re


def calculate(expression: str) -> int | None:
    """An integer expression of ``+ - * / %`` and brackets; division goes towards zero, as in C."""
    found = re.findall(r"[0-9]{1,18}|[-+*/%()]|\S", expression)
    stack: list[list[str | int]] = [[]]
    for token in found:
        if token == "(":
            stack.append([])
        elif token == ")":
            if len(stack) < 2 or (inner := _reduce(stack.pop())) is None:
                return None
            stack[-1].append(inner)
        elif token.isdigit():
            stack[-1].append(int(token))
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
    return None if expect_value else sum(sums)
