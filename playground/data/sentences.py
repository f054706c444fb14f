"""Twenty short sentences of our own in 27 words: a whole language, small enough to watch every number.

Sixteen are for training. The other four say nothing new: each of their words occurs in one of the sixteen, in a
sentence of the same build. A model that has learned how the words are used can guess them; one that has learned
sentences by heart cannot.
"""

NAME = "Twenty sentences"
"""The name of this text in models that learned it."""
END = "."
"""The mark that ends each sentence; what follows it is not learned."""

SENTENCES: tuple[str, ...] = (
    "the cat sees the dog .",
    "the dog sees the cat .",
    "the girl sees the bird .",
    "the boy sees the bird .",
    "the cat sleeps on the mat .",
    "the dog sleeps on the rug .",
    "the bird sings in the tree .",
    "the girl sings in the house .",
    "the boy reads in the house .",
    "the girl reads under the tree .",
    "a cat likes warm milk .",
    "a dog likes cold water .",
    "the boy likes cold milk .",
    "the girl likes warm water .",
    "the cat drinks the milk .",
    "the dog drinks the water .",
    "a bird drinks cold water .",
    "the boy sleeps in the house .",
    "the cat plays with the bird .",
    "the dog plays with the boy .",
)

HELD_OUT: tuple[str, ...] = (
    "the girl sees the bird .",
    "the girl likes warm water .",
    "the dog drinks the water .",
    "the boy sleeps in the house .",
)
"""The sentences that are held out."""
