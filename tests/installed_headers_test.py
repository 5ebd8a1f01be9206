#!/usr/bin/env python3
"""Plants includes of headers that are not installed and expects installed_headers.py to report them."""

import pathlib
import tempfile
import unittest

import installed_headers

FILES = {
    "data/reader.h": '#include <string>\n#include <curl/curl.h>\n#include "framework/file.h"\n',
    "data/hidden.h": '#include "data/deeper.h"\n',
    "data/deeper.h": "",
    "framework/file.h": "#pragma once\n",
}
INSTALLED = ["data/reader.h", "data/../framework/file.h"]


class InstalledHeadersTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name, text in FILES.items():
            (self.root / name).parent.mkdir(exist_ok=True)
            (self.root / name).write_text(text)

    def gaps(self, *more):
        return list(installed_headers.gaps(self.root, [*INSTALLED, *more]))

    def run_on(self, *headers):
        (self.root / "list.txt").write_text("".join(f"{header}\n" for header in headers))
        return installed_headers.main(self.root, self.root / "list.txt")

    def plant(self, line):
        (self.root / "data/reader.h").write_text(FILES["data/reader.h"] + line)

    def test_a_complete_list_passes(self):
        self.assertEqual(self.gaps(), [])
        self.assertEqual(self.run_on(*INSTALLED), 0)

    def test_an_include_of_a_header_that_is_not_installed_is_named(self):
        for line in ['#include "data/hidden.h"', "#include <data/hidden.h>  // why", ' # include "hidden.h"']:
            self.plant(line + "\n")
            self.assertEqual(self.gaps(), [("data/reader.h", "data/hidden.h")], line)
            self.assertEqual(self.run_on(*INSTALLED), 1)

    def test_a_header_that_is_added_to_the_list_is_checked_too(self):
        self.plant('#include "data/hidden.h"\n')
        self.assertEqual(self.gaps("data/hidden.h"), [("data/hidden.h", "data/deeper.h")])
        self.assertEqual(self.gaps("data/hidden.h", "data/deeper.h"), [])

    def test_an_empty_list_fails(self):
        self.assertEqual(self.run_on(), 1)


if __name__ == "__main__":
    unittest.main()
