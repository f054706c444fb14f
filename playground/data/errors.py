"""TextError: what is wrong with a visitor's text, and what to do about it."""


class TextError(ValueError):
    """A text, file or tokenizer that cannot be used; its message is meant to be shown to the user."""
