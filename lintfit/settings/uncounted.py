"""What may be asked for and nobody has counted, in words: such a run is judged by what takes no less, or not at all.

:mod:`lintfit.verdict.at_most` bounds these.
"""

FAKE_QUANTIZED = "the fake-quantized copies of the weights, which every layer keeps"
"""torchtune's quantization-aware training without recomputation."""
ORTHOGONAL = "the parameters of finetuning_type: oft"
"""LLaMA-Factory's orthogonal fine-tuning."""
SPLIT_BY_SWIFT = "ms-swift's own sequence parallelism"
"""It is beside any engine (``swift/sequence_parallel``)."""
SPLIT_BY_V1 = "LLaMA-Factory's own Ulysses"
"""Of its second version (``v1/plugins/model_plugins/parallelization``), under FSDP 2."""
CAST_TO_FLOAT = "float32 copies of the layers that are trained, which LLaMA-Factory casts"
VALUE_HEAD = "what the value head's forward keeps of logits and hidden states"
"""LLaMA-Factory's reward models and PPO are TRL's ``AutoModelForCausalLMWithValueHead``."""
SPREAD = "the share of the layers that each GPU gets of one process ({})"
"""``device_map="auto"`` and packages that split a model in one process over all GPUs that it sees."""
BALANCED = tuple(SPREAD.format(f'device_map="{word}"') for word in ("auto", "balanced"))
"""Accelerate's ``get_balanced_memory`` gives each GPU about the same."""
SPREADS = (*BALANCED, *(SPREAD.format(name) for name in ("device_map", "tensor_parallel")))
PAIRED = "what {} makes of pairs of answers, in one pass"
"""A trainer's step of the script's own that runs two answers of each sample as one batch."""
OWN_EVALUATION = "what {} evaluates by code of its own"
"""A Trainer's class of the script that does not run the model once for the loss, as transformers does."""
PASSES = "the {} passes of the model that {} makes before it goes backward"
SMALL_TUNER = "the parameters of the tuner {}"
"""One of ms-swift's tuners that is no LoRA."""
KEPT_WEIGHTS = "the weights of a checkpoint, which stay on the GPU as long as its name stands"
KEPT_STATES = "the weights and optimizer states of a checkpoint, which stay on the GPU as long as its name stands"
"""A script's own ``checkpoint = torch.load(path, map_location=device)``, which nothing deletes."""
OWN_PARTS = "the parts of the model's own code that are trained beside the frozen language model"
"""A projector between an encoder and a language model, say (LLaVA's first stage: ``tune_mm_mlp_adapter``)."""
