"""Storage: checkpoints on disk, as JSON and safetensors."""

from .checkpoint import Checkpoint, load, save
from .errors import CheckpointError
from .snapshots import Snapshots

__all__ = ["Checkpoint", "CheckpointError", "Snapshots", "load", "save"]
