"""Where in a run a log's death was."""

# ruff: noqa: E501
from __future__ import annotations

import time

import pytest

from lintfit.sources.logs.reader import read

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.69 GiB of which "
    "1.00 GiB is free. Of the allocated memory 20.00 GiB is allocated by PyTorch, and 0.10 GiB is reserved by PyTorch"
)


def _traceback(*frames: str) -> str:
    lines = ["Traceback (most recent call last):"]
    for frame in frames:
        file, function, code = frame.split("|")
        lines += [f'  File "/env/site-packages/{file}", line 10, in {function}', f"    {code}"]
    return "\n".join([*lines, OOM])


@pytest.mark.parametrize(
    ("frames", "phase", "component"),
    [
        (("transformers/trainer.py|training_step|x", "torch/_tensor.py|backward|torch.autograd.backward("), "backward", ""),
        (
            ("transformers/trainer.py|compute_loss|outputs = model(**inputs)",
             "transformers/models/llama/modeling_llama.py|forward|logits = self.lm_head(hidden_states)"),
            "forward", "logits",
        ),
        (
            ("transformers/trainer.py|_inner_training_loop|self.optimizer.step()",
             "torch/optim/adamw.py|_init_group|state['exp_avg'] = torch.zeros_like(p)"),
            "step", "optimizer_states",
        ),
        (
            ("transformers/trainer.py|evaluation_loop|x", "transformers/trainer_pt_utils.py|nested_concat|torch.cat(logits)"),
            "evaluate", "logits",
        ),
        (("transformers/trainer.py|_save_checkpoint|x", "deepspeed/runtime/engine.py|_zero3_consolidated_16bit_state_dict|y"),
         "save", ""),
        (("transformers/trainer.py|_load_optimizer_and_scheduler|x", "torch/serialization.py|load|y"), "resume", ""),
        (("transformers/modeling_utils.py|from_pretrained|x", "accelerate/utils/modeling.py|set_module_tensor_to_device|y"),
         "load", "parameters"),
        (("deepspeed/runtime/zero/stage_1_and_2.py|initialize_optimizer_states|x",), "initialize", "optimizer_states"),
        (("trl/trainer/grpo_trainer.py|_generate_and_score_completions|x", "transformers/generation/utils.py|generate|y"),
         "generate", ""),
    ],
)  # fmt: skip
def test_where(frames: tuple[str, ...], phase: str, component: str) -> None:
    where = read(_traceback(*frames)).where
    assert (where.phase, where.component) == (phase, component)


def test_the_message_that_says_most_is_the_death() -> None:
    log = read(f"{OOM}\n{OOM}\nexits with return code = -9\n")
    assert log.death is not None and log.death.line == 1 and log.same == 2
    later = read(f"exits with return code = -9\n{OOM}\n")
    assert later.death is not None and later.death.says == "torch"


def test_steps_and_the_host() -> None:
    bar = " 3%|x| 12/400 [00:31<16:40, 2.58s/it]"
    log = read(f"CPU Virtual Memory:  used = 30.0 GB, percent = 25.0%\n{bar}\n{OOM}\n")
    assert log.step == 12 and log.host_total == 120 * 2**30


def test_escapes_of_a_terminal_are_nothing() -> None:
    assert read(f"\x1b[31m{OOM}\x1b[0m").death is not None
    assert read("\x00\x1b[" * 1000).death is None


def test_a_log_without_a_death() -> None:
    assert read("all is well\n").death is None and read("").death is None


def test_large_logs_are_read_in_time() -> None:
    text = ("x" * 3990 + "\n") * 2000 + 'File "' + "a" * 100_000 + "\n" + ("memory " * 1000 + "\n") * 500
    start = time.perf_counter()
    assert read(text).death is None
    assert time.perf_counter() - start < 5
