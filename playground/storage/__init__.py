"""Storage: checkpoints on disk, as JSON and safetensors."""

from .checkpoint import Checkpoint, CheckpointError, load, save
from .snapshots import Snapshots

__all__ = ["Checkpoint", "CheckpointError", "Snapshots", "load", "save"]
