#!/usr/bin/env python3
"""Checks that tests assert facts, not sentences:  facts.py FOLDER...

A message can be reworded without changing a test if tests search messages only for names, places, users' values and
numbers, and check the exit code or the error type. This script reads the string literals inside the matchers and
comparisons below, in .cpp, .h and .py files, and rejects prose: three words in a row of which two are lower case,
outside quotes and backticks and not a command `precast ...`. It also rejects any literal with `expected ... got` or
`Did you mean`.

If a program reads the text, or the test is about the text, say so on a line of the statement:
    EXPECT_THAT(out, HasSubstr("..."));  // the wording is tested: why
"""

import pathlib
import re
import sys

CALLS = re.compile(
    r"\b(HasSubstr|StartsWith|EndsWith|StrEq|StrNe|StrCaseEq|ContainsRegex|MatchesRegex|ThrowsMessage|Names"
    r"|(?:EXPECT|ASSERT)_(?:EQ|NE|STREQ|STRNE|STRCASEEQ|DEATH|EXIT)"
    r"|assert(?:In|NotIn|Equal|NotEqual|Regex|NotRegex|RaisesRegex))\s*(?:<[\w:]*>)?\s*\("
)
TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<mark>\w*)\((?P<raw>.*?)\)(?P=mark)"|"(?P<text>(?:\\.|[^"\\\n])*)"'
    r"|'(?:\\.|[^'\\\n])*'|[()]",
    re.DOTALL,
)
PY_TOKEN = re.compile(
    r"#[^\n]*|(?:\"\"\"|''')(?:.*?)(?:\"\"\"|''')|\"(?P<text>(?:\\.|[^\"\\\n])*)\"|'(?P<raw>(?:\\.|[^'\\\n])*)'|[()]",
    re.DOTALL,
)
ALLOWED = re.compile(r"(?://|#) the wording is tested: \S")
ESCAPES = re.compile(r"\\(?:x[0-9A-Fa-f]+|[0-7]{1,3}|.)")
QUOTED = re.compile(r"'[^']*'|`[^`]*`|\"[^\"]*\"")
WORDS = re.compile(r"(?<![\w./=-])[A-Za-z]+(?: [A-Za-z]+){2,}(?![\w/=-])")
MESSAGE = re.compile(r"\bexpected\b.*\bgot\b|Did you mean")


def is_prose(text):
    text = QUOTED.sub("''", ESCAPES.sub(lambda found: '"' if found[0] == '\\"' else "\n", text))
    for run in WORDS.finditer(text):
        words = run[0].split()
        if words[0] == "precast":  # a command
            continue
        if any(sum(word.islower() for word in words[i : i + 3]) >= 2 for i in range(len(words) - 2)):
            return True
    return False


def literals(source, token, start=0, depth=None):
    """Yields (offset, text) of each literal from `start` on; adjacent literals are joined. With `depth` 1, `start` is
    just after an opening parenthesis: stops at the closing one and yields its end as (offset, None)."""
    at, text, behind = None, None, start
    for found in token.finditer(source, start):
        if found[0] == "(" and depth is not None:
            depth += 1
        elif found[0] == ")" and depth is not None:
            depth -= 1
        piece = found["text"] if found["text"] is not None else found["raw"]
        if text is not None and (piece is None or source[behind : found.start()].strip()):
            yield at, text
            text = None
        if piece is not None:
            at, text = (found.start(), piece) if text is None else (at, text + piece)
            behind = found.end()
        if depth == 0:
            yield found.end(), None
            return
    if text is not None:
        yield at, text


def sentences(source, is_python=False):
    """Yields (line, text) of each literal that is prose and not allowed."""
    token = PY_TOKEN if is_python else TOKEN
    code_starts = {found.start() for found in CALLS.finditer(source)}
    for found in token.finditer(source):  # calls inside comments and literals do not count
        code_starts -= set(range(found.start() + 1, found.end()))
    suspects = {at: text for at, text in literals(source, token) if MESSAGE.search(text)}
    ends = {}
    for call in CALLS.finditer(source):
        if call.start() not in code_starts:
            continue
        inside = list(literals(source, token, call.end(), 1))
        end = inside[-1][0] if inside and inside[-1][1] is None else call.end()
        for at, text in inside:
            if text is not None and (is_prose(text) or at in suspects):
                suspects[at] = text
                ends[at] = max(end, ends.get(at, 0))
    for at, text in sorted(suspects.items()):
        first = source.rfind("\n", 0, at) + 1
        last = source.find("\n", max(at, ends.get(at, at)))
        if not ALLOWED.search(source[first : last if last >= 0 else None]):
            yield source.count("\n", 0, at) + 1, text


def files_of(places):
    for place in map(pathlib.Path, places):
        found = [place] if place.is_file() else sorted(place.rglob("*"))
        yield from (file for file in found if file.suffix in (".cpp", ".h", ".py"))


def main(places):
    files = list(files_of(places))
    if not files:
        return f"facts: expected folders with .cpp, .h or .py files, got {places}"
    found = [f"{file}:{line}: {text}" for file in files
             for line, text in sentences(file.read_text(), file.suffix == ".py")]
    if found:
        return "facts: expected names, places, values and numbers in assertions, got prose:\n" + "\n".join(found)
    print(f"facts: {len(files)} files, no sentence asserted")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
