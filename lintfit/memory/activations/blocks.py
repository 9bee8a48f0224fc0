"""The parts that layers are made of: linear modules with their adapters, norms, rotary, activations, dropout."""

from __future__ import annotations

from lintfit.catalog.facts import ModelFacts
from lintfit.memory.activations.recipe import Recipe
from lintfit.memory.activations.tape import CAST, Tape, Var


class Layer(Tape):
    """A tape with the model's numbers and the recipe at hand. ``batch`` sequences of ``seq`` tokens."""

    __slots__ = ("batch", "facts", "recipe", "seq", "tokens")

    def __init__(
        self, facts: ModelFacts, recipe: Recipe, batch: int, seq: int, watched: bool = False, selective: bool = False
    ) -> None:
        super().__init__(watched, selective)
        self.facts = facts
        self.recipe = recipe
        self.batch = batch
        self.seq = seq
        self.tokens = batch * seq

    # -- linear ---------------------------------------------------------------------------------------------

    def matmul(self, x: Var, rows: int, columns: int, *, item: int, trains: bool, bias: bool = False) -> Var:
        """``x @ W`` with W of ``rows`` by ``columns`` elements of ``item`` bytes: torch's linear.

        Saves x where W is trained and W where x needs a gradient. Under autocast both are cast to half precision
        first; autocast keeps the copy of a trained fp32 weight, a frozen one is copied for each use.
        """
        size = rows * columns
        if self.recipe.autocast:
            x = self.cast(x, 2)
        weight = None
        gradient = size * item if trains else 0
        made: tuple[int, ...] = ()
        saved: list[Var] = [x] if trains else []
        inputs: list[Var] = [x]
        if self.recipe.autocast and item == 4:
            weight = self.new(size, 2, trains, CAST)
            if trains:
                self.op(weight, (), (), weights=(gradient,))
                inputs.append(weight)
            if x.grad:
                saved.append(weight)
        elif trains:
            made = (gradient,)
        if trains and bias:
            made = (*made, columns * item)
        out_item = 2 if self.recipe.autocast else x.item
        out = self.new(x.numel // rows * columns, out_item, x.grad or trains)
        self.mark(out, product=True)
        return self.op(out, inputs, saved, weights=made)

    def linear(self, module: str, x: Var, rows: int, columns: int, bias: bool = False) -> Var:
        """A linear module by its transformers name, with its LoRA branch where one is attached (PEFT's Linear)."""
        recipe = self.recipe
        lora = recipe.lora
        trains = recipe.trains(module)
        if recipe.quantized and "lora" in recipe.kernels and lora is not None and lora.on(module):
            return self._fused_lora(x, rows, columns)
        if recipe.quantized and module != "lm_head":
            out = self.quantized(x, rows, columns)
        else:
            out = self.matmul(x, rows, columns, item=recipe.weights, trains=trains, bias=bias)
        if lora is None or trains or not lora.on(module):
            return out
        held = self.held
        self.held = (*held, x, out)
        y = self.cast(x, lora.item)
        self.held = (*self.held, y)
        if lora.dropout:
            y = self.dropout(y)
        dropped = y
        y = self.matmul(y, rows, lora.rank, item=lora.item, trains=True)
        y = self.matmul(y, lora.rank, columns, item=lora.item, trains=True)
        y = self._dora(out, dropped, y, rows, columns) if lora.dora else self.map(y)
        self.held = held
        return self.cast(self.add(out, y), out.item)

    def _dora(self, out: Var, x: Var, y: Var, rows: int, columns: int) -> Var:
        """``(m - 1) * base + m * lora`` with m the magnitude over the norm of ``W + BA`` (peft ``DoraLinearLayer``).

        Both products keep their factors. With dropout the base result is made again from what was dropped, with a
        weight cast to its dtype, which that product keeps. For the norm an identity matrix goes through the adapter
        (rows x rows), and ``BA``, its scaled copy and the sum stand beside it; none of these stays.
        """
        lora = self.recipe.lora
        assert lora is not None
        item = 2 if self.recipe.autocast else x.item
        self.held = (*self.held, self.new(rows * rows + 3 * rows * columns, item, False))
        base = out
        if lora.dropout:
            base = self.new(out.numel, item, True)
            cast = item != self.recipe.weights or self.recipe.quantized
            weight = (self.new(rows * columns, item, False, CAST),) if cast and x.grad else ()
            self.op(base, (x,), weight)
        magnitude = tuple(self.new(columns, lora.item, False) for _ in range(3))
        scaled = self.new(out.numel, max(base.item, lora.item), True)
        self.op(scaled, (base,), (base, *magnitude), temp=out.numel * scaled.item, weights=(columns * lora.item,))
        other = self.new(out.numel, max(y.item, lora.item), True)
        other = self.map(self.op(other, (y,), (y,), temp=out.numel * other.item))
        return self.add(scaled, other)

    def _fused_lora(self, x: Var, rows: int, columns: int) -> Var:
        """Quantised product and adapter as one function (Unsloth ``LoRA_QKV``, ``LoRA_W``; FOAK ``fast_lora.py``).

        Saves its input and, with dropout, the dropped one, whose zeros stand in for the mask. The backward dequantises
        the weight, then adds the adapter's share of the input's gradient, masked: 1 + 2 + 2 bytes an element.
        """
        lora = self.recipe.lora
        assert lora is not None
        saved = [x, self.new(x.numel, x.item, False)] if lora.dropout else [x]
        out = self.new(x.numel // rows * columns, x.item, True)
        scratch = max(2 * rows * columns, 5 * x.numel)
        made = (lora.rank * rows * lora.item, lora.rank * columns * lora.item)
        return self.op(out, (x,), saved, temp=scratch, weights=made)

    def quantized(self, x: Var, rows: int, columns: int) -> Var:
        """bitsandbytes' and GPTQ's linear: saves neither the input nor a weight, dequantises W again in backward."""
        half = self.cast(x, 2)
        out = self.new(x.numel // rows * columns, 2, x.grad)
        self.op(out, (half,), temp=rows * columns * (4 if self.recipe.copies_dequantized else 2))
        if self.recipe.holds_inputs and x.grad:
            self.pin(half)
        return self.cast(out, x.item)

    # -- norms ----------------------------------------------------------------------------------------------

    def rmsnorm(self, x: Var, width: int | None = None, module: str = "norm") -> Var:
        """LlamaRMSNorm: in fp32, ``weight * (x * rsqrt(mean(x^2) + eps)).to(dtype)``; ``width`` elements a row."""
        width = width or self.facts.hidden
        rows = x.numel // width
        trains = self.recipe.trains(module)
        if self.recipe.liger or "rms_norm" in self.recipe.kernels:
            return self._liger_norm(x, width, trains)
        full = self.cast(x, 4)
        normed = self.root_mean_square(full, rows)
        half = self.cast(normed, x.item)
        out = self.new(x.numel, 4 if self.recipe.upcast_norms else x.item, x.grad or trains)
        weights = (width * self.recipe.weights,) if trains else ()
        temp = x.numel * x.item if trains else 0
        return self.op(out, (half,), (half,) if trains else (), temp=temp, weights=weights)

    def root_mean_square(self, full: Var, rows: int) -> Var:
        """``x * rsqrt(x.pow(2).mean(-1) + eps)`` in fp32: saves x once (for the power and the product) and rsqrt."""
        squares = self.op(self.new(full.numel, 4, full.grad), (full,), (full,), temp=2 * full.numel * 4)
        mean = self.op(self.new(rows, 4, full.grad), (squares,))
        root = self.new(rows, 4, full.grad)
        self.op(root, (mean,), (root,))
        out = self.new(full.numel, 4, full.grad)
        return self.op(out, (full, root), (full, root), temp=full.numel * 4)

    def gemma_norm(self, x: Var, width: int | None = None) -> Var:
        """Gemma's RMSNorm: ``(norm(x.float()) * (1 + weight.float())).type_as(x)``: the product stays in fp32."""
        width = width or self.facts.hidden
        trains = self.recipe.trains("norm")
        full = self.cast(x, 4)
        normed = self.root_mean_square(full, x.numel // width)
        scale = self.new(width, 4, trains)
        weights = (width * self.recipe.weights,) if trains else ()
        out = self.new(x.numel, 4, x.grad or trains)
        saved = (normed, scale) if trains else (scale,)
        self.op(out, (normed,), saved, temp=x.numel * 4 if trains else 0, weights=weights)
        return self.cast(out, x.item)

    def _liger_norm(self, x: Var, width: int, trains: bool) -> Var:
        """Liger's and Unsloth's fused RMSNorm: saves its input and one fp32 scale a row.

        The gradient overwrites the incoming one.
        """
        out = self.new(x.numel, x.item, x.grad or trains)
        root = self.new(x.numel // width, 4, False)
        weights = (width * self.recipe.weights,) if trains else ()
        return self.op(out, (x,), (x, root), weights=weights)

    def layernorm(self, x: Var, width: int | None = None, *, shifted: bool = False) -> Var:
        """torch's LayerNorm: saves input, mean and rstd. Under autocast it runs, and returns, fp32.

        Half-precision weight and bias are then cast to fp32, and the copies saved. ``shifted``: the weight is
        ``weight + 1``, a new tensor in every layer.
        """
        width = width or self.facts.hidden
        trains = self.recipe.trains("norm")
        if self.recipe.autocast:
            x = self.cast(x, 4)
        rows = x.numel // width
        mean, rstd = self.new(rows, 4, False), self.new(rows, 4, False)
        saved = [x, mean, rstd]
        if shifted:
            saved.append(self.new(width, self.recipe.weights, trains))
        if self.recipe.autocast and self.recipe.weights == 2:
            saved += [self.new(width, 4, False, CAST), self.new(width, 4, False, CAST)]
        out = self.new(x.numel, x.item, x.grad or trains)
        weights = (width * self.recipe.weights,) * 2 if trains else ()
        return self.op(out, (x,), saved, weights=weights)

    # -- elementwise ----------------------------------------------------------------------------------------

    def mul(self, a: Var, b: Var) -> Var:
        """A product of two tensors: each factor is saved for the other's gradient."""
        out = self.new(a.numel, max(a.item, b.item), a.grad or b.grad, a.storage.kind)
        saved = [var for var, other in ((a, b), (b, a)) if other.grad]
        return self.op(out, (a, b), saved)

    def dropout(self, x: Var) -> Var:
        """``native_dropout`` on CUDA: saves a mask of one byte an element."""
        mask = self.new(x.numel, 1, False)
        return self.map(x, (mask,))

    def residual_dropout(self, x: Var, rate: float) -> Var:
        """Dropout with the config's rate; nothing at rate 0."""
        return self.dropout(x) if rate > 0 and self.recipe.dropout else x

    def activation(self, x: Var, name: str) -> Var:
        """``ACT2FN[name]``: what its backward needs is the input, or the result (relu), or the parts of a formula."""
        match name:
            case "relu":
                out = self.new(x.numel, x.item, x.grad)
                return self.op(out, (x,), (out,))
            case "relu2":
                out = self.new(x.numel, x.item, x.grad)
                self.op(out, (x,), (out,))
                return self.map(out, (out,), temp=x.numel * x.item)
            case "gelu_new" | "gelu_fast" | "gelu_python_tanh":
                # Autocast runs ``pow`` in fp32, and what follows inherits that.
                base = self.cast(x, 4) if self.recipe.autocast else x
                cube = self.map(base, (base,), temp=2 * base.numel * base.item)
                inner = self.map(self.add(x, self.map(cube)))
                tanh = self.new(inner.numel, inner.item, inner.grad)
                self.op(tanh, (inner,), (tanh,))
                return self.mul(self.map(x), self.add(tanh))
            case "quick_gelu":
                gate = self.new(x.numel, x.item, x.grad)
                self.op(gate, (self.map(x),), (gate,))
                return self.mul(x, gate)
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
        rotated = int(x.numel * share)
        item = x.item
        turned = self.new(rotated, item, x.grad)
        self.op(turned, (x,), temp=int(1.5 * rotated * item))
        sine = self.map(turned, tables[1:])
        cosine = self.op(self.new(rotated, item, x.grad), (x,), tables[:1])
        out = self.add(cosine, sine)
        if not concatenated:
            return out
        joined = self.new(x.numel, item, x.grad)
        return self.op(joined, (out,))
