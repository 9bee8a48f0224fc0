GLOBAL_BATCH_SIZE = 32
MICRO_BATCH_SIZE = 4


def get_train_ds_config(offload, stage=2):
    device = "cpu" if offload else "none"
    return {
        "train_batch_size": GLOBAL_BATCH_SIZE,
        "train_micro_batch_size_per_gpu": MICRO_BATCH_SIZE,
        "zero_optimization": {
            "stage": stage,
            "offload_param": {"device": device},
            "offload_optimizer": {"device": device},
        },
        "fp16": {"enabled": True, "loss_scale_window": 100},
        "gradient_clipping": 1.0,
    }
