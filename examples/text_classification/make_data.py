#!/usr/bin/env python3
"""Writes train.jsonl and val.jsonl. A sample is three lines of a file of this repository, and the file's language.

    python3 make_data.py FOLDER
"""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
import source_text  # noqa: E402


def main():
    for split, most in (("train", 1000), ("val", 200)):
        with open(pathlib.Path(sys.argv[1]) / f"{split}.jsonl", "w", encoding="utf-8") as file:
            for text, language in source_text.pieces(split, most):
                file.write(json.dumps({"text": text, "label": language}) + "\n")


if __name__ == "__main__":
    main()
