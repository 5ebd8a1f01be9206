"""Pieces of this repository's files, each with the language in which it is written.

Used by the examples' make_data.py. Needs only Python's standard library.
"""

import pathlib
import random
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ["configs", "data", "docs", "examples", "framework", "models", "recipes", "tests", "tools"]
LANGUAGES = {".cpp": "C++", ".h": "C++", ".cmake": "CMake", "CMakeLists.txt": "CMake",
             ".md": "Markdown", ".py": "Python", ".yaml": "YAML"}
LINES, MAX_BYTES = 3, 400


def language_of(path):
    return LANGUAGES.get(path.name) or LANGUAGES.get(path.suffix)


def pieces(split, max_per_language):
    """Returns pairs (text, language), at most `max_per_language` for each language. A text consists of three non-blank
    lines, cut to 400 bytes. One file in five is used only for "val", all others only for "train"."""
    found = {}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            is_val = zlib.crc32(path.relative_to(ROOT).as_posix().encode()) % 5 == 0
            if not language_of(path) or not path.is_file() or is_val != (split == "val"):
                continue
            lines = [line for line in path.read_text("utf-8", "ignore").split("\n") if line.strip()]
            for i in range(0, len(lines) - LINES + 1, LINES):
                text = "\n".join(lines[i : i + LINES]).encode()[:MAX_BYTES].decode("utf-8", "ignore")
                found.setdefault(language_of(path), []).append(text.replace("\0", ""))
    rng = random.Random(split)
    chosen = [(text, language) for language in sorted(found)
              for text in rng.sample(found[language], min(max_per_language, len(found[language])))]
    rng.shuffle(chosen)
    return chosen
