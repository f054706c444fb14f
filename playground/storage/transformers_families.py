"""The families of Transformers that models of ours belong to: who fits, and how settings and tensors translate.

Pure functions between our `ModelConfig` and state and a family's config.json and tensor names; files are read in
transformers_import.py and written in transformers_export.py. The names are those of the published checkpoints, which
every version of Transformers reads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..model import ModelConfig
from . import transformers_gpt2 as gpt2
from . import transformers_llama as llama
from .shapes import State


@dataclass(frozen=True)
class Family:
    """One architecture of Transformers: who fits, and how names and tensors translate."""

    name: str
    """Its model_type."""
    title: str
    """How people call it."""
    stand_in_the_way: Callable[[ModelConfig], dict[str, bool]]
    """For every setting that has no place in it, in words: whether a config has it."""
    config_out: Callable[[ModelConfig], dict[str, Any]]
    config_in: Callable[[dict[str, Any]], ModelConfig]
    state_out: Callable[[State, ModelConfig], State]
    state_in: Callable[[State, ModelConfig], State]

    def obstacles(self, config: ModelConfig) -> list[str]:
        """Which settings of a config have no place in it, in words; none if the model has its home here."""
        return [words for words, so in self.stand_in_the_way(config).items() if so]


_LIKE_LLAMA = (llama.config_out, llama.config_in, llama.state_out, llama.state_in)

FAMILIES = (
    Family("gpt2", "GPT-2", gpt2.obstacles, gpt2.config_out, gpt2.config_in, gpt2.state_out, gpt2.state_in),
    Family("llama", "Llama", llama.llama_obstacles, *_LIKE_LLAMA),
    Family("mixtral", "Mixtral", llama.mixtral_obstacles, *_LIKE_LLAMA),
    Family("qwen3", "Qwen3", llama.qwen3_obstacles, *_LIKE_LLAMA),
    Family("qwen3_moe", "Qwen3-MoE", llama.qwen3_moe_obstacles, *_LIKE_LLAMA),
)
