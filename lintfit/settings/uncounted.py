"""What recipes may ask for and nobody has counted, in words: such a run is judged by what takes no less, or not at all.

:mod:`lintfit.verdict.at_most` bounds these.
"""

FAKE_QUANTIZED = "the fake-quantized copies of the weights, which every layer keeps"
"""torchtune's quantization-aware training without recomputation."""
ORTHOGONAL = "the parameters of finetuning_type: oft"
"""LLaMA-Factory's orthogonal fine-tuning."""
SPLIT_BY_SWIFT = "ms-swift's own sequence parallelism"
"""It is beside any engine (``swift/sequence_parallel``)."""
