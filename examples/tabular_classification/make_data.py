#!/usr/bin/env python3
"""Writes train.npz and val.npz. A sample is 30 numbers that describe three lines of a file of this repository, and
the file's language.

    python3 make_data.py FOLDER
"""

import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
import fashion_arrays  # noqa: E402
import source_text  # noqa: E402

SIGNS = "#/-*`:;,.()[]{}<>=_\"'$&|"
LANGUAGES = sorted(set(source_text.LANGUAGES.values()))


def features(text):
    """Returns 30 shares and lengths from 0 to about 1."""
    lines = text.split("\n")
    kinds = (str.isalpha, str.isupper, str.isdigit, str.isspace)
    return [
        *(sum(map(kind, text)) / len(text) for kind in kinds),
        *(min(1.0, 10 * text.count(sign) / len(text)) for sign in SIGNS),
        statistics.mean(len(line) for line in lines) / 100,
        statistics.mean(len(line) - len(line.lstrip()) for line in lines) / 10,
    ]


def main():
    for split, most in (("train", 1000), ("val", 200)):
        found = source_text.pieces(split, most)
        rows = [features(text) for text, _ in found]
        fashion_arrays.save(
            pathlib.Path(sys.argv[1]) / f"{split}.npz",
            features=("<f4", (len(rows), len(rows[0])), [v for row in rows for v in row]),
            label=("<i8", (len(rows),), [LANGUAGES.index(language) for _, language in found]))


if __name__ == "__main__":
    main()
