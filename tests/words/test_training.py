"""What a run reports, in sentences."""

from playground.training import Finished, Noticed, SettingsChanged
from playground.training.events import DEVICE_FAULT, NO_GPU, NOT_COMPILED, OTHER_MACHINE
from playground.words.training import as_dict, ended, message


def test_every_reason_to_end_has_a_sentence_and_a_divergence_says_which_weights_are_back():
    for reason in ("done", "stopped", "time", "risen", "diverged"):
        event = Finished(9, 1.0, reason=reason, steps=1000, val_loss=1.0)
        assert message(event).endswith(".") and as_dict(event)["message"] == ended(event.to_dict()) == message(event)
    back = ended({"reason": "diverged", "step": 9, "steps": 12, "weights_step": 8})
    assert back.startswith("The loss stopped being a number after 9 steps. The weights of step 8 are back: try a lower")
    assert ended({"message": "All 5 steps are done."}) == "All 5 steps are done.", "as older versions kept it"


def test_every_notice_has_a_sentence():
    fault = {"device": "mps", "precision": "float32", "part": "dropout", "off": 0.5}
    machines = {"before": "float32 on cpu, threads: 1", "now": "float32 on cpu, threads: 2"}
    facts = {
        DEVICE_FAULT: fault,
        NOT_COMPILED: {"error": "no compiler"},
        NO_GPU: {},
        OTHER_MACHINE: {**machines, "settings": {"precision": ("auto", "bf16")}},
    }
    said = {kind: message(Noticed(5, 1.0, kind, values)) for kind, values in facts.items()}
    assert said[DEVICE_FAULT].startswith("Apple's GPU computes dropout in float32 wrongly (50.0 % off)")
    assert "threads: 1 and goes on with" in said[OTHER_MACHINE] and "from 'auto' to 'bf16'" in said[OTHER_MACHINE]
    assert all(words.endswith(".") for words in said.values())
    changed = SettingsChanged(8, 1.0, {"steps": (8, 1200), "max_seconds": (None, 3.0)})
    assert message(changed) == "Changed after step 8: steps from 8 to 1,200, max_seconds from none to 3.0."
