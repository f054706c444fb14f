"""Storage: checkpoints on disk, as JSON and safetensors."""

from .checkpoint import Checkpoint, CheckpointError, load, save

__all__ = ["Checkpoint", "CheckpointError", "load", "save"]
