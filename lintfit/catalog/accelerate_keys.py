"""Which keys an Accelerate YAML may have and which of them do anything.

Read from accelerate 1.15.0 (``commands/config/config_args.py``, ``commands/launch.py``, ``utils/launch.py``). An
unknown key at the top raises ValueError; one inside a section is copied into the launcher's namespace, where nothing
reads it.
"""

from __future__ import annotations

from collections.abc import Mapping


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


AFTER = "1.16"
"""The first release that these tables do not cover."""

_BASE = "compute_environment distributed_type mixed_precision use_cpu debug num_machines gpu_ids enable_cpu_affinity"

LEGACY: frozenset[str] = frozenset({"fp16", "dynamo_backend"})
"""Keys of old files that ``BaseConfig.process_config`` turns into today's."""

CLUSTER: frozenset[str] = (
    _names(f"""
        {_BASE} num_processes machine_rank main_process_ip main_process_port rdzv_backend same_network
        main_training_function fp8_config deepspeed_config fsdp_config parallelism_config megatron_lm_config
        mpirun_config downcast_bf16 tpu_name tpu_zone tpu_use_cluster tpu_use_sudo command_file commands tpu_vm
        tpu_env dynamo_config
        """)
    | LEGACY
)
"""Top-level keys of a ``LOCAL_MACHINE`` file (``ClusterConfig``)."""

SAGEMAKER: frozenset[str] = (
    _names(f"""
        {_BASE} ec2_instance_type iam_role_name image_uri profile region base_job_name pytorch_version
        transformers_version py_version sagemaker_inputs_file sagemaker_metrics_file additional_args dynamo_config
        """)
    | LEGACY
)
"""Top-level keys of an ``AMAZON_SAGEMAKER`` file (``SageMakerConfig``)."""

REMOVED: Mapping[str, str] = {"ipex_config": "1.14", "tp_config": "1.14", "use_mps_device": "1.14"}
"""Keys that older releases knew, and a version that certainly refuses them."""

DISTRIBUTED_TYPES: frozenset[str] = _names("""
    NO MULTI_CPU MULTI_GPU MULTI_NPU MULTI_MLU MULTI_SDAA MULTI_MUSA MULTI_XPU DEEPSPEED FSDP XLA MEGATRON_LM
    MULTI_HPU MULTI_NEURON TPU
    """)

SECTIONS: Mapping[str, frozenset[str]] = {
    "deepspeed_config": _names("""
        deepspeed_config_file deepspeed_exclusion_filter deepspeed_hostfile deepspeed_inclusion_filter
        deepspeed_moe_layer_cls_names deepspeed_multinode_launcher gradient_accumulation_steps gradient_clipping
        offload_optimizer_device offload_param_device offload_optimizer_nvme_path offload_param_nvme_path
        zero3_init_flag zero3_save_16bit_model zero_stage
        """),
    "fsdp_config": _names("""
        fsdp_activation_checkpointing fsdp_activation_checkpointing_offload fsdp_auto_wrap_policy
        fsdp_backward_prefetch fsdp_cpu_ram_efficient_loading fsdp_forward_prefetch fsdp_ignored_modules
        fsdp_min_num_params fsdp_offload_params fsdp_reshard_after_forward fsdp_sharding_strategy
        fsdp_state_dict_type fsdp_sync_module_states fsdp_transformer_layer_cls_to_wrap fsdp_use_orig_params
        fsdp_version
        """),
    "parallelism_config": _names("""
        parallelism_config_cp_backend parallelism_config_cp_comm_strategy parallelism_config_cp_size
        parallelism_config_dp_replicate_size parallelism_config_dp_shard_size
        parallelism_config_sp_attn_implementation parallelism_config_sp_backend parallelism_config_sp_seq_length
        parallelism_config_sp_seq_length_is_variable parallelism_config_sp_size parallelism_config_tp_size
        """),
}
"""Keys inside the sections that decide memory; other sections are not checked."""

PREFIXES: Mapping[str, str] = {"fsdp_config": "fsdp_"}
"""What the launcher puts before a section's key that lacks it."""

NOT_EXPORTED: frozenset[str] = frozenset({"offload_optimizer_nvme_path", "offload_param_nvme_path"})
"""Keys of ``deepspeed_config`` that are accepted and never handed to the script (``utils/launch.py``, 0.20 to 1.15)."""

NOT_BESIDE_A_FILE: frozenset[str] = _names("""
    gradient_accumulation_steps gradient_clipping zero_stage offload_optimizer_device offload_param_device
    offload_param_nvme_path offload_optimizer_nvme_path zero3_save_16bit_model
    """)
"""Keys of ``deepspeed_config`` that raise beside ``deepspeed_config_file``, as top-level ``mixed_precision`` does.

``utils/dataclasses.py: DeepSpeedPlugin._deepspeed_config_checks``.
"""
