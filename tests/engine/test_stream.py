"""The stream: texts of tokens that make up the decoded text, however the tokenizer cuts it."""

from playground.data.tokenizers import CharTokenizer
from playground.engine import SamplingConfig, generate, stream
from playground.model import Transformer
from tests.model.configs import TINY


def test_the_stream_is_generate_with_texts():
    tokenizer = CharTokenizer("abcdefgh\n")
    model = Transformer(TINY.replace(vocab_size=tokenizer.vocab_size), seed=1)
    prompt, sampling = tokenizer.encode("abc"), SamplingConfig(seed=3)
    steps = list(generate(model, prompt, 40, sampling, n_samples=2))
    for i in range(2):
        streamed = [s.new[i] for s in stream(model, tokenizer, prompt, 40, sampling, n_samples=2)]
        assert [new.id for new in streamed] == [step.tokens[i] for step in steps]
        assert [new.probability for new in streamed] == [step.model_probability[i] for step in steps]
        assert "".join(new.text for new in streamed) == tokenizer.decode([step.tokens[i] for step in steps])


def test_a_sample_that_met_its_stop_text_gets_no_more():
    tokenizer = CharTokenizer("abcdefgh\n")
    model = Transformer(TINY.replace(vocab_size=tokenizer.vocab_size), seed=1)
    prompt = tokenizer.encode("abc")
    free = ["".join(s.new[i].text for s in stream(model, tokenizer, prompt, 30, n_samples=3)) for i in range(3)]
    met = [*stream(model, tokenizer, prompt, 30, n_samples=3, stop=["a"])]
    for i in range(3):
        text = "".join(s.new[i].text for s in met if s.new[i])
        assert text == free[i][: free[i].find("a") + 1 or 30]
