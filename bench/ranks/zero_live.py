"""What a DeepSpeed engine holds: its live storages by what they are for."""

from __future__ import annotations

from typing import Any


def live(engine: Any) -> dict[str, int]:
    """Bytes of live storages by kind, each storage once."""
    import gc

    import torch

    gc.collect()
    kinds: dict[int, str] = {}
    sizes: dict[int, int] = {}

    def mark(value: Any, kind: str) -> None:
        if isinstance(value, torch.Tensor):
            storage = value.untyped_storage()
            if storage.nbytes():
                kinds.setdefault(storage.data_ptr(), kind)
        elif isinstance(value, dict):
            for inner in value.values():
                mark(inner, kind)
        elif isinstance(value, (list, tuple)):
            for inner in value:
                mark(inner, kind)

    outer, inner = engine.optimizer, getattr(engine.optimizer, "optimizer", engine.optimizer)
    for parameter in engine.module.parameters():
        mark(getattr(parameter, "ds_tensor", None), "parameters")
        mark(getattr(parameter, "ds_secondary_tensor", None), "second_shard")
        mark(parameter.data, "parameters")
    for attribute in ("bit16_groups_flat", "fp16_groups_flat", "param_groups_fp16_flat_cpu_memory"):
        mark(getattr(outer, attribute, None), "parameters")
    mark(getattr(outer, "lp_param_buffer", None), "parameters")
    for attribute in ("single_partition_of_fp32_groups", "fp32_partitioned_groups_flat", "fp32_groups_flat",
                      "fp32_groups", "fp32_groups_flat_partition"):  # fmt: skip
        groups = getattr(outer, attribute, None) or []
        mark(groups, "master_weights")
        for group in groups:
            for tensor in group if isinstance(group, list) else [group]:
                mark(tensor.grad, "fp32_gradients")
    mark({key: dict(value) for key, value in inner.state.items()}, "optimizer_states")
    for parameter in engine.module.parameters():
        mark(parameter.grad, "gradients")
        mark(getattr(parameter, "grad_accum", None), "gradients")
    for attribute in ("averaged_gradients", "all_grad_tensors", "grads_in_partition", "grad_partitions_flat_buffer",
                      "fp32_groups_gradients_flat", "accumulated_grads_in_cpu"):  # fmt: skip
        mark(getattr(outer, attribute, None), "gradients")
    for bucket in getattr(outer, "ipg_buckets", {}).values():
        mark(bucket.buffer, "buckets")
    for attribute in ("temp_grad_buffer_for_cpu_offload", "temp_grad_buffer_for_gpu_offload",
                      "param_buffer_of_bit16_for_cpu_offload_groups"):  # fmt: skip
        mark(getattr(outer, attribute, None), attribute)
    for value in gc.get_objects():
        if isinstance(value, torch.Tensor) and value.device.type == "cpu" and type(value).__name__ != "FakeTensor":
            try:
                storage = value.untyped_storage()
            except (RuntimeError, NotImplementedError):
                continue
            if storage.nbytes():
                sizes[storage.data_ptr()] = storage.nbytes()
    totals: dict[str, int] = {}
    for pointer, size in sizes.items():
        kind = kinds.get(pointer, "other")
        totals[kind] = totals.get(kind, 0) + size
    return totals
