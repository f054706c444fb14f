"""The page for programs: named endpoints to list models, train, generate and inspect, as plain values.

    client = gradio_client.Client("http://127.0.0.1:7860")
    client.predict("Mia lived by the sea.", api_name="/generate")["text"]

The same limits hold as on the page, checked here in Python, since a caller may send anything. A caller is a visitor:
the `visitor` in /train's answer gives access to that visitor's models, and nothing else does. With `--mcp` the same
endpoints are tools for language models, described by these docstrings.

T = tokens of a prompt, D = d_head.
"""

# no postponed annotations here: gradio reads the types themselves. It joins the lines of Returns with commas.

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import gradio as gr
import torch

from ..engine import stream
from ..inspection.look import look
from ..service.board import Board
from ..service.limits import WRITERS
from ..service.run_job import RunJob
from ..service.runs import OWN_TEXT
from ..storage import Checkpoint
from .forms import run as form
from .forms import texts
from .forms.fields import whole
from .forms.sampling import sampling
from .page import Page
from .prompts import read_prompt
from .refusals import in_words
from .writers import seconds_between_updates

ENDPOINTS = {
    "models": {"concurrency_limit": 4},
    "train": {"concurrency_limit": None},  # the board says who may train; waiting there holds no thread
    "generate": {"concurrency_id": "generate", "concurrency_limit": WRITERS},
    "inspect": {"concurrency_id": "look", "concurrency_limit": 4},
}
"""Name → how many of its calls run at once."""
LOOKS_PER_SECOND = 5


def build(page: Page) -> None:
    """Add the endpoints to the page's Blocks, before any tab takes one of their names for a handler of its own."""
    endpoints = Endpoints(page)
    for name, queue in ENDPOINTS.items():
        gr.api(getattr(endpoints, name), api_name=name, **queue)


class Endpoints:
    """The endpoints. Answers are JSON: numbers, texts, lists and dictionaries."""

    def __init__(self, page: Page):
        self.page = page

    def models(self, visitor: str = "") -> list[dict]:
        """List the small language models here: those that ship, and those you trained.

        Args:
            visitor: the visitor id that /train answered, to see its models, too; empty for shipped ones.

        Returns:
            A list of {id, name, shipped}; give an id as `model` to the other endpoints.
        """
        with in_words():
            own = self.page.known(visitor) if visitor else None
            entries = self.page.registry.models(own)
            return [{"id": entry.id, "name": entry.name, "shipped": entry.shipped} for entry in entries]

    async def train(
        self,
        text: str = "",
        language: str = "stories",
        size: str = "tiny",
        steps: int = 0,
        prompt: str = "",
        settings: dict = {},  # noqa: B006 (gradio reads the default from here; nobody changes it)
        visitor: str = "",
        request: gr.Request = None,
    ) -> AsyncIterator[dict]:
        """Train a small transformer language model from scratch and stream what happens; seconds for a tiny one.

        The first event names the `visitor` and the `model` to use with the other endpoints; keep both. Closing the
        stream stops the run; the model so far stays.

        Args:
            text: plain text to learn from, a page or more; empty to learn a built-in language.
            language: used if there is no text (stories, copy, brackets, addition, phonebook, dialects or sentences).
            size: tiny, small or medium.
            steps: optimizer steps; 0 takes the size's own number.
            prompt: the samples written during training continue this text.
            settings: more settings by name, such as {"d_model": 64, "n_layers": 2, "learning_rate": 0.003, "seed": 1}.
            visitor: the visitor id of an earlier /train, to keep models together; empty for a new one.

        Returns:
            Events, one after the other, losses in nats per token: accepted {visitor, model}
            waiting {place, seconds}, if all places are taken
            baselines {uniform, unigram, bigram, ngram, floor: the best possible loss, texts of each, …}
            stepped {step, loss, tokens_per_second}
            evaluated {step, train_loss, val_loss}
            sampled {step, prompt, text}
            and last finished {reason, message, val_loss, visitor, model}.
        """
        with in_words():
            visitor = self.page.known(visitor) if visitor else self.page.registry.data.new_visitor()
            share = self.page.share_of(request)
            spec = await asyncio.to_thread(self._spec, text, language, size, steps, prompt, settings)
            job = await asyncio.to_thread(self.page.board.start, visitor, spec, by_program=True, share=share)
            try:
                yield {"event": "accepted", "visitor": visitor, "model": job.id, "name": job.name}
                async for event in _told(job, self.page.board):
                    yield event
            finally:
                self.page.board.stop(visitor, job.id)

    def generate(
        self,
        prompt: str,
        model: str = "",
        max_new_tokens: int = 100,
        temperature: float = 0.8,
        top_k: int = 0,
        top_p: float = 1.0,
        seed: int = 0,
        visitor: str = "",
        precision: str = "fp32",
    ) -> Iterator[dict]:
        """Continue a text with one of the small language models, streaming it as it is written.

        Args:
            prompt: the beginning of the text.
            model: a model's id from /models or /train; empty for the one the page opens with.
            max_new_tokens: how many tokens to write.
            temperature: below 1 safer, above 1 wilder, 0 always the likeliest token.
            top_k: keep only this many of the likeliest tokens; 0 keeps all.
            top_p: keep the smallest set of likeliest tokens with this much probability; 1 keeps all.
            seed: the same seed, prompt and settings give the same text.
            visitor: the visitor id that /train answered, for a model trained under it.
            precision: of the weights while it writes: fp32, bf16 or int8.

        Returns:
            The text so far, again and again, as {text, new_tokens, done}
            the last one also with tokens (a list of {token, probability}) and notes.
        """
        with in_words():
            checkpoint = self._model(model, visitor)
            new_tokens = whole("max_new_tokens", max_new_tokens)
            self.page.limits.check_generation(new_tokens)
            rules = sampling({"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed})
            ids, notes = read_prompt(self.page, checkpoint, _text("prompt", prompt))
            written, text, due = [], "", 0.0
            way = {"shared": True, "precision": _text("precision", precision)}
            for _, (new,) in stream(checkpoint.model, checkpoint.tokenizer, ids, new_tokens, rules, **way):
                written.append(new)
                text += new.text
                if time.monotonic() > due:
                    yield {"text": text, "new_tokens": len(written), "done": False}
                    due = time.monotonic() + seconds_between_updates(checkpoint.model)
            token_text = checkpoint.tokenizer.token_text
            tokens = [{"token": token_text(new.id), "probability": _short(new.probability)} for new in written]
            yield {"text": text, "new_tokens": len(written), "done": True, "tokens": tokens, "notes": notes}

    def inspect(
        self, prompt: str, model: str = "", layer: int = 0, head: int = 0, vectors: bool = False, visitor: str = ""
    ) -> dict:
        """Look inside one attention head: what every token of a prompt attends to, as numbers.

        Args:
            prompt: the text to read.
            model: a model's id from /models or /train; empty for the one the page opens with.
            layer: which layer, from 0.
            head: which head, from 0.
            vectors: also return the queries, keys and values (rotated where positions are rotary).
            visitor: the visitor id that /train answered, for a model trained under it.

        Returns:
            {tokens, pattern, attends_most, n_layers, n_heads, notes}
            where pattern[i][j] is how much token i attends to token j (every row sums to 1 and future tokens get 0)
            with vectors also scores (before the mask), queries, keys and values, one row per token.
        """
        with in_words():
            checkpoint = self._model(model, visitor)
            ids, notes = read_prompt(self.page, checkpoint, _text("prompt", prompt))
            config = checkpoint.config
            layer = whole("layer", layer, 0, config.n_layers - 1)
            head = whole("head", head, 0, config.n_heads - 1)
            seen = look(checkpoint, ids[-config.context_length :])
            pattern = seen.pattern(layer)[head]  # (T, T)
            answer = {
                "tokens": [checkpoint.tokenizer.token_text(token) for token in seen.ids],
                "pattern": _rows(pattern),
                "attends_most": pattern.argmax(dim=-1).tolist(),
                "layer": layer,
                "head": head,
                "n_layers": config.n_layers,
                "n_heads": config.n_heads,
                "notes": notes,
            }
            if vectors:
                answer["scores"] = _rows(seen.scores(layer)[head])  # before the mask
                answer["queries"] = _rows(seen.queries(layer)[head])  # (T, D)
                answer["keys"] = _rows(seen.keys(layer)[head])
                answer["values"] = _rows(seen.values(layer)[head])
            return answer

    # ---- what they share ---------------------------------------------------------------------------------------------

    def _model(self, model: str, visitor: str) -> Checkpoint:
        """A shipped model or one of this visitor's. Raises ValueError."""
        own = self.page.known(visitor) if visitor else None
        return self.page.registry.get(_text("model", model) or self.page.registry.default, own)

    def _spec(self, text: Any, language: Any, size: Any, steps: Any, prompt: Any, settings: Any):
        """The requested run, as the page's form would make it. Raises ValueError."""
        source = OWN_TEXT if _text("text", text) else _text("language", language)
        if source not in texts.SOURCES or (source == OWN_TEXT and not text):
            known = ", ".join(name for name in texts.SOURCES if name != OWN_TEXT)
            raise ValueError(f"there is no language called {language!r}: give a text, or choose one of {known}")
        if _text("size", size) not in form.SIZES:
            raise ValueError(f"size is {size!r}; choose one of {', '.join(form.SIZES)}")
        if not isinstance(settings, dict):
            raise ValueError('settings must be a dictionary such as {"d_model": 64}')
        unknown = sorted(str(name) for name in settings if name not in form.BY_NAME)
        if unknown:
            raise ValueError(f"there is no setting called {unknown[0]!r}; there are {', '.join(form.BY_NAME)}")
        asked = {"source": source, "size": size, "own_kind": "paste", "text": text}
        read = texts.source_of(asked, self.page.limits)  # checked before the text is split into tokens
        own = texts.own_of(read.text, str(settings.get("tokenizer", "char"))) if source == OWN_TEXT else texts.UNKNOWN
        values = form.base_values(size, source, own)
        if steps := whole("steps", steps):
            values |= {"steps": steps}
        values |= settings
        values |= asked | {"prompt": _text("prompt", prompt) or texts.PROMPTS.get(source, "")}
        return form.run_spec(values, read, self.page.limits)


async def _told(job: RunJob, board: Board) -> AsyncIterator[dict]:
    """The events of a run until it is over; of the steps between two checks, only the latest."""
    place = None
    evaluated = sampled = step = 0
    compared = False
    while True:
        settled = job.settled  # checked before the view is taken, so that the last view holds everything
        board.of(job.visitor)  # a listening client keeps its place in the queue
        view = await asyncio.to_thread(job.view)
        if view.place is not None and view.place != place:
            yield {"event": "waiting", "place": view.place, "seconds": view.wait}
        place = view.place
        if view.baselines is not None and not compared:
            compared = True
            yield {"event": "baselines", **view.baselines.to_dict()}
        if view.latest is not None and view.latest.step > step:
            step = view.latest.step
            yield {
                "event": "stepped",
                "step": step,
                "steps": view.planned_steps,
                "loss": view.latest.loss,
                "tokens_per_second": view.latest.tokens_per_second,
                "time_left": view.latest.time_left,
            }
        history = view.history
        for i in range(evaluated, len(history.evaluations["step"])):
            yield {"event": "evaluated", **{name: column[i] for name, column in history.evaluations.items()}}
        for sample in history.samples[sampled:]:
            yield {"event": "sampled", **sample}
        evaluated, sampled = len(history.evaluations["step"]), len(history.samples)
        if settled:
            break
        await asyncio.sleep(1 / LOOKS_PER_SECOND)
    if view.state == "failed":
        raise ValueError(view.message)
    reason = (history.finished or {}).get("reason", "")
    yield {
        "event": "finished",
        "reason": reason,
        "message": view.message,
        "step": history.last_step,
        "val_loss": history.val_loss,
        "visitor": job.visitor,
        "model": job.id,
        "notices": list(view.notices),
    }


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name} must be a text, not {type(value).__name__}")
    return value


def _rows(matrix: torch.Tensor) -> list[list[float]]:
    return [[_short(x) for x in row] for row in matrix.tolist()]


def _short(x: float) -> float:
    """Numbers to seven digits, all that float32 holds."""
    return float(f"{x:.7g}")
