"""The model card says what the model is and how good it is, of what the checkpoint holds."""

from playground.data.tokenizers import CharTokenizer
from playground.model import Transformer
from playground.storage import Checkpoint
from playground.training import History
from playground.words.card import model_card
from tests.model.configs import TINY

LADDER = {"uniform": 2.4, "unigram": 2.0, "bigram": 1.5, "floor": 1.0}


def card(history: History, **about) -> str:
    return model_card(Checkpoint(Transformer(TINY), CharTokenizer("abcdefghij"), history, "My model", about))


def test_a_card_says_how_good_the_model_is_and_what_it_learned():
    history = History()
    history.evaluations = {"step": [0, 10], "train_loss": [2.0, 1.0], "val_loss": [2.1, 1.1], "seconds": [0.0, 1.0]}
    history.samples = [{"step": 10, "prompt": "ab", "text": "cd```"}]
    text = card(history, corpus="letters", ladder=LADDER)
    assert "My model" in text and "0.1000 nats above the true generator's floor" in text and "letters" in text
    assert text.count("```") == 4, "the sample's own backticks cannot end its block"
    below = card(history, corpus="letters", ladder=LADDER | {"floor": 1.43})
    assert "That is 0.3300 nats below the true generator's floor" in below


def test_the_card_of_an_imported_model_claims_no_training():
    text = card(History(), imported_from="gpt2")
    assert "imported from gpt2 of Transformers." in text and "trained with" not in text and "not evaluated" in text
