"""LitGPT's head and loss, in chunks that all stay."""

from __future__ import annotations

from lintfit.frozen import frozen
from lintfit.memory.activations import litgpt
from lintfit.memory.activations.blocks import Layer
from lintfit.memory.activations.form import Alive, Changes, Live, Table, live, total
from lintfit.memory.activations.tape import Var
from lintfit.memory.litgpt import CHUNK, switches
from lintfit.memory.loss.head import Head


@frozen
class Chunked:
    """LitGPT's head in chunks of 128 tokens a sequence, which all stay (``GPT.forward``, ``chunked_cross_entropy``).

    Fabric hands every chunk over in fp32 (``convert_output``) while the half-precision ones and, in the loop's
    variable, the last iteration's are still there: 4 + 2 + 4 bytes an entry. The engine runs the losses of all chunks
    backward before the first head, so that the gradients of all logits stand beside the logits. ``dequantized``:
    bytes of the head's weight as it is computed with, where it is quantised.
    """

    table: Table
    states: Alive
    held: Changes
    stream: Var
    logits: Var
    dequantized: int
    weights: int

    def at(self, batch: int, seq: int, kept: float) -> Head:
        """The head of ``batch`` sequences of ``seq`` tokens."""
        sizes = self.table.sizes(batch, seq)
        saved = live(self.states, sizes)
        entries = batch * seq * self.logits.width
        made = 4 * entries
        half = entries * self.logits.item if self.logits.item == 2 else 0
        stays = int(self.weights * kept)
        gradient = batch * seq * self.stream.width * self.stream.item
        return Head(
            saved=saved.plus(Live(logits=made)),
            forward=Live(0, max(made + half, half + self.dequantized)),
            loss=saved.plus(Live(logits=2 * made + made // -(-seq // CHUNK))),
            head=saved.plus(
                Live(
                    logits=made + half,
                    temporaries=self.dequantized + gradient + self.weights - stays,
                    gradients=stays,
                )
            ),
            weights=self.weights,
            bare=Live(gradient, made + max(made + half, half + self.dequantized)),
            pinned=total(self.held, sizes),
            lingering=made,
        )


def chunked(t: Layer, x: Var) -> Chunked:
    """The norm and the head on a tape, from the last layer's output ``x``."""
    facts, recipe = t.facts, t.recipe
    on = switches(recipe.lora.targets if recipe.lora is not None else ()).head
    y = litgpt.norm(t, x)
    logits = litgpt.linear(t, y, facts.hidden, facts.vocab, recipe.lora.rank if recipe.lora is not None and on else 0)
    each = 4 if recipe.copies_dequantized else 2
    table = Table()
    return Chunked(
        states=table.alive(table.numbers(t.saved())),
        held=table.numbers(t.pinned),
        table=table,
        stream=x,
        logits=logits,
        dequantized=facts.hidden * facts.vocab * each if recipe.quantized else 0,
        weights=t.weights,
    )
