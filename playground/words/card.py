"""The model card: the README.md of a checkpoint, written from its contents."""

from __future__ import annotations

import json
import math

from ..model import GPT2_SMALL_PARAMETERS, ModelConfig
from ..storage import Checkpoint
from ..storage.hub import TAG
from ..storage.transformers_export import Parity
from ..training.states import state_of
from . import states
from .baselines import perplexity, title
from .training import in_steps


def share_of_gpt2(n: int) -> str:
    """A number of parameters as a share of GPT-2 small's."""
    share = 100 * n / GPT2_SMALL_PARAMETERS
    return f"{share:.2g} %" if share < 10 else f"{share:.0f} %"


def model_card(checkpoint: Checkpoint, *, repo_id: str | None = None, picture: str | None = None) -> str:
    """Markdown with the front matter the Hub reads: what the model is, how good it is, how to use it.

    `repo_id` is its place on the Hub, `picture` the file beside it that shows the curve.
    """
    config, history, about = checkpoint.config, checkpoint.history, checkpoint.about
    corpus, family = (str(about.get(name) or "") for name in ("corpus", "imported_from"))
    trained = f"trained with Transformer Playground{corpus and f' on {corpus}'}"
    lines = [
        *front_matter(checkpoint),
        "",
        f"# {checkpoint.name}",
        "",
        f"A transformer of {config.n_parameters:,} parameters ({share_of_gpt2(config.n_parameters)} of GPT-2 "
        f"small), {f'imported from Transformers ({family})' if family else trained}.",
        "",
        "## How good it is",
        "",
    ]
    done = in_steps(int((history.evaluations["step"] or [0])[-1]))  # where the last evaluation was
    if history.val_loss is not None and not math.isfinite(history.val_loss):
        lines.append(f"Its run went wrong: after {done} the validation loss is not a number.")
    elif history.val_loss is not None:
        lines.append(f"Validation loss {history.val_loss:.4f} after {done}. {perplexity(history.val_loss)}.")
        known = checkpoint.baselines
        lines += ["", str(states.result(state_of(history, causal=config.causal, baselines=known)))]
        baselines = dict(known.losses()) if known else {}
        if baselines:
            lines += ["", "| baseline | loss (nats per token) |", "|---|---|"]
            lines += [f"| {title(name)} | {loss:.4f} |" for name, loss in baselines.items()]
            lines.append(f"| **this model** | **{history.val_loss:.4f}** |")
    else:
        lines.append("It was not evaluated.")
    if picture:
        lines += ["", f"![Loss over steps, with the baselines]({picture})"]
    if history.samples:
        sample = history.samples[-1]
        text = (sample["prompt"] + sample["text"]).strip().replace("```", "'''")
        lines += ["", "## A sample", "", "```", text, "```"]
    lines += ["", "## What it is made of", "", "| component | parameters |", "|---|---|"]
    lines += [f"| {name} | {count:,} |" for name, count in config.parameters_by_component().items() if count]
    lines += [
        "",
        f"Tokens: {checkpoint.tokenizer.name} ({checkpoint.tokenizer.vocab_size:,}); {shape_in_words(config)}.",
        "",
        "## How to use it",
        "",
        "```",
        *([f"python -m playground pull {repo_id} --out model"] if repo_id else []),
        f'python -m playground generate {"model" if repo_id else "PATH_OF_THIS_FOLDER"} --prompt "…"',
        "```",
        "",
    ]
    return "\n".join(lines)


def shape_in_words(config: ModelConfig) -> str:
    """Layers, width, heads and context."""
    layers, heads = (f"{n} {what}{'' if n == 1 else 's'}"
                     for n, what in ((config.n_layers, "layer"), (config.n_heads, "head")))  # fmt: skip
    return f"{layers}, d_model {config.d_model}, {heads}, context {config.context_length}"


def front_matter(checkpoint: Checkpoint) -> list[str]:
    """The lines between dashes: library, task, tags, and the loss as a result that the Hub can list."""
    about, loss = checkpoint.about, checkpoint.history.val_loss
    kind = "mixture-of-experts" if checkpoint.config.n_experts else "dense"
    lines = [
        "---",
        "library_name: transformer-playground",
        "pipeline_tag: text-generation",
        f"tags: [{TAG}, tiny-transformer, {kind}]",
    ]
    if loss is not None and math.isfinite(loss):
        result = {
            "task": {"type": "text-generation"},
            "dataset": {"name": str(about.get("corpus") or "a text"), "type": str(about.get("language") or "text")},
            "metrics": [{"type": "loss", "name": "validation loss, nats per token", "value": round(loss, 4)}],
        }
        # JSON is YAML, and quotes names that YAML would misread
        lines.append("model-index: " + json.dumps([{"name": checkpoint.name, "results": [result]}]))
    return [*lines, "---"]


def exported_card(checkpoint: Checkpoint, parity: Parity) -> str:
    """The card of a folder for Transformers: how to open it, and the proof that it computes the same."""
    body = model_card(checkpoint).split("## How to use it")[0]
    body = body.replace("library_name: transformer-playground", "library_name: transformers")
    prompt = json.dumps(checkpoint.about.get("prompt") or "The", ensure_ascii=False)
    return f"""{body}## How to use it

```python
from transformers import AutoModelForCausalLM, AutoTokenizer

model = AutoModelForCausalLM.from_pretrained("PATH_OF_THIS_FOLDER")
tokenizer = AutoTokenizer.from_pretrained("PATH_OF_THIS_FOLDER")
tokens = tokenizer({prompt}, return_tensors="pt")
print(tokenizer.decode(model.generate(**tokens, max_new_tokens=100, do_sample=True)[0]))
```

## Does it give the same results?

This folder was {parity_in_words(parity)}.
"""


def parity_in_words(parity: Parity) -> str:
    """How closely an exported folder agrees with its model, and which program read it back."""
    version = parity.transformers
    reader = f"Transformers {version}" if version else "our own importer (Transformers is not installed)"
    greedy = "and both write the same greedy text" if parity.same_text else "but the two write different greedy texts"
    alike = f"all {f'but {parity.other_texts:,} of ' if parity.other_texts else ''}{parity.texts:,} texts"
    return (
        f"read back by {reader}. Over {parity.tokens:,} positions, no logit differs from the model's by more than "
        f"{parity.largest_difference:.1e}, {greedy}. Its tokenizer agrees with the model's on {alike}"
    )
