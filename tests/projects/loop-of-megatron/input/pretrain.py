from megatron.core.models.gpt import GPTModel
from megatron.training import get_args, pretrain


def model_provider(pre_process=True, post_process=True):
    args = get_args()
    return GPTModel(args, pre_process=pre_process, post_process=post_process)


if __name__ == "__main__":
    pretrain(None, model_provider, None, None)
