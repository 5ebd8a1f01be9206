#!/usr/bin/env python3
"""Finds phrases that read like a translation in Markdown, comments and texts: CONTRIBUTING.md, "Words".

usage: words.py FILE...
Fails if README.md has any, or if all files together have more than 8 per 1,000 lines of prose. Lines of
prose are lines of Markdown, and lines of code with a comment or a text of three words or more. With
--list it prints each line with such a phrase.
"""
import argparse
import pathlib
import re
import sys

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
CODE_ENDINGS = {".h", ".cpp", ".cu", ".cuh"}
SCRIPT_ENDINGS = {".py", ".sh", ".cmake", ".yaml", ".txt", ""}
MOST_PER_THOUSAND = 8
FEWEST_WORDS = 3


def prose_of(path, line):
    """The part of a line that people read; empty if there is none."""
    if path.suffix == ".md":
        return line.strip()
    if path.suffix in CODE_ENDINGS:
        texts = [text for text in CODE.findall(line) if len(text.split()) >= FEWEST_WORDS]
        return " ".join(texts)
    if path.suffix in SCRIPT_ENDINGS:
        comment = SCRIPT.search(line)
        return comment.group(0) if comment else ""
    return ""


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
        if not path.is_file() or "golden" in path.parts or path.name == pathlib.Path(__file__).name:
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            prose = prose_of(path, line)
            if not prose:
                continue
            lines += 1
            found = len(IDIOM.findall(prose))
            if not found:
                continue
            hits += found
            place = f"{path}:{number}: {line.strip()}"
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
