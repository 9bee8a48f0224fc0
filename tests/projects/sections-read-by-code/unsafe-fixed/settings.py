import json

from datasets import load_dataset


def data_of(path):
    with open(path) as file:
        settings = json.load(file)
    print("loss scale", settings["bf16"].get("loss_scale"))
    return load_dataset(settings["data"]["path"])
