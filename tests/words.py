#!/usr/bin/env python3
"""Finds phrases that read like a translation in Markdown, comments and strings (CONTRIBUTING.md, "Words").

usage: words.py FILE...
Fails if the file README.md of the current folder has any, or if all files together have more than 8 per 1,000
lines of prose. Prose is every line of Markdown that is not empty, every line of code with a comment, and every
line with at least three words in a string (C++, Python) or in a here-document (shell). Comments of C++ with
fewer than three words do not count. With --list, it prints each line with such a phrase.
"""
import argparse
import io
import pathlib
import re
import sys
import tokenize

IDIOM = re.compile(
    r"\b(tells? of|told of|anew|foretold|unheeded|plainly|so many|to the last bit|mend(s|ed)?)\b"
    r"|\b(stands?|lies?) (in|at|there|here|beside)\b"
    r"|\b(goes|go|went) on\b"
    r"|\b(held|holds?) (\w+ ){0,4}against\b"
    r"|\bgives? up\b|\bbeside\b|\bof (its|their) own\b"
    r"|\bbut for (?!the first )|\ball else\b|\bwaits? for memory\b"
    r"|\b(kind|loss|option|field) of a plug-in\b|\bof its documentation\b"
    r"|(//|/\*|#) The (most|fewest) [a-z]+s\b"
    r"|\b(a|the|each|every) \w+ of (which|whom) (the|each|only|one|every|a)\b"
    r"|\b(share|source|picture|lines|those) of which\b", re.IGNORECASE)
CODE = re.compile(r'//.*|/\*.*|"(?:[^"\\]|\\.)*"')
SCRIPT = re.compile(r"#.*")
HERE_DOCUMENT = re.compile(r"(?<![<(\d])<<-?\s?([\"']?)([A-Za-z_]\w*)\1(?!\w)")
CODE_ENDINGS = {".h", ".cpp", ".cu", ".cuh"}
SCRIPT_ENDINGS = {".sh", ".cmake", ".yaml", ".txt", ""}
# These two files contain the phrases.
SKIPPED = {"words.py", "words_test.py"}
MOST_PER_THOUSAND = 8
FEWEST_WORDS = 3


def is_text(text):
    return len(text.split()) >= FEWEST_WORDS


def markdown_prose(text):
    yield from enumerate((line.strip() for line in text.splitlines()), 1)


def code_prose(text):
    for number, line in enumerate(text.splitlines(), 1):
        yield number, " ".join(found for found in CODE.findall(line) if is_text(found))


def python_prose(text):
    """Yields comments, and the lines of strings with at least FEWEST_WORDS words."""
    strings = {tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):
        yield from script_prose(text)
        return
    for token in tokens:
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
        elif token.type in strings and is_text(token.string):
            yield from enumerate(token.string.splitlines(), token.start[0])


def script_prose(text):
    """Yields comments, and the lines of here-documents with at least FEWEST_WORDS words."""
    end = None
    for number, line in enumerate(text.splitlines(), 1):
        if end is not None:
            if line.strip() == end:
                end = None
            elif is_text(line):
                yield number, line
            continue
        comment = SCRIPT.search(line)
        if comment:
            yield number, comment.group(0)
        begin = HERE_DOCUMENT.search(line)
        end = begin.group(2) if begin else None


def prose_of(path, text):
    """Yields (line number, part of the line that people read)."""
    interpreter = text.partition("\n")[0] if text.startswith("#!") else ""
    if path.suffix == ".md":
        yield from markdown_prose(text)
    elif path.suffix in CODE_ENDINGS:
        yield from code_prose(text)
    elif path.suffix == ".py" or "python" in interpreter:
        yield from python_prose(text)
    elif path.suffix in SCRIPT_ENDINGS:
        yield from script_prose(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print each line with such a phrase")
    parser.add_argument("files", nargs="+", type=pathlib.Path, help="files or folders")
    options = parser.parse_args()
    files = [file for given in options.files
             for file in (sorted(given.rglob("*")) if given.is_dir() else [given])]
    lines = hits = 0
    in_readme = []
    for path in files:
        if not path.is_file() or "golden" in path.parts or path.name in SKIPPED:
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, prose in prose_of(path, text):
            if not prose.strip():
                continue
            lines += 1
            found = len(IDIOM.findall(prose))
            if not found:
                continue
            hits += found
            place = f"{path}:{number}: {prose.strip()}"
            if options.list:
                print(place)
            if str(path) == "README.md":
                in_readme.append(place)
    share = 1000 * hits / max(lines, 1)
    print(f"words: {hits} in {lines} lines of prose, {share:.1f} per 1,000")
    for place in in_readme:
        print(f"words: expected plain English in README.md, got {place}")
    if share > MOST_PER_THOUSAND:
        print(f"words: expected at most {MOST_PER_THOUSAND} per 1,000, got {share:.1f}. --list shows them")
    return 1 if in_readme or share > MOST_PER_THOUSAND else 0


if __name__ == "__main__":
    sys.exit(main())
