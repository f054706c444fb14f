"""All text that people see, sentence by sentence: from Python, JavaScript, JSON files and Markdown pages."""

import ast
import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
UNSEEN = (
    "playground/ui/gradio_fixes/", "playground/ui/theme.py", "playground/ui/assets/vendor/",
)  # fmt: skip
"""Files whose long strings are patches of scripts, code or styles, or others' words."""
CODE = re.compile(
    "|".join(
        (
            r"^\s*[.#@&][\w-]+[\s.:>{]",  # a style
            r"^\w+: [\w-]+;|px\b|[{}]\s*$|;\s*\n",
            r"\w\(\)|=>|\w+=[\"'{]|^\s*\(?\?|\\[dwsb]",  # calls, attributes, patterns
            r"\b(?:def|import|const|return|var\()\s?\w*[(=]|^import ",
            r"\bself\.|torch\.|[a-z]+\.[a-z]+\(|(?:^|\n)\w+(?:, \w+)* = \w+",
            r"\b(?:SELECT|UPDATE|INSERT|EXISTS) ",
            r"^text/|^[a-z-]+; [a-z]+=",  # headers
        )
    )
)
"""What only code has."""
BLOCK = re.compile(
    r"</?(?:p|div|li|ul|ol|td|th|tr|table|h\d|summary|details|label|button|option|br|section|dt|dd|figcaption|span)\b[^>]*>"
)


class Sentence(NamedTuple):
    """One sentence or heading, and the file that it is in."""

    path: str
    text: str
    heading: bool = False


def words(text: str) -> list[str]:
    """The words of a text; a number is one, too."""
    return re.findall(r"[^\W_]+(?:[’'./,·×%-][^\W_]+)*", text)


def sentences(text: str) -> list[str]:
    """A text without its markup, cut where a sentence ends."""
    text = re.sub(r"\{[qkvs]:([^}]*)\}", r"\1", text)  # the walk's coloured names
    text = html.unescape(re.sub(r"<[^>]*>", "", BLOCK.sub("\n", text)))
    text = re.sub(r"\b(?:e\.g|i\.e|vs|etc|approx)\. ", lambda found: found[0].replace(".", ""), text)
    pieces = re.split(r"(?<=[.!?…])[\"”’)*]*\s+(?=[\"“‘(*]*[A-Z0-9…#])|\n+", text)
    return [piece.strip(" *_") for piece in pieces if piece and piece.strip()]


def is_prose(text: str) -> bool:
    """Whether a literal is meant to be read by people: some words in a row, and nothing that only code has."""
    bare = re.sub(r"<[^>]*>", " ", text)
    row = re.search(r"[A-Za-z…’]+[,;:]? [a-zA-Z…0-9“]+[,;:]? [a-zA-Z…0-9“]+", bare)
    return bool(row) and not CODE.search(bare)


def in_python(source: str) -> Iterator[str]:
    """The prose of a module's literals; docstrings and the messages of assertions are left out."""
    tree = ast.parse(source)
    skipped = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            skipped |= {id(inner) for inner in ast.walk(node)}
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):  # its own pieces are read as one text
            skipped |= {id(value) for value in node.values if isinstance(value, ast.Constant)}
            skipped |= {id(v.format_spec) for v in node.values if isinstance(v, ast.FormattedValue)}
    for node in ast.walk(tree):
        if id(node) not in skipped and (isinstance(node, ast.JoinedStr) or _is_text(node)):
            yield _spoken(node)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _spoken(node: ast.AST) -> str:
    """A literal as it may be read: "…" for each value, and the longest of several texts."""
    if _is_text(node):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(map(_spoken, node.values))
    if isinstance(node, ast.FormattedValue):
        return _spoken(node.value)
    if isinstance(node, ast.IfExp):
        return max(_spoken(node.body), _spoken(node.orelse), key=len)
    return "…"


def in_script(source: str) -> Iterator[str]:
    """The prose of a script's literals."""
    source = re.sub(r"^\s*(?://|\*|/\*).*$", "", source, flags=re.MULTILINE)
    for quoted in re.finditer(r"`([^`]*)`|\"([^\"\n]*)\"|'([^'\n]*)'", source):
        yield re.sub(r"\$\{[^}]*\}", "…", next(filter(None, quoted.groups()), ""))


def in_json(value: object) -> Iterator[str]:
    """Every text in a JSON value; the keys are names."""
    if isinstance(value, str):
        yield re.sub(r"\{[^}]*\}", "…", value)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key not in ("formula", "when", "set", "see"):
                yield from in_json(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from in_json(inner)


def in_markdown(page: str) -> Iterator[tuple[str, bool]]:
    """Paragraphs and headings of a page, without code; each cell of a table stands by itself."""
    page = re.sub(r"^---\n.*?\n---\n|```.*?```|<!--.*?-->", "\n\n", page, flags=re.DOTALL)
    page = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", page)
    page = re.sub(r"`[^`\n]*`", "…", page)
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*|#]|\d+\.) ?)", page):
        block = " ".join(block.split())
        if block.startswith("#"):
            yield block.lstrip("# "), True
        elif block.startswith("|"):
            yield from ((cell, False) for cell in block.split("|"))
        else:
            yield re.sub(r"^(?:[-*]|\d+\.) ", "", block), False


def everything() -> Iterator[Sentence]:
    """Every sentence of the program, its pages and its golden files."""
    for path in sorted((ROOT / "playground").rglob("*")):
        name = path.relative_to(ROOT).as_posix()
        if name.startswith(UNSEEN) or path.suffix not in (".py", ".js", ".json"):
            continue
        source = path.read_text(encoding="utf-8")
        if path.suffix == ".json":
            texts = in_json(json.loads(source)) if name.endswith("glossary.json") or "/lessons/" in name else ()
        else:
            texts = filter(is_prose, (in_python if path.suffix == ".py" else in_script)(source))
        yield from (Sentence(name, sentence) for text in texts for sentence in sentences(text))
    for path in [ROOT / "README.md", ROOT / "benchmarks" / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        name = path.relative_to(ROOT).as_posix()
        for text, heading in in_markdown(path.read_text(encoding="utf-8")):
            yield from (Sentence(name, sentence, heading) for sentence in sentences(text))
    for path in sorted((ROOT / "tests" / "words").glob("*.txt")):
        name = path.relative_to(ROOT).as_posix()
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("  "):
                yield from (Sentence(name, sentence) for sentence in sentences(line))
