"""The parts that layers are made of: linear modules with their adapters, norms, rotary, activations, dropout."""

from __future__ import annotations

from collections.abc import Sequence

from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations import gptq
from lintfit.memory.activations.recipe import Recipe
from lintfit.memory.activations.tape import ACTIVATION, CAST, Extent, Larger, Scratch, Tape, Var, once, saved_factors
from lintfit.memory.tensors.tensor_parallel import takes_slices


class Layer(Tape):
    """A tape with the model's numbers and the recipe at hand.

    ``batched``: whether there is more than one sequence. ``slides``: whether the layer's window is no longer than
    the sequences. ``early``: whether a node's saved tensors are gone when its gradients are cast (non-reentrant
    checkpointing, whose hooks hand them out). ``scores``: the weights of its eager attention, once that is written.
    ``leaf``: its input where that is a leaf, whose half-precision copy autocast has in its cache.
    """

    __slots__ = ("_batched", "_half", "asked_batched", "early", "facts", "leaf", "recipe", "scores", "slides")

    def __init__(
        self,
        facts: ModelFacts,
        recipe: Recipe,
        *,
        watched: bool = False,
        selective: bool = False,
        batched: bool = False,
        slides: bool = False,
        early: bool = False,
        graph: bool = True,
    ) -> None:
        super().__init__(watched, selective, graph)
        self.facts = facts
        self.recipe = recipe
        self.keeps_scores = recipe.keeps_scores
        self._batched = batched
        self.asked_batched = False
        self.slides = slides
        self.early = early
        self.scores: Var | None = None
        self.leaf: Var | None = None
        self._half: Var | None = None

    @property
    def batched(self) -> bool:
        """Whether there is more than one sequence; asking is noted, as most layers do not depend on it."""
        self.asked_batched = True
        return self._batched

    def cast(self, x: Var, item: int) -> Var:
        """As everywhere, but one copy for all products that take a leaf (``autocast_mode.cpp:cached_cast``), which the
        cache has until the layer has been run again."""
        if x is not self.leaf or item != 2 or x.item == item:
            return super().cast(x, item)
        if self._half is None:
            self._half = super().cast(x, item)
            self.lasting = (*self.lasting, self._half)
        return self._half

    # -- linear ---------------------------------------------------------------------------------------------

    def matmul(
        self, x: Var, rows: int, columns: int, *, item: int, trains: bool, bias: bool = False, copies: int = 1,
        convolves: bool = False, strided: bool = False, uses: Extent = once, views: bool = False,
    ) -> Var:  # fmt: skip
        """``x @ W`` with W of ``rows`` by ``columns`` elements of ``item`` bytes: torch's linear.

        ``copies``: of W, each for as many of x's rows (``torch.bmm``). ``convolves``: by a convolution, whose one
        function for all gradients keeps x also for a W that is not trained. ``strided``: x lies channel by channel, so
        that the product with a trained W copies it where there are several sequences (``matmul``, ``should_fold``).
        ``uses``: how often the module is called, for a part of x each. ``views``: W is a view of the parameter.

        Saves x where W is trained and W where x needs a gradient. Under autocast both are cast to half precision
        first; autocast keeps the copy of a trained fp32 weight, a frozen one or a view is copied for each use.
        """
        size = rows * columns * copies
        if self.recipe.autocast:
            x = self.cast(x, 2)
        if strided and trains and self.batched:
            x = self.add(x)
        weight = None
        gradient = size * item if trains else 0
        made: tuple[int, ...] = ()
        saved: list[Var] = [x] if trains or convolves else []
        inputs: list[Var] = [x]
        if self.recipe.autocast and item == 4:
            kind = ACTIVATION if trains and views else CAST
            weight = self.constant(size, 2, trains, kind) if trains else self.new(size, 2, False, kind, uses)
            if trains:
                # The cache has it from here to the end of the forward.
                weight.storage.external = not (self.graph or views)
                self.op(weight, (), (), weights=(gradient,))
            if trains or not self.graph:
                inputs.append(weight)
            if x.grad or (convolves and trains):
                saved.append(weight)
        elif trains:
            made = (gradient,)
        if trains and bias:
            made = (*made, columns * item)
        out_item = 2 if self.recipe.autocast else x.item
        out = self.like(x, x.width // rows * columns, out_item, x.grad or trains)
        self.mark(out, product=True)
        return self.op(out, inputs, saved, weights=made, parameter=x.grad)

    def bmm(self, a: Var, b: Var, width: int, copies: Sequence[Var] = ()) -> Var:
        """``a @ b`` of two activations, ``width`` elements for each of a's rows; half precision under autocast.

        ``copies``: of the factors, which are saved as well.
        """
        if self.recipe.autocast:
            a, b, copies = self.cast(a, 2), self.cast(b, 2), ()
        out = self.like(a, width, a.item, a.grad or b.grad)
        return self.op(out, (a, b), (*saved_factors(a, b), *copies))

    def linear(
        self,
        module: str,
        x: Var,
        rows: int,
        columns: int,
        bias: bool = False,
        *,
        strided: bool = False,
        uses: Extent = once,
        views: bool = False,
        lifted: int = 0,
    ) -> Var:
        """A linear module by its transformers name, with its LoRA branch where one is attached (PEFT's Linear).

        ``strided``, ``uses``, ``views``: see :meth:`matmul`. ``lifted``: bytes of an element of a bias that is added to
        the product's result.
        """
        recipe = self.recipe
        lora = recipe.lora
        trains = recipe.trains(module)
        if recipe.tensor_parallel > 1 and takes_slices(self.facts, module):
            x = self.op(self.like(x, -(-x.width // recipe.tensor_parallel), x.item, x.grad), (x,))
            rows = x.width
        if recipe.quantized and "lora" in recipe.kernels and lora is not None and lora.on(module):
            return self._fused_lora(x, rows, columns)
        if recipe.quantized and module != "lm_head":
            out = self.quantized(x, rows, columns)
        else:
            item = 4 if recipe.upcast_head and module == "lm_head" else recipe.weights
            out = self.matmul(
                x, rows, columns, item=item, trains=trains, bias=bias, strided=strided, uses=uses, views=views
            )
        out = self.cast(out, max(out.item, lifted))
        if lora is None or trains or not lora.on(module):
            return out
        held = self.held
        self.held = (*held, x, out)
        y = self.cast(x, lora.item)
        self.held = (*self.held, y)
        if lora.dropout:
            y = self.dropout(y)
        dropped = y
        y = self.matmul(y, rows, lora.rank, item=lora.item, trains=True, strided=strided)
        y = self.matmul(y, lora.rank, columns, item=lora.item, trains=True)
        y = self._dora(out, dropped, y, rows, columns) if lora.dora else self.map(y)
        # The function that adds the two still has its input, cast as it is, in a local variable.
        sum_ = self.cast(self.add(out, y), out.item)
        self.held = held
        return sum_

    def _dora(self, out: Var, x: Var, y: Var, rows: int, columns: int) -> Var:
        """``(m - 1) * base + m * lora`` with m the magnitude over the norm of ``W + BA`` (peft ``DoraLinearLayer``).

        Both products keep their factors. With dropout the base result is made again from what was dropped, with a
        weight in its dtype, which that product keeps where it is no parameter.
        """
        lora = self.recipe.lora
        assert lora is not None
        through, product, weight = self._dora_norm(x.item, rows, columns)
        self.held = (*self.held, *(var for var in (through, product, weight) if var is not None))
        base = out
        if lora.dropout:
            base = self.like(out, out.width, 2 if self.recipe.autocast else x.item, True)
            if self.recipe.autocast and x.item == 4:
                weight = self.constant(rows * columns, 2, kind=CAST)
            self.op(base, (x,), (weight,) if weight is not None and x.grad else ())
        magnitude = tuple(self.constant(columns, lora.item) for _ in range(3))
        scaled = self.like(out, out.width, max(base.item, lora.item), True)
        temp = (out.scratch(scaled.item),)
        self.op(scaled, (base,), (base, *magnitude), temp=temp, weights=(columns * lora.item,))
        other = self.like(out, out.width, max(y.item, lora.item), True)
        other = self.map(self.op(other, (y,), (y,), temp=(out.scratch(other.item),)))
        return self.add(scaled, other)

    def _dora_norm(self, item: int, rows: int, columns: int) -> tuple[Var | None, Var, Var | None]:
        """The norm of ``W + BA``, in ``item`` bytes an element, and what of it stays until DoRA's result is made.

        That is the identity matrix that goes through the adapter (rows x rows; as the input of a trained product it
        is kept, under autocast its cast copy), ``BA``, and the weight where it is no parameter as it is. A scaled
        ``BA`` and the sum pass.
        """
        lora, size, before = self.recipe.lora, rows * columns, self.held
        assert lora is not None
        asked = self.constant(rows * rows, lora.item)
        through = self.constant(rows * rows, 2) if self.recipe.autocast and lora.item == 4 else asked
        self.held = (*before, asked, through)
        product = self.op(self.constant(size, through.item), ())
        kept = (through,) if self.graph else ()
        self.held = (*before, *kept)
        if product.item != item:
            product = self.op(self.constant(size, item), (product,))
        made = self.recipe.quantized or self.recipe.weights != item
        weight = self.constant(size, item, kind=CAST) if made else None
        stays = (*kept, product, *((weight,) if weight is not None else ()))
        self.held = (*before, *stays)
        self.op(self.constant(size, item), (self.constant(size, item),))
        self.held = before
        beside = max(size * 2 * item, asked.storage.bytes)
        self.unseen = max(self.unseen, sum(var.storage.bytes for var in stays) + beside)
        return (through if self.graph else None), product, weight

    def _fused_lora(self, x: Var, rows: int, columns: int) -> Var:
        """Quantised product and adapter as one function (Unsloth ``LoRA_QKV``, ``LoRA_W``; FOAK ``fast_lora.py``).

        Saves its input and, with dropout, the dropped one, whose zeros stand in for the mask. The backward dequantises
        the weight, then adds the adapter's share of the input's gradient, masked: 1 + 2 + 2 bytes an element.
        """
        lora = self.recipe.lora
        assert lora is not None
        saved = [x, self.like(x, x.width, x.item, False)] if lora.dropout else [x]
        out = self.like(x, x.width // rows * columns, x.item, True)
        scratch = 1, Larger((2 * rows * columns, once), x.scratch(5))
        made = (lora.rank * rows * lora.item, lora.rank * columns * lora.item)
        return self.op(out, (x,), saved, temp=(scratch,), weights=made)

    def quantized(self, x: Var, rows: int, columns: int) -> Var:
        """bitsandbytes' and GPTQ's linear: saves neither the input nor a weight, dequantises W again in backward."""
        if self.recipe.unpacked is not None:
            return gptq.product(self, x, rows, columns, self.recipe.unpacked, self.recipe.autocast)
        half = self.cast(x, 2)
        out = self.like(x, x.width // rows * columns, 2, x.grad)
        each = 4 if self.recipe.copies_dequantized else 2
        self.op(out, (half,), temp=((rows * columns * each, once),))
        if self.recipe.holds_inputs and x.grad:
            self.pin(half)
        return self.cast(out, x.item)

    # -- norms ----------------------------------------------------------------------------------------------

    def rmsnorm(self, x: Var, width: int | None = None, module: str = "norm") -> Var:
        """LlamaRMSNorm: in fp32, ``weight * (x * rsqrt(mean(x^2) + eps)).to(dtype)``; ``width`` elements a row."""
        width = width or self.facts.hidden
        trains = self.recipe.trains(module)
        if self.recipe.liger or "rms_norm" in self.recipe.kernels:
            return self._liger_norm(x, width, trains)
        held = self.held
        self.name(x)
        normed = self.root_mean_square(self.cast(x, 4), width)
        self.name(normed)
        half = self.cast(normed, x.item)
        item = 4 if self.recipe.upcast_norms else max(x.item, self.recipe.weights)
        out = self.like(x, x.width, item, x.grad or trains)
        weights = (width * self.recipe.weights,) if trains else ()
        temp = (x.scratch(x.item),) if trains else ()
        self.op(out, (half,), (half,) if trains else (), temp=temp, weights=weights, parameter=half.grad)
        self.held = held
        return out

    def root_mean_square(self, full: Var, width: int) -> Var:
        """``x * rsqrt(x.pow(2).mean(-1) + eps)`` in fp32: saves x once (for the power and the product) and rsqrt."""
        rows = full.width // width
        squares = self.op(self.like(full, full.width, 4, full.grad), (full,), (full,), temp=(full.scratch(2 * 4),))
        mean = self.op(self.like(full, rows, 4, full.grad), (squares,))
        root = self.rsqrt(mean)
        out = self.like(full, full.width, 4, full.grad)
        return self.op(out, (full, root), (full, root), temp=(full.scratch(4),))

    def gemma_norm(self, x: Var, width: int | None = None) -> Var:
        """Gemma's RMSNorm: ``(norm(x.float()) * (1 + weight.float())).type_as(x)``: the product stays in fp32."""
        width = width or self.facts.hidden
        trains = self.recipe.trains("norm")
        full = self.cast(x, 4)
        normed = self.root_mean_square(full, width)
        scale = self.constant(width, 4, trains)
        weights = (width * self.recipe.weights,) if trains else ()
        out = self.like(x, x.width, 4, x.grad or trains)
        saved = (normed, scale) if trains else (scale,)
        self.op(out, (normed,), saved, temp=(x.scratch(4),) if trains else (), weights=weights)
        return self.cast(out, x.item)

    def full_norm(self, x: Var, width: int | None = None, *, casts: bool = False) -> Var:
        """OLMo 2's and gpt-oss's RMSNorm: the product with the weight is taken in fp32, before the cast back.

        ``casts``: the weight is cast to fp32 first, of which the product keeps the copy (Helium).
        """
        width = width or self.facts.hidden
        trains = self.recipe.trains("norm")
        held = self.held
        self.name(x)
        normed = self.root_mean_square(self.cast(x, 4), width)
        self.name(normed)
        weights = (width * self.recipe.weights,) if trains else ()
        out = self.like(x, x.width, 4, x.grad or trains)
        saved, temp = ((normed,), (x.scratch(4),)) if trains else ((), ())
        if casts and normed.grad and self.recipe.weights < 4:
            saved = (*saved, self.constant(width, 4))
        self.op(out, (normed,), saved, temp=temp, weights=weights, parameter=normed.grad)
        out = self.cast(out, x.item)
        self.held = held
        return out

    def _liger_norm(self, x: Var, width: int, trains: bool) -> Var:
        """Liger's and Unsloth's fused RMSNorm: saves its input and one fp32 scale a row.

        The gradient overwrites the incoming one.
        """
        out = self.like(x, x.width, x.item, x.grad or trains)
        root = self.like(x, x.width // width, 4, False)
        weights = (width * self.recipe.weights,) if trains else ()
        return self.op(out, (x,), (x, root), weights=weights)

    def layernorm(self, x: Var, width: int | None = None, *, shifted: bool = False) -> Var:
        """torch's LayerNorm: saves input, mean and rstd. Under autocast it runs, and returns, fp32.

        Half-precision weight and bias are then cast to fp32, and the copies saved. ``shifted``: the weight is
        ``weight + 1``, a new tensor in every layer, and under autocast all of it runs in half precision (Nemotron's
        ``_cast_if_autocast_enabled``).
        """
        width = width or self.facts.hidden
        trains = self.recipe.trains("norm")
        if self.recipe.autocast:
            x = self.cast(x, 2 if shifted else 4)
        rows = x.width // width
        mean, rstd = self.like(x, rows, 4, False), self.like(x, rows, 4, False)
        saved = [x, mean, rstd]
        if shifted:
            saved.append(self.constant(width, 2 if self.recipe.autocast else self.recipe.weights, trains))
        elif self.recipe.autocast and self.recipe.weights == 2:
            saved += [self.constant(width, 4, kind=CAST), self.constant(width, 4, kind=CAST)]
        out = self.like(x, x.width, x.item, x.grad or trains)
        weights = (width * self.recipe.weights,) * 2 if trains else ()
        return self.op(out, (x,), saved, weights=weights, results=True)

    # -- elementwise ----------------------------------------------------------------------------------------

    def mul(self, a: Var, b: Var) -> Var:
        """A product of two tensors: each factor is saved for the other's gradient.

        The engine casts a gradient to its tensor's dtype when all of a node's are made (``validate_outputs``).
        """
        item = max(a.item, b.item)
        out = self.like(a, a.width, item, a.grad or b.grad, a.storage.kind)
        temp = [self.uncast(var, item) for var in (a, b) if var.grad and var.item < item]
        return self.op(out, (a, b), saved_factors(a, b), temp=temp)

    def by_row(self, x: Var, factor: Var) -> Var:
        """x by one number a row, whose gradient is summed up from a whole product."""
        item = max(x.item, factor.item)
        out = self.like(x, x.width, item, x.grad or factor.grad)
        temp = [x.scratch(item)] if factor.grad else []
        if x.grad and x.item < item:
            temp.append(self.uncast(x, item))
        return self.op(out, (x, factor), saved_factors(x, factor), temp=temp)

    def uncast(self, x: Var, item: int) -> Scratch:
        """What a gradient of ``item`` bytes an element takes beside ``x``'s own, until it is cast.

        Where what was saved is gone by then, the cast one comes in its place.
        """
        return x.scratch(item - x.item if self.early else item)

    def scaled(self, x: Var, width: int, trains: bool) -> Var:
        """x by a learnt tensor of ``width`` elements, whose gradient needs x and is summed up from one of x's size."""
        out = self.like(x, x.width, max(x.item, self.recipe.weights), x.grad or trains)
        made = (width * self.recipe.weights,) if trains else ()
        return self.op(out, (x,), (x,) if trains else (), temp=(x.scratch(out.item),) if trains else (), weights=made)

    def dropout(self, x: Var) -> Var:
        """``native_dropout`` on CUDA: saves a mask of one byte an element."""
        mask = self.like(x, x.width, 1, False)
        out = self.like(x, x.width, x.item, x.grad, x.storage.kind)
        return self.op(out, (x,), (mask,), results=True)

    def rate(self, *keys: str) -> float:
        """The rate of a dropout by the first of these keys of the config that has one; 0 where none has."""
        return next((float(self.facts.config[key]) for key in keys if self.facts.config.get(key)), 0.0)

    def dropped(self, x: Var, rate: float) -> Var:
        """Dropout in training; nothing at rate 0."""
        return self.dropout(x) if rate > 0 and self.recipe.dropout else x

    def activation(self, x: Var, name: str) -> Var:
        """``ACT2FN[name]``: what its backward needs is the input, or the result (relu), or the parts of a formula.

        A formula's argument, and the parts it has worked out so far, live until it is done.
        """
        before = self.held
        self.held = (*before, x)
        out = self._activated(x, name)
        self.held = before
        return out

    def _activated(self, x: Var, name: str) -> Var:
        match name:
            case "relu":
                return self.relu(x)
            case "relu2":
                out = self.relu(x)
                return self.map(out, (out,), temp=(x.scratch(2 * x.item),))
            case "gelu_new" | "gelu_fast" | "gelu_python_tanh":
                # Autocast runs ``pow`` in fp32, and what follows inherits that.
                half = self.map(x)
                self.held = (*self.held, half)
                base = self.cast(x, 4) if self.recipe.autocast else x
                cube = self.map(base, (base,), temp=(base.scratch(2 * base.item),))
                inner = self.map(self.add(x, self.map(cube)))
                return self.mul(half, self.add(self.tanh(inner)))
            case "quick_gelu":
                return self.mul(x, self.sigmoid(self.map(x)))
            case _:
                return self.map(x, (x,))

    # -- rotary ---------------------------------------------------------------------------------------------

    def rotary(self, x: Var, share: float = 1.0, concatenated: bool = False, tables: tuple[Var, ...] = ()) -> Var:
        """``x * cos + rotate_half(x) * sin`` on ``share`` of each head; keeps only the (shared) cos and sin.

        ``concatenated``: the rotated and the passed part are joined by a ``torch.cat``. ``tables``: cos and sin
        where the layer makes its own. Unsloth's kernel turns x in place, and its gradient as well.
        """
        if "rope" in self.recipe.kernels:
            return x
        out = self.turned(x, share, tables)
        return self.joined(x, out) if concatenated else out

    def turned(self, x: Var, share: float = 1.0, tables: tuple[Var, ...] = (), *, item: int = 0) -> Var:
        """The rotated ``share`` of each head; ``item``: bytes of an element where the tables make it wider than x.

        Under autocast tables of an fp32 model do.
        """
        rotated, item = int(x.width * share), item or max(x.item, self.recipe.opening)
        cosine = self.op(self.like(x, rotated, item, x.grad), (x,), tables[:1])
        half = self.like(x, rotated, x.item, x.grad)
        self.op(half, (x,), temp=((int(1.5 * rotated * x.item), x.per),))
        return self.add(cosine, self.map(half, tables[1:], item))

    def joined(self, x: Var, turned: Var) -> Var:
        """The rotated part of x and the rest of it, put together in a new tensor."""
        return self.op(self.like(x, x.width, max(x.item, turned.item), x.grad), (turned,))

    def both_turned(
        self, q: Var, k: Var, share: float = 1.0, *, concatenated: bool = False, tables: tuple[Var, ...] = ()
    ) -> tuple[Var, Var]:
        """Queries and keys turned by one function (``apply_rotary_pos_emb``), whose caller has names for its
        arguments."""
        held = self.held
        self.name(q, k)
        turned = self.rotary(q, share, concatenated, tables), self.rotary(k, share, concatenated, tables)
        self.held = held
        return turned


class Naming(Layer):
    """A tape that follows names although autograd is on: where it records nothing, they are all that holds a tensor."""

    __slots__ = ()

    def name(self, *tensors: Var) -> None:
        """See :meth:`.tape.Tape.name`."""
        self.held = (*self.held, *tensors)
