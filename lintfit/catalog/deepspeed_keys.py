"""Which keys a DeepSpeed JSON may have, what fills ``"auto"``, and what became of the keys it no longer may have.

Read from DeepSpeed 0.19.8 (``runtime/config.py``, ``runtime/zero/config.py``, ``runtime/zero/offload_config.py``,
``runtime/precision_config.py``, ``runtime/config_utils.py``) and from its tags back to 0.10.3. The top level is
read with ``dict.get``, so a misspelt key there is ignored; the sections of :data:`SECTIONS` are pydantic models
with ``extra="forbid"``, so a key that they lack stops the run.
"""

from __future__ import annotations

from collections.abc import Mapping


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


AFTER = "0.19.9"
"""The first release that these tables do not cover."""

TOP_LEVEL: frozenset[str] = _names("""
    train_batch_size train_micro_batch_size_per_gpu gradient_accumulation_steps managed_gradient_accumulation
    steps_per_print dump_state disable_python_gc disable_allgather communication_data_type
    seq_parallel_communication_data_type seq_parallel_comm_data_type prescale_gradients gradient_predivide_factor
    gradient_allreduce_op zero_optimization activation_checkpointing comms_logger tensorboard wandb csv_monitor comet
    gradient_clipping fp16 bf16 bfloat16 torch_autocast optimizer zero_allow_untested_optimizer
    zero_force_ds_cpu_optimizer scheduler flops_profiler wall_clock_breakdown memory_breakdown autotuning
    use_data_before_expert_parallelism hybrid_engine pipeline data_efficiency checkpoint data_types aio
    dataloader_drop_last log_level datastates_ckpt weight_quantization compile timers tensor_parallel
    expert_parallel vocabulary_size sequence_parallel_size data_parallel_size allgather_size
    """)

REMOVED_TOP_LEVEL: Mapping[str, str] = {
    "nebula": "0.19.7",
    "compression_training": "0.19.7",
    "quantize_training": "0.19.7",
    "sparse_attention": "0.19.7",
    "amp": "0.19.8",
    "sparse_gradients": "0.19.8",
    "eigenvalue": "0.19.8",
    "elasticity": "0.19.8",
    "graph_harvesting": "0.19.8",
    "curriculum_learning": "0.19.8",
    "progressive_layer_drop": "0.19.8",
}
"""Keys that older releases read, and since which version their mere presence raises ``DeepSpeedConfigError``."""

FOREIGN_TOP_LEVEL: frozenset[str] = frozenset({"msamp", "inference"})
"""Keys that accelerate and transformers read from the same object."""

REMOVED_ZERO: Mapping[str, str] = {
    "mics_shard_size": "0.19.7",
    "mics_hierarchical_params_gather": "0.19.7",
    "zeropp_loco_param": "0.19.8",
}
"""The same for keys of ``zero_optimization``."""

_STAGE3 = (
    "prefetch_bucket_size",
    "param_persistence_threshold",
    "model_persistence_threshold",
    "max_live_parameters",
    "max_reuse_distance",
    "gather_16bit_weights_on_model_save",
    "module_granularity_threshold",
    "use_all_reduce_for_fetch_params",
    "allgather_sequential",
)
"""Fields with an alias ``stage3_…``; both spellings are accepted, giving both is an error."""

STAGE3_ONLY: frozenset[str] = frozenset(f"stage3_{name}" for name in _STAGE3) | {
    "stage3_gather_fp16_weights_on_model_save",
    "sub_group_size",
}
"""Keys of ``zero_optimization`` that only ``runtime/zero/stage3.py`` and its helpers read."""

SECTIONS: Mapping[tuple[str, ...], frozenset[str]] = {
    ("zero_optimization",): _names("""
        stage contiguous_gradients reduce_scatter reduce_bucket_size use_multi_rank_bucket_allreduce
        allgather_partitions allgather_bucket_size overlap_comm compute_grad_norm load_from_fp32_weights
        elastic_checkpoint offload_param offload_optimizer zenflow sub_group_size cpu_offload_param
        cpu_offload_use_pin_memory cpu_offload ignore_unused_parameters legacy_stage1 round_robin_gradients
        parameter_alignment zero_hpz_partition_size zero_quantized_weights zero_quantized_nontrainable_weights
        zero_quantized_gradients memory_efficient_linear pipeline_loading_checkpoint override_module_apply
        log_trace_cache_warnings enable_sanity_checks save_muon_momentum_buffer_in_memory leaf_module
        stage3_gather_fp16_weights_on_model_save
        """)
    | {name for short in _STAGE3 for name in (short, f"stage3_{short}")},
    ("zero_optimization", "offload_param"): _names("device nvme_path buffer_count buffer_size max_in_cpu pin_memory"),
    ("zero_optimization", "offload_optimizer"): _names("""
        device nvme_path buffer_count pin_memory pipeline_read pipeline_write fast_init ratio super_offload
        cpuadam_cores_perc
        """),
    ("zero_optimization", "leaf_module"): frozenset({"classes", "names", "name_suffixes"}),
    ("zero_optimization", "zenflow"): _names("""
        topk_ratio select_strategy select_interval update_interval overlap_step offload auto_ratio
        full_warm_up_rounds pt_reserved_cores_perc steps_per_epoch
        """),
    ("bf16",): _names(
        "enabled immediate_grad_update check_grad_overflow bf16_master_weights_and_grads bf16_optimizer_states"
    ),
    ("fp16",): _names("""
        enabled auto_cast loss_scale initial_scale_power loss_scale_window hysteresis consecutive_hysteresis
        min_loss_scale fp16_master_weights_and_grads
        """),
    ("comms_logger",): frozenset({"enabled", "prof_all", "prof_ops", "verbose", "debug"}),
    ("hybrid_engine",): _names("""
        enabled max_out_tokens inference_tp_size release_inference_cache pin_parameters tp_gather_partition_size
        enable_cuda_graph
        """),
}
"""Sections that forbid unknown keys, by their path from the root."""

FORBIDS_SINCE: Mapping[tuple[str, ...], str] = {("bf16",): "0.17.1", ("fp16",): "0.17.1"}
"""Sections that were plain dicts, whose unknown keys were ignored, before the version named."""

DEPRECATED_ZERO: Mapping[str, tuple[str, ...]] = {
    "cpu_offload": ("offload_optimizer",),
    "cpu_offload_param": ("offload_param",),
    "cpu_offload_use_pin_memory": ("offload_optimizer", "offload_param"),
    "stage3_gather_fp16_weights_on_model_save": ("stage3_gather_16bit_weights_on_model_save",),
}
"""Deprecated keys of ``zero_optimization`` and what took their place; the old and the new together raise."""

AUTO_TRAINER: frozenset[str] = _names("""
    train_micro_batch_size_per_gpu gradient_accumulation_steps train_batch_size gradient_clipping
    optimizer.params.lr optimizer.params.betas optimizer.params.eps optimizer.params.weight_decay
    scheduler.params.warmup_min_lr scheduler.params.warmup_max_lr scheduler.params.total_num_steps
    scheduler.params.warmup_num_steps fp16.enabled bf16.enabled zero_optimization.reduce_bucket_size
    zero_optimization.stage3_prefetch_bucket_size zero_optimization.stage3_param_persistence_threshold
    """)
"""Where transformers' Trainer fills ``"auto"`` (``integrations/deepspeed.py: HfTrainerDeepSpeedConfig``)."""

AUTO_ACCELERATE: frozenset[str] = _names("""
    train_micro_batch_size_per_gpu gradient_accumulation_steps train_batch_size gradient_clipping
    optimizer.params.lr optimizer.params.weight_decay scheduler.params.warmup_min_lr scheduler.params.warmup_max_lr
    scheduler.params.total_num_steps scheduler.params.warmup_num_steps fp16.enabled bf16.enabled
    zero_optimization.stage zero_optimization.offload_optimizer.device zero_optimization.offload_param.device
    zero_optimization.offload_optimizer.nvme_path zero_optimization.offload_param.nvme_path
    zero_optimization.stage3_gather_16bit_weights_on_model_save zero_optimization.reduce_bucket_size
    zero_optimization.stage3_prefetch_bucket_size zero_optimization.stage3_param_persistence_threshold
    """)
"""Where accelerate fills ``"auto"`` (``utils/dataclasses.py: DeepSpeedPlugin``); anything else raises ValueError.

The Trainer goes through the same plugin, so under it both sets are filled. transformers 4 filled ``amp.*``, too.
"""
