"""Edits in words."""

from playground.inspection.edits import EditCell, RemoveMask, SwapPattern, SwitchOff
from playground.words.edits import edit_words


def test_every_edit_of_the_page_has_its_words():
    assert edit_words(SwitchOff(1, "head", 2)) == "head 2 of layer 1 switched off"
    assert edit_words(SwitchOff(0, "layer")) == "all of layer 0 switched off"
    assert "= 0.9" in edit_words(EditCell(1, 0, 5, 2, 0.9))
    assert "× 2" in edit_words(EditCell(1, 0, 5, 2, 2.0, scale=True))
    assert "only the token before" in edit_words(SwapPattern(1, 1, "previous"))
    assert edit_words(RemoveMask()) == "causal mask removed" and edit_words(RemoveMask(1)).endswith("in layer 1")
