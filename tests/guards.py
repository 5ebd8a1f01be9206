#!/usr/bin/env python3
"""Checks that the guards around plug-in parts forward every virtual function:  guards.py ROOT

A guard (tools/plugins/data_guards.cpp, tools/app/train_guards.cpp) derives from an interface, calls the plug-in's
part and adds the part's name to errors. The compiler accepts a guard that does not override a virtual function with a
default implementation; the plug-in's override would then never run. This script reads the classes of the interfaces'
headers and of the guards, and reports each virtual function that a guard does not override.
"""

import pathlib
import re
import sys

GUARDS = ["tools/plugins/data_guards.cpp", "tools/app/train_guards.cpp"]
INTERFACES = ["framework/api", "data/order", "data/transforms"]
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
CLASS = re.compile(
    r"\b(?:class|struct)\s+(?:\w+_API\s+)?(\w+)(?:\s+final)?\s*"
    r"(?::\s*public\s+([\w:<>]+)\s*(?:,\s*public\s+[\w:<>]+\s*)*)?\{"
)
VIRTUAL = re.compile(r"\bvirtual\b[^;{]*?(operator\(\)|\w+)\s*\(")
OVERRIDE = re.compile(r"(operator\(\)|\w+)\s*\([^;{}]*\)[^;{}()]*\boverride\b")


def body(text, begin):
    """The text from an opening brace at `begin` to its closing brace."""
    depth = 0
    for place in range(begin, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return text[begin:place]
    return text[begin:]


def classes(text):
    """Class name -> (base or "", body) of each class of a source."""
    text = COMMENT.sub("", text)
    return {found[1]: (found[2] or "", body(text, found.end() - 1)) for found in CLASS.finditer(text)}


def virtuals(name, interfaces):
    """The names of the virtual functions of a class and its bases."""
    base, text = interfaces[name]
    names = {found[1] for found in VIRTUAL.finditer(text) if "~" not in found[0]}
    base = base.split("::")[-1]
    return names | (virtuals(base, interfaces) if base in interfaces else set())


def missing(guards, interfaces):
    """Yields (guard, function) for each virtual function that a guard does not override."""
    for name, (base, text) in guards.items():
        own = {found[1] for found in OVERRIDE.finditer(text)}
        shared = re.fullmatch(r"(\w+)<([\w:]+)>", base)
        if shared:
            own |= {found[1] for found in OVERRIDE.finditer(guards[shared[1]][1])}
            base = shared[2]
        interface = base.split("::")[-1]
        if interface in interfaces:
            yield from ((name, function) for function in sorted(virtuals(interface, interfaces) - own))


def main(root):
    interfaces, guards = {}, {}
    for folder in INTERFACES:
        for header in sorted((root / folder).glob("*.h")):
            interfaces |= classes(header.read_text())
    for source in GUARDS:
        guards |= classes((root / source).read_text())
    found = list(missing(guards, interfaces))
    for guard, function in found:
        print(f"{guard}: expected an override of {function}(), got none")
    print(f"guards: {len(guards)} classes, {len(found)} functions not forwarded")
    return 1 if found or not guards else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
