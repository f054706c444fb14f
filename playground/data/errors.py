"""TextError: what is wrong with a visitor's text, in a sentence that says what to do."""


class TextError(ValueError):
    """A text, file or tokenizer that cannot be used; its message is meant to be shown to the user."""
