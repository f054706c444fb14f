"""Text in: tokenizers, synthetic languages with a known floor, and corpora with their baselines."""

from .baselines import IGNORE, Baselines
from .byte_pairs import load_encoding
from .corpus import Corpus, corpus_from_language, corpus_from_sentences, corpus_from_text, real_tokens
from .errors import TextError
from .languages import LANGUAGES, Language
from .text_files import decode_upload, read_file, read_hub
from .tokenizers import Tokenizer, build_tokenizer, tokenizer_from_dict, visible

__all__ = [
    "IGNORE",
    "LANGUAGES",
    "Baselines",
    "Corpus",
    "Language",
    "TextError",
    "Tokenizer",
    "build_tokenizer",
    "corpus_from_language",
    "corpus_from_sentences",
    "corpus_from_text",
    "decode_upload",
    "load_encoding",
    "read_file",
    "read_hub",
    "real_tokens",
    "tokenizer_from_dict",
    "visible",
]
