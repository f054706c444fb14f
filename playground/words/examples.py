"""The worked examples of Inspect in words."""

EXAMPLE_NOTES = {
    "pronoun": (
        "Not the model chosen above, but one written by hand, to check with pencil and paper: “cat sleeps it”, 4 "
        "numbers per token (animal, deed, pronoun, what a pronoun stands for), one head of width 2 (a second "
        "head is zero), 4 neurons, everything in float64. “it” asks for an animal and finds the cat; switch head "
        "0 off under “Change it”, and the guess turns from “purrs” to “rains”."
    ),
    "notebook": (
        "Not the model chosen above, but the numbers of a well-known NumPy notebook, to check with pencil and "
        "paper: “one two three”, 4 numbers per token, one head of width 2 (a second head is zero), everything in "
        "float64. They are so small that all scores lie near 0 and every token looks at all it sees alike; its "
        "feed-forward layer is zero."
    ),
}
"""What stands beside each of `inspection.example.EXAMPLES`."""
