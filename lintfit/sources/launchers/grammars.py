"""Which options of each launcher take a value."""

from __future__ import annotations

from collections.abc import Mapping

from lintfit.frozen import field, frozen, word_set


@frozen
class Grammar:
    """Which of a launcher's options take a value and which do not (names with ``_``)."""

    valued: frozenset[str]
    bare: frozenset[str]
    short: Mapping[str, str] = field(default_factory=dict)
    abbreviations: bool = True


# torch.distributed.run.get_args_parser, torch 2.13; --use_env of older releases of torch.distributed.launch.
_TORCHRUN = Grammar(
    word_set("""nnodes nproc_per_node rdzv_backend rdzv_endpoint rdzv_id rdzv_conf max_restarts monitor_interval
           start_method event_log_handler role log_dir redirects tee local_ranks_filter duplicate_stdout_filters
           duplicate_stderr_filters node_rank master_addr master_port local_addr logs_specs numa_binding
           signals_to_handle shutdown_timeout"""),
    word_set("help standalone module no_python run_path virtual_local_rank use_env"),
    {"m": "module", "r": "redirects", "t": "tee", "h": "help"},
)

GRAMMARS: Mapping[str, Grammar] = {
    "torchrun": _TORCHRUN,
    "torch.distributed.launch": _TORCHRUN,
    # deepspeed.launcher.runner.parse_args, DeepSpeed 0.19.8; the elastic options of older releases.
    "deepspeed": Grammar(
        word_set("""hostfile include exclude num_nodes min_elastic_nodes max_elastic_nodes num_gpus num_accelerators
               master_port master_addr node_rank launcher launcher_args enable_each_rank_log autotuning bind_core_list
               ssh_port venv_script log_level"""),
        word_set("""help module no_python no_local_rank no_ssh no_ssh_check force_multi save_pid elastic_training
               bind_cores_to_rank quiet"""),
        {"H": "hostfile", "i": "include", "e": "exclude", "h": "help", "q": "quiet"},
    ),
    # accelerate.commands.launch.launch_command_parser, Accelerate 1.15.0, which takes no abbreviations; all options
    # that are not named here take a value.
    "accelerate": Grammar(
        frozenset(),
        word_set("""help quiet cpu multi_gpu tpu use_deepspeed use_fsdp use_megatron_lm use_parallelism_config module
               no_python debug enable_cpu_affinity dynamo_use_fullgraph dynamo_use_dynamic
               dynamo_use_regional_compilation same_network tpu_cluster tpu_use_cluster
               no_tpu_cluster tpu_use_sudo downcast_bf16
               fp8_use_autocast_during_eval use_xpu ipex"""),
        {"m": "module", "q": "quiet", "h": "help"},
        abbreviations=False,
    ),
    # lightning.fabric.cli.
    "fabric": Grammar(
        word_set("accelerator strategy devices num_nodes node_rank main_address main_port precision"), word_set("help")
    ),
    # The interpreter's own options, up to the script.
    "python": Grammar(frozenset(), frozenset(), {"W": "warning", "X": "implementation"}, abbreviations=False),
}
