"""Storage: checkpoints on disk, as JSON and safetensors."""

from .checkpoint import Checkpoint, load, save, write_checkpoint
from .errors import CheckpointError
from .snapshots import Snapshots

__all__ = ["Checkpoint", "CheckpointError", "Snapshots", "load", "save", "write_checkpoint"]
