"""The worked examples of Inspect."""

EXAMPLE_NOTES = {
    "pronoun": (
        "This model was written by hand. You can check it with pencil and paper. It reads “cat sleeps it” with 4 "
        "numbers per token: animal, action, pronoun, and what a pronoun refers to. It has 4 neurons and one head of "
        "width 2; a second head is zero. All numbers are float64. The query of “it” looks for an animal and finds "
        "the cat. Switch head 0 off under “Edit the model while it reads”: the prediction turns from “purrs” to "
        "“rains”."
    ),
    "notebook": (
        "These numbers come from a well-known NumPy notebook. You can check them with pencil and paper. It reads “one "
        "two three” with 4 numbers per token. It has one head of width 2; a second head and the MLP are zero. All "
        "numbers are float64. They are so small that all scores are near 0, so each token attends to all visible "
        "tokens equally."
    ),
}
"""The note beside each of `inspection.example.EXAMPLES`, which is not the model chosen above."""
