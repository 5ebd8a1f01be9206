#!/usr/bin/env python3
"""Puts translated phrases into sample files and expects words.py to find them in the text that people read."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

WORDS = pathlib.Path(__file__).parent / "words.py"


class WordsTest(unittest.TestCase):
    def check(self, name, text):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, name).write_text(text, encoding="utf-8")
            done = subprocess.run([sys.executable, WORDS, "--list", name], cwd=folder, check=False,
                                  capture_output=True, text=True)
            return done.returncode, done.stdout

    def test_idiom_in_prose_is_found_with_its_line(self):
        for name, text in [("a.md", "fine\nThe file lies in memory.\n"),
                           ("a.cpp", "int beside;\n// Held as it is against the sum.\n"),
                           ("a.h", 'int x;\nauto text = "the run goes on";\n'),
                           ("a.h", "int x;\n/* The most samples of a batch. */\n"),
                           ("a.py", "x = 1\n# starts anew\n"),
                           ("a.py", '"""Reads a file.\nThe file lies in memory.\n"""\n'),
                           ("a.py", 'x = 1\nprint(f"the run goes on at {x}")\n'),
                           ("a", "#!/usr/bin/env python3\nHELP = 'starts the run anew'\n"),
                           ("a.sh", "cat <<END\nThe run goes on.\nEND\n"),
                           ("a", "#!/bin/bash\n# starts anew\n"),
                           ("a.md", "fine\nThread-safe but for close().\n"),
                           ("a.md", "fine\nA list of which the first entry counts.\n")]:
            code, out = self.check(name, text)
            self.assertEqual(code, 1, name)
            self.assertIn(f"{name}:2", out)

    def test_code_and_plain_english_pass(self):
        for name, text in [("a.cpp", 'int beside = 1;\nload("beside");\n// Next to the file.\n'),
                           ("a.md", "Run it again, it resumes.\n"),
                           ("a.py", 'beside = 1\nload("beside")\n'),
                           ("a.sh", "beside <<<END\nif ((1<<END)); then the run goes on\n"),
                           ("a.sh", "cat <<'END'\nbeside\nEND\nrun of its own\n"),
                           ("a.md", "The same but for the first epoch.\n")]:
            self.assertEqual(self.check(name, text)[0], 0, name)

    def test_a_readme_has_none_however_long(self):
        plain = "Plain English.\n" * 1000
        self.assertEqual(self.check("a.md", plain + "It goes on.\n")[0], 0)
        code, out = self.check("README.md", plain + "It goes on.\n")
        self.assertEqual(code, 1)
        self.assertIn("README.md:1001", out)


if __name__ == "__main__":
    unittest.main()
