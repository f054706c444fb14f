"""Storage: checkpoints on disk, as JSON and safetensors."""

from .checkpoint import load, save, write_checkpoint
from .errors import CheckpointError
from .held import Checkpoint
from .snapshots import Snapshots

__all__ = ["Checkpoint", "CheckpointError", "Snapshots", "load", "save", "write_checkpoint"]
