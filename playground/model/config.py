"""ModelConfig: every choice that makes one transformer different from another, and what those choices cost."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ..checks import Bounds, Settings, check_fields

POSITIONS = ("learned", "sinusoidal", "rotary", "none")
NORMS = ("layernorm", "rmsnorm")
NORM_PLACEMENTS = ("pre", "post")
ACTIVATIONS = ("relu", "gelu", "relu2", "swiglu")
ATTENTION_LAYOUTS = ("fused", "separate_heads")
BALANCES = ("switch", "constant", "bias", "none")

_COUNT = Bounds(least=1)
_LIMITS = {
    **dict.fromkeys(("vocab_size", "context_length", "n_layers", "d_model", "n_heads", "n_kv_heads", "d_ff"), _COUNT),
    "head_width": _COUNT,
    **dict.fromkeys(("experts_per_token", "moe_every", "d_expert"), _COUNT),
    **dict.fromkeys(("n_experts", "balance_weight", "router_z_weight", "router_noise"), Bounds(least=0)),
    "positions": POSITIONS,
    "norm": NORMS,
    "norm_placement": NORM_PLACEMENTS,
    "activation": ACTIVATIONS,
    "attention_layout": ATTENTION_LAYOUTS,
    "balance": BALANCES,
    "rotary_base": Bounds(least=1, open=True),
    "norm_eps": Bounds(least=0, open=True),
    "init_std": Bounds(least=0, open=True),
    "dropout": Bounds(0, 0.9999),
}

GPT2_SMALL_PARAMETERS = 124_439_808  # Radford et al. 2019, the released "small" weights, head tied


@dataclass(frozen=True)
class ModelConfig(Settings):
    """The shape of one decoder-only transformer. Frozen and validated: any config that exists can be built.

    Make variants with `replace`: `config.replace(d_model=256)`. Fields left at `None` are derived from the others
    (`n_kv_heads` → `n_heads`, `head_width` → `d_model` / `n_heads`, `d_ff` → 4·`d_model`) and stay `None`, so that
    `replace` derives them anew; read the resolved numbers from `kv_heads`, `ff_width` and `d_head`.
    """

    OF = "a model"

    vocab_size: int = 65
    """V: how many different tokens there are."""
    context_length: int = 64
    """How many tokens the model can see at once."""
    n_layers: int = 4
    """How many blocks (attention, then feed-forward) are stacked."""
    d_model: int = 128
    """Width of the residual stream: numbers per token between the blocks."""
    n_heads: int = 4
    """Query heads per layer."""
    head_width: int | None = None
    """Numbers per head; None means d_model / n_heads."""
    n_kv_heads: int | None = None
    """Key/value heads; fewer than n_heads shares each among several query heads (grouped-query attention)."""
    d_ff: int | None = None
    """Width of the feed-forward hidden layer; None means 4·d_model, or two thirds of that with swiglu."""

    positions: str = "learned"
    """How positions are encoded: learned | sinusoidal (both added to the embedding), rotary (turns Q and K), none."""
    rotary_base: float = 10_000.0
    """Base of the rotary wavelengths (Su et al. 2021, section 3.4.3)."""
    norm: str = "layernorm"
    """layernorm (mean and variance) or rmsnorm (root mean square only)."""
    norm_placement: str = "pre"
    """pre: x + f(norm(x)). post: norm(x + f(x)), as in the original transformer."""
    norm_eps: float = 1e-5
    """Added to the variance before the square root."""
    norm_bias: bool = True
    """Whether LayerNorm has a bias (RMSNorm never has)."""
    activation: str = "gelu"
    """Feed-forward nonlinearity: relu, gelu, relu2 (squared ReLU) or swiglu (gated, three matrices)."""
    gelu_tanh: bool = False
    """Use the tanh approximation of GELU, with which GPT-2 was trained."""
    qk_norm: bool = False
    """RMS-normalise every query and key head before the dot product (Henry et al. 2020)."""

    qkv_bias: bool = True
    """Biases on the query, key and value projections."""
    attention_output_bias: bool = True
    """Bias on the projection that mixes the heads back into the residual stream."""
    feedforward_bias: bool = True
    """Biases in the feed-forward layer."""
    head_bias: bool = False
    """Bias on the output layer (the head over the vocabulary)."""
    tie_embeddings: bool = False
    """Use the token embedding itself as the output layer's matrix."""
    scale_embeddings: bool = False
    """Whether to multiply token embeddings by √d_model, as in the original transformer."""

    n_experts: int = 0
    """Feed-forward experts per MoE layer; 0 makes a dense model."""
    experts_per_token: int = 2
    """How many experts each token visits."""
    moe_every: int = 1
    """Every k-th block has experts (the k-th, 2k-th, …); the others stay dense."""
    d_expert: int | None = None
    """Hidden width of one expert; None means the same as the dense layer's d_ff."""
    shared_expert: bool = False
    """One more expert that every token visits (Dai et al. 2024)."""
    balance: str = "switch"
    """How load is balanced: switch (a loss), bias (no loss, DeepSeek-V3), constant (a famous slip), none."""
    balance_weight: float = 0.01
    """Factor of the balance loss."""
    router_z_weight: float = 0.0
    """Factor of the router z-loss, which keeps router scores small."""
    router_noise: float = 0.0
    """Standard deviation of noise on the router's scores while training."""

    dropout: float = 0.0
    """Probability of zeroing a number after the embedding, in the attention weights and after each sublayer."""
    causal: bool = True
    """Hide the future from each position. Switch it off to see what goes wrong without it."""
    attention_layout: str = "fused"
    """fused: one projection makes all of Q, K, V. separate_heads: a list of small heads. Same function."""

    init_std: float | None = 0.02
    """Standard deviation of the initial weights; None means 1/√fan_in for matrices."""
    scale_residual_init: bool = False
    """Divide the initial output projections by √(2·n_layers), as in GPT-2."""
    zero_init_outputs: bool = False
    """Start output projections at zero, so that every block begins as the identity."""

    def __post_init__(self) -> None:
        check_fields(self, _LIMITS)
        if self.head_width is None and self.d_model % self.n_heads:
            raise ValueError(f"d_model {self.d_model} is not divisible by n_heads {self.n_heads}")
        if self.n_heads % self.kv_heads:
            raise ValueError(f"n_heads {self.n_heads} is not divisible by n_kv_heads {self.kv_heads}")
        if self.attention_layout == "separate_heads" and self.kv_heads != self.n_heads:
            raise ValueError("separate heads each own their keys and values: leave n_kv_heads empty, or use 'fused'")
        if self.positions == "rotary" and self.d_head % 2:
            raise ValueError(f"rotary positions turn pairs of numbers: a head of {self.d_head} must be even")
        if self.positions == "sinusoidal" and self.d_model % 2:
            raise ValueError(f"sinusoidal positions need an even d_model, not {self.d_model}")
        if self.n_experts == 1:
            raise ValueError("one expert is a plain MLP: choose at least 2 experts, or 0 for a dense model")
        if self.n_experts and self.experts_per_token > self.n_experts:
            raise ValueError(
                f"each token cannot use {self.experts_per_token} experts when there are only {self.n_experts}"
            )
        if self.n_experts and self.moe_every > self.n_layers:
            raise ValueError(
                f"experts in every {self.moe_every}th of {self.n_layers} blocks means none: lower moe_every"
            )

    # ---- resolved shapes -------------------------------------------------------------------------------------------

    @cached_property
    def d_head(self) -> int:
        """Numbers per head, d_model / n_heads unless said otherwise."""
        return self.head_width if self.head_width is not None else self.d_model // self.n_heads

    @cached_property
    def kv_heads(self) -> int:
        """Key/value heads per layer, n_heads unless said otherwise."""
        return self.n_kv_heads if self.n_kv_heads is not None else self.n_heads

    @property
    def ff_width(self) -> int:
        """Hidden width of the feed-forward layer, 4·d_model unless said otherwise.

        SwiGLU has three matrices instead of two, so its default is 8/3·d_model, rounded up to a multiple of 8, which
        makes about as many parameters (Shazeer 2020).
        """
        if self.d_ff is not None:
            return self.d_ff
        return -(-self.d_model // 3) * 8 if self.activation == "swiglu" else 4 * self.d_model

    @property
    def expert_width(self) -> int:
        """Hidden width of one expert, d_ff unless said otherwise."""
        return self.d_expert if self.d_expert is not None else self.ff_width

    def has_experts(self, layer: int) -> bool:
        """Whether block `layer` (from 0) holds a mixture of experts."""
        return self.n_experts > 0 and (layer + 1) % self.moe_every == 0

    @property
    def n_moe_layers(self) -> int:
        """How many blocks hold a mixture of experts."""
        return self.n_layers // self.moe_every if self.n_experts else 0

    # ---- what it costs ---------------------------------------------------------------------------------------------

    def parameters_by_component(self) -> dict[str, int]:
        """Trainable numbers per component, in the order in which a token meets them. Sums to `n_parameters`."""
        dense_layers = self.n_layers - self.n_moe_layers
        return {
            "token embedding": self.vocab_size * self.d_model,
            "position embedding": self.context_length * self.d_model if self.positions == "learned" else 0,
            "attention": self.n_layers * self._attention_parameters(),
            "feed-forward": dense_layers * self._feedforward_parameters(self.ff_width),
            "experts": self.n_moe_layers * self._expert_count() * self._feedforward_parameters(self.expert_width),
            "routers": self.n_moe_layers * self.d_model * self.n_experts,
            "norms": (2 * self.n_layers + 1) * self._norm_parameters(),
            "output head": (0 if self.tie_embeddings else self.vocab_size * self.d_model)
            + (self.vocab_size if self.head_bias else 0),
        }

    @property
    def n_parameters(self) -> int:
        """All trainable numbers; a tied head counts once."""
        return sum(self.parameters_by_component().values())

    @property
    def n_active_parameters(self) -> int:
        """Trainable numbers that one token uses: all but the experts it does not visit."""
        idle = self.n_moe_layers * (self.n_experts - self.experts_per_token)
        return self.n_parameters - idle * self._feedforward_parameters(self.expert_width) if idle else self.n_parameters

    def numbers_in_step(self, batch_size: int) -> int:
        """How many numbers one activation (batch, context, d_model) of a training step holds."""
        return batch_size * self.context_length * self.d_model

    def flops_per_token(self, length: int | None = None, *, training: bool = False) -> int:
        """Floating-point operations in the matrix products for one token that attends to `length` keys.

        A product of (1, n) with (n, m) counts 2·n·m (one multiply and one add each). `length` defaults to the whole
        context, which is also the cost per token of a forward pass over a full window, masked cells included. Decoding
        one token from the cache costs the same as one token of a forward pass. Training costs three times as much: one
        forward pass, and a backward pass with twice as many products (Kaplan et al. 2020, section 2.1).
        """
        keys = self.context_length if length is None else length
        attention = 2 * self._attention_matrices()
        attention += 4 * keys * self.n_heads * self.d_head  # q·k for every key, then the blend of the values
        visited = self.experts_per_token + self.shared_expert
        experts = 2 * visited * self._feedforward_matrices(self.expert_width) + 2 * self.d_model * self.n_experts
        dense = 2 * self._feedforward_matrices(self.ff_width)
        forward = self.n_layers * attention + 2 * self.vocab_size * self.d_model
        forward += self.n_moe_layers * experts + (self.n_layers - self.n_moe_layers) * dense
        return 3 * forward if training else forward

    def cache_bytes(self, length: int | None = None, *, batch: int = 1, bytes_per_number: int = 4) -> int:
        """Bytes for the keys and values of `length` tokens: 2 · layers · kv heads · d_head · length · batch · bytes."""
        tokens = self.context_length if length is None else length
        return 2 * self.n_layers * self.kv_heads * self.d_head * tokens * batch * bytes_per_number

    def _attention_matrices(self) -> int:
        return self.d_model * self.d_head * (2 * self.n_heads + 2 * self.kv_heads)

    def _attention_parameters(self) -> int:
        biases = self.d_head * (self.n_heads + 2 * self.kv_heads) if self.qkv_bias else 0
        biases += self.d_model if self.attention_output_bias else 0
        return self._attention_matrices() + biases + (2 * self.d_head if self.qk_norm else 0)

    def _feedforward_matrices(self, width: int) -> int:
        return self.d_model * width * (3 if self.activation == "swiglu" else 2)

    def _feedforward_parameters(self, width: int) -> int:
        hidden_biases = width * (2 if self.activation == "swiglu" else 1)
        return self._feedforward_matrices(width) + (hidden_biases + self.d_model if self.feedforward_bias else 0)

    def _expert_count(self) -> int:
        return self.n_experts + self.shared_expert

    def _norm_parameters(self) -> int:
        return self.d_model * (2 if self.norm == "layernorm" and self.norm_bias else 1)
