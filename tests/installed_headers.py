#!/usr/bin/env python3
"""Checks that installed headers include only installed headers of the project:  installed_headers.py ROOT LIST

LIST is the file public_headers.txt of a build folder, which has the path of each installed header relative to ROOT,
one per line. In the source tree, a header compiles even if a header that it includes is not installed; the programs
and plug-ins that use an installed precast then do not compile.
"""

import os
import pathlib
import re
import sys

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)', re.MULTILINE)


def gaps(root, headers):
    """Yields (header, included) for each included header of the project that is not in `headers`."""
    installed = {os.path.normpath(header) for header in headers}
    for header in sorted(installed):
        for included in INCLUDE.findall((root / header).read_text()):
            for place in (included, os.path.join(os.path.dirname(header), included)):
                place = os.path.normpath(place)
                if (root / place).is_file() and place not in installed:
                    yield header, place


def main(root, header_list):
    headers = header_list.read_text().split()
    found = list(gaps(root, headers))
    for header, included in found:
        print(f"{header}: expected to include only installed headers, got {included}. Add it to HEADERS of its library")
    print(f"installed_headers: {len(headers)} headers, {len(found)} includes of headers that are not installed")
    return 1 if found or not headers else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])))
