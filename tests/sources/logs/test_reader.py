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


RICH = """\
{'loss': 0.8, 'epoch': 1.0}
╭─────────────────────────────── Traceback (most recent call last) ────────────────────────────────╮
│ /data/llm/alpaca-lora/finetune.py:280 in train                                                   │
│                                                                                                  │
│   277 │                                                                                          │
│   278 │   trainer.train(resume_from_checkpoint=resume_from_checkpoint)                           │
│ ❱ 280 │   model.save_pretrained(output_dir)                                                      │
│                                                                                                  │
│ /opt/conda/envs/alpaca/lib/python3.10/site-packages/bitsandbytes/nn/modules.py:268               │
│ in _save_to_state_dict                                                                           │
│                                                                                                  │
│   267 │   │   │   │   self.weight.data = undo_layout(self.state.CxB, tile_indices)               │
│ ❱ 268 │   │   │   │   self.weight.data = undo_layout(self.state.CxB, tile_indices)               │
╰──────────────────────────────────────────────────────────────────────────────────────────────────╯
torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 86.00 MiB (GPU 0; 79.20 GiB total capacity; 77.33 GiB already allocated; 44.31 MiB free; 77.70 GiB reserved in total by PyTorch)
"""
NOTEBOOK = """\
---------------------------------------------------------------------------
OutOfMemoryError                          Traceback (most recent call last)
Cell In[9], line 22
     21 )
---> 22 trainer.train()

File ~/miniconda3/envs/textgen/lib/python3.10/site-packages/transformers/trainer.py:1633, in Trainer.train(self, resume_from_checkpoint, trial, **kwargs)
   1632 )
-> 1633 return inner_training_loop(

File ~/miniconda3/envs/textgen/lib/python3.10/site-packages/transformers/trainer.py:2345, in Trainer._save_checkpoint(self, model, trial, metrics)
-> 2345     self.save_model(output_dir, _internal_call=True)

OutOfMemoryError: CUDA out of memory. Tried to allocate 44.00 MiB (GPU 0; 23.69 GiB total capacity; 22.11 GiB already allocated; 25.94 MiB free; 22.60 GiB reserved in total by PyTorch)
"""
RAY = """\
(ActorModelRayActor pid=1733478)
Train epoch [1/1]:  12%|█▏        | 31/256 [01:20<04:38,  1.24s/it, pg=0.0155, rm=0.633]
(ActorModelRayActor pid=1733478) Traceback (most recent call last):
(ActorModelRayActor pid=1733478)   File "/opt/env/lib/python3.10/site-packages/deepspeed/runtime/zero/stage_1_and_2.py", line 939, in reduce_independent_p_g_buckets_and_remove_grads
(ActorModelRayActor pid=1733478)     self.reduce_ipg_grads()
(ActorModelRayActor pid=1733478)   File "/opt/env/lib/python3.10/site-packages/deepspeed/runtime/zero/stage_1_and_2.py", line 1261, in set_norm_for_param_grad_in_gpu
(ActorModelRayActor pid=1733478)     self.norm_for_param_grads[param_id] = accumulated_grad.data.double().norm(2)
(ActorModelRayActor pid=1733478) torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.02 GiB. GPU 2 has a total capacity of 39.39 GiB of which 730.06 MiB is free. Including non-PyTorch memory, this process has 38.67 GiB memory in use. Of the allocated memory 36.10 GiB is allocated by PyTorch, and 1.04 GiB is reserved by PyTorch but unallocated.
"""
RESTART = """\
[INFO|deepspeed.py:449] 2022-05-15 00:12:20,447 >> Attempting to resume from finetuned/checkpoint-22
[2022-05-15 00:12:51,292] [INFO] [engine.py:2754:_get_all_zero_checkpoint_state_dicts] successfully read 2 ZeRO state_dicts for rank 0
[2022-05-15 00:12:57,785] [INFO] [launch.py:178:sigkill_handler] Killing subprocess 97277
[2022-05-15 00:12:57,786] [ERROR] [launch.py:184:sigkill_handler] ['python3', 'run_clm.py', '--local_rank=1'] exits with return code = -9
"""
DRIVER = """\
[2023-04-07 13:08:55,469] [INFO] [utils.py:830:see_memory_usage] MA 11.76 GB         Max_MA 11.76 GB         CA 11.77 GB         Max_CA 12 GB
[2023-04-07 13:08:55,469] [INFO] [utils.py:838:see_memory_usage] CPU Virtual Memory:  used = 28.43 GB, percent = 22.6%
[2023-04-07 13:09:33,201] [INFO] [launch.py:318:sigkill_handler] Killing subprocess 80
[2023-04-07 13:09:33,220] [ERROR] [launch.py:324:sigkill_handler] ['python3', 'run_clm.py'] exits with return code = -9
"""


@pytest.mark.parametrize(
    ("text", "of", "phase", "line"),
    [
        (RICH, "gpu", "save", 15),
        (NOTEBOOK, "gpu", "save", 14),
        (RAY, "gpu", "backward", 8),
        (RESTART, "other", "resume", 4),
        (DRIVER, "other", None, 4),
    ],
    ids=["rich", "notebook", "ray", "restart", "driver"],
)
def test_whole_logs(text: str, of: str, phase: str | None, line: int) -> None:
    """As they stand in bitsandbytes#324 and #340, OpenRLHF#762, DeepSpeed#1956 and #3160, cut to what counts."""
    log = read(text)
    assert log.death is not None and (log.death.of, log.death.line) == (of, line)
    assert log.where.phase == phase


def test_what_a_whole_log_says_beside_the_death() -> None:
    assert read(RAY).step == 31
    driver = read(DRIVER)
    assert driver.host_used is not None and driver.host_total is not None
    assert round(driver.host_total / 2**30) == 126
