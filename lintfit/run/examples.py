"""Example scripts that libraries publish and people launch from a checkout of the library."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from lintfit.documents.patterns import lazy_pattern
from lintfit.frozen import word_set

_NAMES = word_set(
    """
    alignprop.py bco.py chat.py cifar10_deepspeed.py cifar10_tutorial.py complete_cv_example.py complete_nlp_example.py
    cpo.py cv_example.py ddpo.py deepspeed_with_config_support.py dpo.py dpo_online.py dpo_vlm.py finetune_trainer.py
    fsdp_with_peak_mem_tracking.py gkd.py grpo.py grpo_agent.py grpo_vlm.py gspo.py gspo_vlm.py kto.py
    megatron_lm_gpt_pretraining.py mpo_vlm.py nash_md.py nlp_example.py online_dpo_vlm.py orpo.py ppo.py ppo_tldr.py
    pretrain_bert.py pretrain_gpt.py pretrain_gpt2.py pretrain_t5.py prm.py qlora.py reward_modeling.py rloo.py
    rloo_vlm.py run_audio_classification.py run_chinese_ref.py run_classification.py run_clip.py run_clm.py
    run_clm_no_trainer.py run_cpt.py run_dpo.py run_eval.py run_fim.py run_fim_no_trainer.py run_generation.py
    run_glue.py run_glue_no_trainer.py run_image_classification.py run_image_classification_no_trainer.py
    run_image_captioning_flax.py run_instance_segmentation.py run_instance_segmentation_no_trainer.py
    run_language_modeling.py run_mae.py run_mim.py run_mim_no_trainer.py run_mlm.py run_mlm_no_trainer.py
    run_multiple_choice.py run_ner.py run_ner_no_trainer.py run_object_detection.py run_object_detection_no_trainer.py
    run_orpo.py run_pl_glue.py run_plm.py run_pretraining_no_trainer.py run_qa.py run_qa_beam_search.py
    run_qa_beam_search_no_trainer.py run_qa_no_trainer.py run_semantic_segmentation.py
    run_semantic_segmentation_no_trainer.py run_seq2seq_qa.py run_sft.py run_speech_recognition_ctc.py
    run_speech_recognition_ctc_adapter.py run_speech_recognition_seq2seq.py run_squad.py run_summarization.py
    run_summarization_no_trainer.py run_swag.py run_swag_no_trainer.py run_t5_mlm_flax.py run_tf_glue.py
    run_translation.py run_translation_no_trainer.py run_vision_text_dual_encoder.py
    run_wav2vec2_pretraining_no_trainer.py run_xnli.py sft.py sft_gemma3.py sft_gpt_oss.py sft_video_llm.py sft_vlm.py
    sft_vlm_gemma3.py xpo.py
    """
)
"""transformers (``examples/pytorch`` and the older ones), TRL (``trl/scripts``, ``examples/scripts``), accelerate,
alignment-handbook, Megatron-LM, DeepSpeed and QLoRA."""

_PATHS = ("/fastchat/train/train.py", "/fastchat/train/train_mem.py")
"""FastChat's scripts, whose names alone say nothing."""

_IN_PACKAGES = ("/llava/train/train.py", "/llava/train/train_mem.py", "/llava/train/train_xformers.py")
"""LLaVA's, whose launch scripts are copied into repositories that tell to clone it."""
_COPIED = word_set("run_clm_pt_with_peft.py run_clm_sft_with_peft.py")
"""Of Chinese-LLaMA-Alpaca 1 to 3 and Chinese-Mixtral (``scripts/training``), beside which their launch scripts lie."""

_DIFFUSERS = lazy_pattern(
    r"train_(?:dreambooth|text_to_image|controlnet|instruct_pix2pix|unconditional|kandinsky2?|custom_diffusion"
    r"|lcm_distill|cogvideox)\w*\.py|textual_inversion\w*\.py"
)


def is_example(name: str) -> bool:
    """Whether a script bears the name of an example of transformers, TRL, diffusers, accelerate or DeepSpeed."""
    base = posixpath.basename(name)
    if f"/{name}".endswith(_PATHS):
        return True
    return base in _NAMES or _DIFFUSERS.fullmatch(base) is not None


def is_of_a_checkout(name: str) -> bool:
    """Whether a script bears the name of one that a known project has and no library, which lintfit does not read."""
    return f"/{name}".endswith(_IN_PACKAGES) or posixpath.basename(name) in _COPIED


def is_example_recipe(name: str, front_end: str) -> bool:
    """Whether a recipe is named as in a checkout of its front end, whose examples lie in one folder."""
    return front_end in ("axolotl", "llamafactory") and name.removeprefix("./").startswith("examples/")


_DEEPSPEED_FOLDERS: Mapping[str, tuple[str, ...]] = {
    "axolotl": ("deepspeed_configs", "deepspeed"),
    "llamafactory": ("examples/deepspeed",),
}
"""Where checkouts of front ends have DeepSpeed configs: axolotl's were in ``deepspeed`` until January 2024 (#1192)."""


def is_packaged_config(name: str, front_end: str | None) -> bool:
    """Whether a DeepSpeed config is named as one that comes with a front end, in a checkout of it.

    LLaMA-Factory's have names of their own (``ds_z3_offload_config.json``), whatever starts the run.
    """
    folder, base = posixpath.split(name.replace("\\", "/").removeprefix("./"))
    if _is_of("llamafactory", folder):
        from lintfit.catalog.llamafactory import deepspeed_files as of_llamafactory

        return base in of_llamafactory()
    if front_end == "axolotl" and _is_of("axolotl", folder):
        from lintfit.catalog.axolotl import deepspeed_files as of_axolotl

        return base in of_axolotl()
    return False


def _is_of(front_end: str, folder: str) -> bool:
    return f"/{folder}".endswith(tuple(f"/{each}" for each in _DEEPSPEED_FOLDERS[front_end]))
