"""What is read of axolotl's source: from a checkout of two releases that is made here."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tools.axolotl_source import keys_before, releases
from tools.update_axolotl import schema, table

BASE = """
from enum import Enum
from typing import Any, Literal

class RLType(str, Enum):
    DPO = "dpo"

class FSDPConfig(BaseModel):
    fsdp_version: int | None = Field(validation_alias=AliasChoices("fsdp_version", "version"), default=None)
    offload_params: bool | None = None

class DeprecatedParameters(BaseModel):
    rope_scaling: Any | None = None

    @field_validator("rope_scaling")
    @classmethod
    def validate_rope_scaling(cls, value):
        if value:
            raise DeprecationWarning("`rope_scaling` is no longer supported")
        return value

class AxolotlInputConfig(DeprecatedParameters, BaseModel):
    base_model: str
    optimizer: str | None = Field(default=OptimizerNames.ADAMW_HF)
    bf16: Literal["auto"] | bool | None = "auto"
    rl: RLType | None = None
    overrides: dict[str, Any] | None = Field(default=None, alias="model_config")
    fsdp_config: FSDPConfig | None = None
"""
PLUGIN = """
class LigerArgs(BaseModel):
    liger_rope: bool | None = None

class LigerPlugin(BasePlugin):
    def get_input_args(self):
        return "axolotl.integrations.liger.LigerArgs"
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    def git(*words: str) -> None:
        own = ("-c", "user.name=nobody", "-c", "user.email=nobody@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *own, *words], cwd=tmp_path, check=True, capture_output=True)

    def release(tag: str, config: str) -> None:
        for name, text in {
            "src/axolotl/utils/schemas/config.py": config,
            "src/axolotl/integrations/liger/__init__.py": PLUGIN,
            "deepspeed_configs/zero1.json": '{"zero_optimization": {"stage": 1}}',
            "requirements.txt": "peft>=0.18\ntransformers==4.46.1\n",
        }.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        git("add", "-A")
        git("commit", "-m", tag)
        git("tag", tag)

    git("init", "-q")
    (tmp_path / "src" / "axolotl" / "utils").mkdir(parents=True)
    (tmp_path / "src" / "axolotl" / "utils" / "trainer.py").write_text(
        "def build(cfg):\n    cfg.made = cfg.keys()\n"
        '    return cfg.rl, cfg.table_size, cfg.get("table_tokens"), other.cfg_key\n'
    )
    git("add", "-A")
    git("commit", "-m", "v0.4.0")
    git("tag", "v0.4.0")
    release("v0.5.0", BASE)
    newer = BASE.replace("ADAMW_HF", "ADAMW_TORCH_FUSED").replace(
        "    rl:", "    tiled_mlp: bool | None = None\n    rl:"
    )
    release("v0.6.0", newer)
    git("tag", "v0.6.0.post1")
    return tmp_path


def test_the_table(checkout: Path) -> None:
    found = table(releases(checkout), keys_before(checkout))
    assert found["releases"] == ["0.5.0", "0.6.0"]
    assert found["before"] == ["table_size", "table_tokens"]
    assert found["keys"]["tiled_mlp"] == ["0.6.0", None] and found["keys"]["base_model"] == ["0.5.0", None]
    assert {"overrides", "model_config"} <= found["keys"].keys()
    assert found["sections"]["fsdp_config"].keys() == {"fsdp_version", "offload_params", "version"}
    assert found["defaults"]["optimizer"] == [["0.5.0", "adamw_hf"], ["0.6.0", "adamw_torch_fused"]]
    assert found["removed"] == {"rope_scaling": ["0.5.0", "true", "`rope_scaling` is no longer supported"]}
    liger = {"name": "axolotl.integrations.liger.LigerPlugin", "keys": {"liger_rope": ["0.5.0", None]}}
    assert found["pins"]["0.6.0"] == {"transformers": "4.46.1"}
    assert found["plugins"] == {"liger": liger}
    assert found["deepspeed"] == {"zero1.json": {"zero_optimization": {"stage": 1}}}


def test_the_schema(checkout: Path) -> None:
    made = schema(releases(checkout)[-1])
    keys = made["properties"]
    assert made["required"] == ["base_model"] and made["x-unknown-keys"] == "ignored"
    assert keys["bf16"] == {"enum": ["auto", True, False, None], "default": "auto"}
    assert keys["rl"] == {"enum": ["dpo", None]}
    assert keys["liger_rope"]["x-plugin"] == "axolotl.integrations.liger.LigerPlugin"
    assert keys["rope_scaling"] == {"deprecated": True, "enum": [None, False]}
    assert keys["fsdp_config"]["anyOf"][0] == {"$ref": "#/$defs/FSDPConfig"}
    assert made["$defs"]["FSDPConfig"]["properties"].keys() == {"fsdp_version", "offload_params", "version"}
