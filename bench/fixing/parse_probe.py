"""Run by the interpreter that has the real libraries: a launch's launcher and script, up to the parsed arguments.

    python parse_probe.py < {"argv": […], "cwd": …, "gpus": N, "old": whether the GPUs are older than Ampere}
    python parse_probe.py --serve  # such a line for each launch, each with ``seconds``

The launcher's own parser takes the command apart, the script runs with every module that is missing replaced by a
stub, and ends where it has parsed its arguments. Last line on stdout: one JSON object (``parsed``, ``error``,
``values``, ``stage``); as a server, a line with ``ended`` after each (served.py).
"""

from __future__ import annotations

import argparse
import builtins
import contextlib
import importlib
import importlib.abc
import importlib.machinery
import json
import os
import runpy
import signal
import sys
import time
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
        made: Any = stub_class(name) if name[:1].isupper() else Loose()
        setattr(self, name, made)
        return made


def stub_class(name: str) -> Any:
    """A class that a script can derive from, ask ``isinstance`` of and make with whatever it likes."""
    words = {"__init__": lambda self, *_, **__: None, "__getattr__": lambda self, key: Loose()}
    return type(name, (), words)


def linear() -> Any:
    """What stands for a quantized layer: no small model is quantized."""
    from torch.nn import Linear

    return Linear


class Loose(MagicMock):
    """A stand-in whose attributes are classes where their names are those of classes."""

    def __getattr__(self, name: str) -> Any:
        if name[:1].isupper():
            made = linear() if name in ("Linear4bit", "Linear8bitLt") else stub_class(name)
            setattr(self, name, made)
            return made
        return super().__getattr__(name)


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


def pretend_gpus(gpus: int, old: bool) -> None:
    """transformers' arguments ask the machine for its GPUs: it has some, each with a process; old ones have no bf16."""
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
                setattr(place, name, lambda *_, **__: not old)

    def devices(self: Any) -> Any:
        self._n_gpu = 1
        if old and (self.bf16 or self.bf16_full_eval):
            raise ValueError("Your setup doesn't support bf16/gpu.")  # as transformers' own, where there is a GPU
        self.distributed_state = PartialState(cpu=True)
        return torch.device("cuda:0")

    transformers.TrainingArguments._setup_devices = property(devices)
    transformers.TrainingArguments.world_size = property(lambda self: gpus)
    for place in (arguments, utils, utils.import_utils):
        if hasattr(place, "is_accelerate_available"):
            place.is_accelerate_available = lambda *_, **__: True


def pretend_cuda(old: bool) -> None:
    """What scripts ask of GPUs and of other processes: one GPU is there, and whatever goes to it stays where it is."""
    import importlib.metadata as metadata

    import torch
    import torch.distributed as distributed
    import transformers

    real_there, real_version, real_rank = torch.cuda.is_available, metadata.version, distributed.is_initialized

    def there() -> bool:
        return called_by_script() or real_there()

    def version(name: str) -> str:
        try:
            return real_version(name)
        except metadata.PackageNotFoundError:
            return "99.0.0"

    torch.cuda.is_available = there
    metadata.version = version
    torch.nn.Module.cuda = lambda self, *_, **__: self  # type: ignore[method-assign,assignment]
    torch.Tensor.cuda = lambda self, *_, **__: self  # type: ignore[method-assign,assignment]
    torch.cuda.device_count = lambda: 1 if called_by_script() else 0
    torch.cuda.set_device = torch.cuda.empty_cache = torch.cuda.synchronize = lambda *_: None
    torch.cuda.current_device = lambda: 0
    torch.cuda.get_device_capability = lambda *_: (7, 0) if old else (8, 0)
    torch.cuda.get_device_name = lambda *_: "NVIDIA GPU"
    torch.cuda.get_device_properties = lambda *_: types.SimpleNamespace(total_memory=24 << 30, name="NVIDIA GPU")
    torch.cuda.memory_allocated = torch.cuda.max_memory_allocated = torch.cuda.memory_reserved = lambda *_: 0
    torch.cuda.is_bf16_supported = lambda *_, **__: not old
    distributed.get_rank = lambda *_, **__: 0
    distributed.get_world_size = lambda *_, **__: 1
    distributed.barrier = distributed.init_process_group = lambda *_, **__: None
    distributed.is_initialized = lambda: called_by_script() or real_rank()
    for place in (torch.nn.Module, torch.Tensor):
        place.to = staying(place.to)  # type: ignore[method-assign]
    for place in (transformers.AutoConfig, transformers.AutoModel, transformers.AutoModelForCausalLM):
        place.register = registering(place.register)  # type: ignore[method-assign]


def staying(real: Any) -> Any:
    """A ``to`` for which a GPU is the CPU."""
    import torch

    def device(value: Any) -> bool:
        return (isinstance(value, int) and not isinstance(value, bool)) or str(value).startswith("cuda")

    def to(self: Any, *args: Any, **words: Any) -> Any:
        if device(words.get("device")):
            words["device"] = torch.device("cpu")
        return real(self, *(torch.device("cpu") if device(each) else each for each in args), **words)

    return to


def registering(real: Any) -> Any:
    """A class that a script registers may be known: a newer transformers has brought it."""
    return lambda *args, **words: real(*args, **{**words, "exist_ok": True})


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


def serve(answer: Any, libraries: tuple[str, ...]) -> None:
    """Answer every line of stdin in a fork of a process that has the libraries; a line says that one is at its end."""
    for name in libraries:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for line in sys.stdin:
        asked = json.loads(line)
        sys.stdout.flush()
        child = os.fork()
        if not child:
            os.setpgid(0, 0)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(1, 2)
            answer(asked)
            os._exit(0)
        limit, done = time.monotonic() + asked["seconds"], 0
        while not done and time.monotonic() < limit:
            done, _ = os.waitpid(child, os.WNOHANG)
            time.sleep(0.02)
        if not done:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
        print("\n" + json.dumps({"ended": bool(done)}), flush=True)


def finalized(parsed: Any) -> None:
    """What the Trainer does with the DeepSpeed config of its arguments: values that contradict them are refused."""
    for one in parsed if isinstance(parsed, tuple) else (parsed,):
        config = getattr(one, "hf_deepspeed_config", None)
        if hasattr(config, "trainer_config_finalize"):
            model = types.SimpleNamespace(config=types.SimpleNamespace(hidden_size=4096))
            config.trainer_config_finalize(one, model, 1000)


def main() -> None:
    """One launch from stdin, or as a server all of them."""
    if sys.argv[1:] == ["--serve"]:
        serve(answer, ("torch", "torch.distributed.run", "transformers.trainer", "accelerate.commands.launch",
                       "deepspeed.launcher.runner", "deepspeed.runtime.config", "fire"))  # fmt: skip
    else:
        answer(json.load(sys.stdin))


def answer(asked: dict[str, Any]) -> None:
    """One launch up to its parsed arguments."""
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
        pretend_gpus(asked["gpus"], asked.get("old", False))
        pretend_cuda(asked.get("old", False))
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
            finalized(parsed.values)
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
