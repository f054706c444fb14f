"""Training: train(model, corpus, config) yields frozen events; History turns them into curves."""

from .config import TrainConfig
from .events import (
    BestKept,
    Evaluated,
    Finished,
    GradientsMeasured,
    LoadMeasured,
    Noticed,
    Sampled,
    Saved,
    SettingsChanged,
    SkillMeasured,
    Snapshotted,
    Started,
    Stepped,
    TrainEvent,
)
from .history import History
from .loop import train
from .losses import evaluate, loss_of
from .recipes import RECIPES

__all__ = [
    "RECIPES",
    "BestKept",
    "Evaluated",
    "Finished",
    "GradientsMeasured",
    "History",
    "LoadMeasured",
    "Noticed",
    "Sampled",
    "Saved",
    "SettingsChanged",
    "SkillMeasured",
    "Snapshotted",
    "Started",
    "Stepped",
    "TrainConfig",
    "TrainEvent",
    "evaluate",
    "loss_of",
    "train",
]
