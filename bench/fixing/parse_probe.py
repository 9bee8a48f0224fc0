"""Run by the interpreter that has the real libraries: a launch's launcher and script, up to the parsed arguments.

    python parse_probe.py < {"argv": […], "cwd": …, "gpus": N}

The launcher's own parser takes the command apart, the script runs with every module that is missing replaced by a
stub, and ends where it has parsed its arguments. Last line on stdout: one JSON object (``parsed``, ``error``,
``values``, ``stage``).
"""

from __future__ import annotations

import argparse
import builtins
import importlib
import importlib.abc
import importlib.machinery
import json
import os
import runpy
import sys
import types
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import MagicMock

PLAIN = (int, float, str, bool, type(None))


class Parsed(BaseException):
    """The script has its arguments."""

    def __init__(self, values: Any) -> None:
        super().__init__()
        self.values = values


class Stub(types.ModuleType):
    """A module that has whatever is asked of it."""

    __path__: ClassVar[list[str]] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in ("__version__",):
            raise AttributeError(name)
        if name == "__version__":
            return "99.0.0"
        made: Any = (
            type(name, (), {"__getattr__": lambda self, key: MagicMock()}) if name[:1].isupper() else MagicMock()
        )
        setattr(self, name, made)
        return made


class Stubs(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Last of the finders: a module that none of the others knows is a stub, where code of the checkout asks for it."""

    def __init__(self) -> None:
        self.asked = ""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        parent = name.rpartition(".")[0]
        meant = self.asked == name or self.asked.startswith(f"{name}.")
        if not meant and not isinstance(sys.modules.get(parent), Stub):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: Any) -> Any:
        return Stub(spec.name)

    def exec_module(self, module: Any) -> None:
        pass


def of_a_library(file: str) -> bool:
    """Whether a file is not one of the checkout."""
    return "site-packages" in file or "/lib/python3" in file or not file


def stub_missing() -> None:
    """Put stubs in the place of modules, and of names of modules, that are not there."""
    stubs = Stubs()
    sys.meta_path.append(stubs)
    real = builtins.__import__

    def imported(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        before, stubs.asked = stubs.asked, ""
        try:
            if of_a_library((globals or {}).get("__file__") or ""):
                return real(name, globals, locals, fromlist, level)
            stubs.asked = "" if level else name
            module = real(name, globals, locals, ("__name__",), level)
            for each in fromlist or ():
                if each != "*" and not hasattr_quiet(module, each):
                    fill(module, each)
            stubs.asked = "" if level else name
            return real(name, globals, locals, fromlist, level)
        finally:
            stubs.asked = before

    def fill(module: Any, name: str) -> None:
        """A name that a module of another version lacks."""
        try:
            importlib.import_module(f"{module.__name__}.{name}")
        except Exception:
            setattr(module, name, getattr(Stub(module.__name__), name))

    builtins.__import__ = imported


def hasattr_quiet(module: Any, name: str) -> bool:
    try:
        return hasattr(module, name)
    except Exception:
        return False


def values_of(parsed: Any) -> dict[str, Any]:
    """The plain values of one namespace or of several dataclasses."""
    each = parsed if isinstance(parsed, tuple) else (parsed,)
    found: dict[str, Any] = {}
    for one in each:
        if hasattr(one, "__dict__"):
            found |= {key: value for key, value in vars(one).items() if isinstance(value, PLAIN)}
    return found


def pretend_gpus() -> None:
    """transformers' arguments ask the machine for its GPUs: it says that it has new ones."""
    import torch
    import transformers
    import transformers.training_args as arguments
    import transformers.utils as utils
    from accelerate import PartialState

    for place in (arguments, utils, utils.import_utils):
        for name in (
            "is_torch_bf16_gpu_available",
            "is_torch_bf16_available",
            "is_torch_tf32_available",
            "is_torch_bf16_cpu_available",
        ):
            if hasattr(place, name):
                setattr(place, name, lambda *_, **__: True)

    def devices(self: Any) -> Any:
        self._n_gpu = 1
        self.distributed_state = PartialState(cpu=True)
        return torch.device("cuda:0")

    transformers.TrainingArguments._setup_devices = property(devices)
    for place in (arguments, utils, utils.import_utils):
        if hasattr(place, "is_accelerate_available"):
            place.is_accelerate_available = lambda *_, **__: True


def stop_after_parsing(on_parsed: Any) -> None:
    """Every parser that scripts use hands over what it has parsed."""
    import transformers

    inside = [0]
    real_known = argparse.ArgumentParser.parse_known_args

    def known(self: Any, args: Any = None, namespace: Any = None) -> Any:
        got = real_known(self, args, namespace)
        if not inside[0] and args is None and called_by_script():
            on_parsed(got[0])
        return got

    def outside(self: Any, args: Any = None, namespace: Any = None) -> Any:
        inside[0] += 1
        try:
            got, rest = real_known(self, args, namespace)
        finally:
            inside[0] -= 1
        if rest:
            self.error("unrecognized arguments: " + " ".join(rest))
        if not inside[0] and called_by_script():
            on_parsed(got)
        return got

    argparse.ArgumentParser.parse_known_args = known  # type: ignore[method-assign]
    argparse.ArgumentParser.parse_args = outside  # type: ignore[method-assign]
    parser = transformers.HfArgumentParser
    for name in ("parse_args_into_dataclasses", "parse_json_file", "parse_yaml_file", "parse_dict"):
        real = getattr(parser, name)

        def wrapped(self: Any, *args: Any, __real: Any = real, **kwargs: Any) -> Any:
            inside[0] += 1
            try:
                got = __real(self, *args, **kwargs)
            finally:
                inside[0] -= 1
            if not inside[0]:
                on_parsed(got)
            return got

        setattr(parser, name, wrapped)
    try:
        import fire
    except ImportError:
        return

    def fired(component: Any = None, command: Any = None, name: Any = None, serialize: Any = None) -> Any:
        real_fire(lambda **words: on_parsed(types.SimpleNamespace(**checked(component, words))))

    real_fire = fire.Fire

    def checked(component: Any, words: dict[str, Any]) -> dict[str, Any]:
        import inspect

        bound = inspect.signature(component).bind(**words)
        bound.apply_defaults()
        return dict(bound.arguments)

    fire.Fire = fired


def called_by_script() -> bool:
    """Whether the parser is called by code of the checkout, not by a library's."""
    frame: Any = sys._getframe(2)
    return "site-packages" not in frame.f_code.co_filename and "/lib/python3" not in frame.f_code.co_filename


def taken_apart(argv: list[str]) -> tuple[list[str], dict[str, Any]]:
    """The script with its arguments, and what the launcher's own parser and validation said."""
    program = Path(argv[0]).name
    words = argv[1:]
    if program.startswith("python"):
        while words and words[0] in ("-u", "-O", "-B"):
            words = words[1:]
        if words[:1] == ["-m"] and words[1:2] and words[1] in ("torch.distributed.run", "torch.distributed.launch"):
            program, words = "torchrun", words[2:]
        elif words[:2] == ["-m", "accelerate.commands.launch"]:
            program, words = "accelerate", ["launch", *words[2:]]
        else:
            return words, {}
    if program == "torchrun":
        from torch.distributed.run import get_args_parser

        args = get_args_parser().parse_args([word.replace("--use_env", "") for word in words if word != "--use_env"])
        return (["-m"] if args.module else []) + [args.training_script, *args.training_script_args], {
            "launcher": "torchrun"
        }
    if program == "deepspeed":
        from deepspeed.launcher.runner import parse_args

        args = parse_args(words)
        return (["-m"] if args.module else []) + [args.user_script, *args.user_args], {"launcher": "deepspeed"}
    if program == "accelerate" and words[:1] == ["launch"]:
        from accelerate.commands.launch import _validate_launch_command, launch_command_parser

        args = launch_command_parser().parse_args(words[1:])
        args, defaults, _ = _validate_launch_command(args)
        given = list(defaults.deepspeed_config.keys()) if defaults and args.use_deepspeed else []
        args.deepspeed_fields_from_accelerate_config = ",".join(given)
        if args.use_deepspeed:
            from accelerate.utils.launch import prepare_deepspeed_cmd_env

            try:
                _, env = prepare_deepspeed_cmd_env(args)
                os.environ.update({k: v for k, v in env.items() if k.startswith(("ACCELERATE", "FSDP"))})
            except Exception as error:
                if "pdsh" not in str(error):
                    raise
        return (["-m"] if args.module else []) + [args.training_script, *args.training_script_args], {
            "launcher": "accelerate"
        }
    raise ValueError(f"no launcher that is known: {program}")


def deepspeed_config(values: dict[str, Any], gpus: int) -> dict[str, Any]:
    """DeepSpeed's own class over the config of the arguments, its ``auto`` filled as the Trainer does."""
    named = (
        values.get("deepspeed") or values.get("deepspeed_config") or os.environ.get("ACCELERATE_DEEPSPEED_CONFIG_FILE")
    )
    if not isinstance(named, str) or not Path(named).is_file():
        return {"deepspeed_config": None if not named else f"not there: {named}"}
    from deepspeed.runtime.config import DeepSpeedConfig

    with Path(named).open() as file:
        config = json.load(file)

    def filled(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: filled(each) for key, each in value.items() if each != "auto"}
        return value

    config = filled(config)
    for key in ("scheduler", "optimizer"):
        if key in config and "params" in config[key]:
            config[key]["params"].setdefault("lr", 1e-5)
    micro = values.get("per_device_train_batch_size") or config.get("train_micro_batch_size_per_gpu") or 1
    steps = values.get("gradient_accumulation_steps") or config.get("gradient_accumulation_steps") or 1
    for key, value in (("train_micro_batch_size_per_gpu", micro), ("gradient_accumulation_steps", steps)):
        config.setdefault(key, value)
    parallel = types.SimpleNamespace(get_data_parallel_world_size=lambda: gpus)
    read = DeepSpeedConfig(config, mpu=parallel)
    return {"deepspeed_config": named, "zero_stage": read.zero_optimization_stage}


def main() -> None:
    asked = json.load(sys.stdin)
    os.chdir(asked["cwd"])
    said: dict[str, Any] = {"parsed": False, "stage": "launcher"}
    try:
        words, launcher = taken_apart(asked["argv"])
        said |= launcher
        said["stage"] = "script"
        os.environ.update(
            {
                "RANK": "0",
                "LOCAL_RANK": "-1",
                "WORLD_SIZE": "1",
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": "29511",
                "HF_HUB_OFFLINE": "1",
                "WANDB_DISABLED": "true",
            }
        )
        os.environ.pop("LOCAL_RANK")
        pretend_gpus()
        module = words[:1] == ["-m"]
        words = words[1:] if module else words
        sys.argv = list(words)

        def stop(values: Any) -> None:
            raise Parsed(values)

        stop_after_parsing(stop)
        stub_missing()
        if module:
            sys.path.insert(0, str(Path.cwd()))
            runpy.run_module(words[0], run_name="__main__", alter_sys=True)
        else:
            sys.path.insert(0, str(Path(words[0]).resolve().parent))
            sys.path.insert(1, str(Path.cwd()))
            runpy.run_path(words[0], run_name="__main__")
        said["error"] = "ended without parsing"
    except Parsed as parsed:
        values = values_of(parsed.values)
        said |= {"parsed": True, "values": {k: values[k] for k in KEPT if k in values}}
        try:
            said |= deepspeed_config(values, asked["gpus"])
        except BaseException as error:
            said |= {"parsed": False, "stage": "deepspeed config", "error": f"{type(error).__name__}: {error}"[:300]}
    except SystemExit as error:
        said["error"] = f"exit {error.code}"
    except BaseException as error:
        said["error"] = f"{type(error).__name__}: {error}"[:300]
    print("\n" + json.dumps(said))
    sys.stdout.flush()
    os._exit(0)


KEPT = (
    "per_device_train_batch_size", "gradient_accumulation_steps", "bf16", "fp16", "bf16_full_eval", "tf32", "deepspeed",
    "fsdp", "gradient_checkpointing", "optim", "model_max_length", "cutoff_len", "max_seq_length", "bits", "batch_size",
    "micro_batch_size", "lora_enable", "use_lora", "load_in_4bit", "load_in_8bit", "torch_dtype",
)  # fmt: skip
"""The arguments that a table shows."""

if __name__ == "__main__":
    main()
