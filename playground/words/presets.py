"""Presets: the title of each named model, as written on a button, and what is special about it."""

TITLES = {
    "s1": "Five classes",
    "s2": "Character GPT",
    "s3": "Post-norm GPT",
    "s4": "Shape walk",
    "s5": "Word walkthrough",
    "s5-moe": "Word walkthrough, eight experts",
    "gpt2-small": "GPT-2 small",
    "llama-7b": "Llama 7B shape",
    "nanogpt-cpu": "nanoGPT on a CPU",
    "fast": "Fast",
    "tiny": "Tiny",
    "small": "Small",
    "medium": "Medium",
}

NOTES = {
    "s1": "A list of separate heads, sinusoidal positions, ReLU, an untied output layer with bias.",
    "s2": "Characters, GELU, learned positions, the output layer tied to the embedding.",
    "s3": "The norm comes after each sum, as in the first transformer; GPT-2 small's shape, untied.",
    "s4": "Twelve numbers per token and three heads: small enough to check every shape by hand.",
    "s5": "Words instead of characters, biased projections, learned positions, an untied output layer.",
    "s5-moe": "The word walkthrough with a mixture of experts in every block: 8 experts, of which each token uses 2.",
    "gpt2-small": "The published shape of Radford et al. 2019: 124 million parameters.",
    "llama-7b": "For arithmetic only: what a cache costs at 7 billion parameters (Touvron et al. 2023).",
    "nanogpt-cpu": "The shape of nanoGPT's published CPU recipe, 0.8 million parameters.",
    "fast": "Reaches nanoGPT's loss on its CPU text soonest: rotary, RMSNorm, QK-norm, SwiGLU.",
    "tiny": "A tenth of a million parameters: a few seconds of training.",
    "small": "0.8 million parameters: readable text within half a minute.",
    "medium": "Five million parameters: minutes on a CPU, seconds on a GPU.",
}
