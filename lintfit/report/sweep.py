"""A sweep as a table of GiB: one setting in rows, the other in columns, coloured by verdict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from lintfit.findings.questions import Cell, Sweep
from lintfit.memory.micro_batch.vision.images import largest, tokens
from lintfit.memory.result import Verdict
from lintfit.memory.spec import Spec
from lintfit.report import Line, View
from lintfit.report.bars import VERDICT_STYLES, gib
from lintfit.report.heading import heading
from lintfit.report.styled import show_blocks, wrapped

_MARKS = {Verdict.FITS: " ", Verdict.TIGHT: "~", Verdict.DOES_NOT_FIT: "✗", Verdict.UNKNOWN: "?"}
"""What stands behind a figure for those who see no colours."""
_ASCII = {"✗": "x"}


def render(sweeps: Iterable[Sweep], view: View) -> str:
    """Every run with its table."""
    return show_blocks([_block(each, view) for each in sweeps], view)


def render_table(found: Sweep, taken: str, view: View) -> str:
    """The usual ways to train one model, with what they have in common above them; ``taken``: the GPU's name."""
    spec = found.run.run.spec
    assert spec is not None
    facts, gpu = spec.facts, spec.gpu
    common = (
        f"micro-batch {spec.micro_batch_size}, {spec.seq_len:,} tokens, gradient checkpointing on, "
        f"{spec.weights_dtype} weights under bf16 autocast, AdamW; LoRA of rank 16 on all linear layers, QLoRA in nf4 "
        "with double quantization; offload is ZeRO-3 with optimizer and parameters on the host"
    )
    on = f" on {gpu.name}" if gpu is not None else ""
    lines: list[Line] = [[(f"{facts.name} ({facts.parameters / 1e9:.1f} B){on}: GiB on each GPU", "path")]]
    lines += wrapped([("  ", "")], common, view.width, 2, "dim")
    lines += wrapped([("  ", "")], taken, view.width, 2) if taken else []
    lines += [[], *_table(found, view)]
    lines += wrapped(
        [("  ", "")], "any flag asks about one run: --zero 3, --qlora, --batch 4, --gpus 8", view.width, 2, "dim"
    )
    return show_blocks([lines], view)


def _block(found: Sweep, view: View) -> list[Line]:
    return [[(found.run.run.id, "path")], *heading(found.run.run, view), [], *_table(found, view)]


def _table(found: Sweep, view: View) -> list[Line]:
    lines: list[Line] = []
    rows = found.settings[0]
    columns = found.settings[1] if len(found.settings) > 1 else ""
    tops = _distinct(found.cells, columns) if columns else [None]
    named = rows.replace("_", " ")
    wide = max(len(named), *(len(_word(value)) for value in _distinct(found.cells, rows)))
    if columns:
        lines.append([(f"  {'':<{wide}}  {columns.replace('_', ' ')}", "dim")])
    width = max(9, *(len(_word(value)) + 2 for value in tops))
    lines.append(
        [(f"  {named:<{wide}}", "dim"), *((f"{_word(top) if columns else 'GiB':>{width}} ", "dim") for top in tops)]
    )
    side = "<" if rows == "trained" else ">"
    for value in _distinct(found.cells, rows):
        row = [cell for cell in found.cells if cell.values[rows] == value]
        lines.append([(f"  {_word(value):{side}{wide}}", ""), *(_figure(cell, width, view) for cell in row)])
    return [*lines, *_legend(found, view)]


def _distinct(cells: Sequence[Cell], name: str) -> list[Any]:
    found: list[Any] = []
    for cell in cells:
        if cell.values[name] not in found:
            found.append(cell.values[name])
    return found


def _figure(cell: Cell, width: int, view: View) -> tuple[str, str]:
    if cell.estimate is None:
        return f"{'-':>{width}} ", "dim"
    capacity, verdict = cell.estimate.capacity_bytes, cell.estimate.verdict
    if verdict is Verdict.TIGHT and capacity is not None and cell.estimate.peak.likely > capacity:
        verdict = Verdict.DOES_NOT_FIT  # it is not likely to
    mark = _MARKS[verdict] if capacity is not None else " "
    mark = mark if view.unicode else _ASCII.get(mark, mark)
    style = VERDICT_STYLES[verdict] if capacity is not None else ""
    return f"{gib(cell.estimate.peak.likely):>{width}}{mark}", style


def _legend(found: Sweep, view: View) -> list[Line]:
    """What the marks say, and why some combinations are none."""
    capacity = next((cell.estimate.capacity_bytes for cell in found.cells if cell.estimate is not None), None)
    no = "✗" if view.unicode else "x"
    lines: list[Line] = [[]]
    if capacity is not None:
        lines.append([(f"  GiB of {gib(capacity)} on each GPU: ~ tight, {no} does not or likely does not fit", "dim")])
    for said in _of_images(found):
        lines += wrapped([("  ", "")], said, view.width, 4, "dim")
    reasons = dict.fromkeys(cell.reason for cell in found.cells if cell.reason)
    lines += [[(f"  - {reason}", "dim")] for reason in list(reasons)[:3]]
    return lines


def _of_images(found: Sweep) -> Iterator[str]:
    """How many tokens an image of so many pixels has, which a table of pixels hides."""
    spec, name = found.run.run.spec, "image_max_pixels"
    if spec is None or name not in found.settings:
        return
    for pixels in _distinct(found.cells, name):
        beside = tokens(spec.facts, {"images": 1, name: pixels})
        if beside:
            yield f"an image of {pixels:,} pixels has {beside:,} tokens beside the text{_by_itself(spec, pixels)}"


def _by_itself(spec: Spec, pixels: int) -> str:
    """Says of the bound that holds where nobody sets one how to set it."""
    tower = spec.facts.vision
    if tower is None or largest(tower, pixels) != largest(tower):
        return ""
    return f" ({largest(tower):,} patches): what the processor leaves where neither max_pixels nor MAX_PIXELS is set"


def _word(value: Any) -> str:
    return (
        str(value).lower()
        if isinstance(value, bool) or value is None
        else f"{value:,}"
        if isinstance(value, int)
        else str(value)
    )
