"""An evaluation between steps on a batch of its own, with what is kept of its logits for metrics.

Sources: transformers ``Trainer.evaluation_loop``, ``Trainer.prediction_step``, ``EvalLoopContainer``,
``Seq2SeqTrainer.prediction_step``; accelerate ``utils/operations.py:_gpu_gather``; TRL ``SFTTrainer.prediction_step``;
Liger ``transformers/model/*.py:lce_forward``.
"""
