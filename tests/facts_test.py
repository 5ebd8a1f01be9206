#!/usr/bin/env python3
"""Puts sentences and facts into sample tests and expects facts.py to distinguish them."""

import unittest

import facts

SENTENCES = [
    'EXPECT_THAT(text, HasSubstr("expected a JPEG file"));',
    'EXPECT_THAT(text, AllOf(Names("r.yaml:2:10"), testing::HasSubstr("not valid YAML")));',
    'EXPECT_THAT(read, ThrowsMessage<DataError>(HasSubstr(\n    "the file "\n    "was cut off")));',
    'EXPECT_EQ(told, fmt::format("cannot open {}: No such file or directory", path));',
    'EXPECT_STREQ(error.what(), "sample 7: this was cut off");',
    'const Case cases[] = {{7, "expected 8, got 7"}};',
    'const Case cases[] = {{7, "unknown key. "\n "Did you mean \'a\'?"}};',
    'EXPECT_THAT(text, HasSubstr("was cut off"));  // the wording is tested:',
]
FACTS = [
    'EXPECT_THAT(text, Names("r.yaml:2:10", "data.order", "random, quasi_random", 600));',
    'EXPECT_THAT(text, HasSubstr("\'a value of the user\' `and a command to run`"));',
    'EXPECT_THAT(text, HasSubstr("the table is cut here"));  // the wording is tested: why it is',
    'EXPECT_EQ(rows[0], "cat, dog | 3 | 0.5");',
    'EXPECT_THAT(text, HasSubstr("precast bench loader"));',
    '// EXPECT_THAT(text, HasSubstr("in a comment of many words"));',
    'write(folder / "x", "any words of an input"); EXPECT_EQ(size(), 3) << "a word to the reader";',
]
PYTHON_SENTENCES = ['self.assertIn("the file was cut off", text)', "self.assertRegex(text, r'file was cut')"]
PYTHON_FACTS = ['self.assertIn("x.beton", text)  # the file was cut off', 'self.assertEqual("a.b", text)']


class FactsTest(unittest.TestCase):
    def test_sentences_are_found_with_their_line(self):
        for source in SENTENCES:
            lines = [line for line, _ in facts.sentences("\n\n" + source + "\n")]
            self.assertEqual(len(lines), 1, source)
            self.assertIn(lines[0], (3, 4), source)

    def test_facts_inputs_comments_and_what_is_allowed_pass(self):
        for source in FACTS:
            self.assertEqual(list(facts.sentences(source)), [], source)

    def test_unittests_are_read_too(self):
        for source in PYTHON_SENTENCES:
            self.assertEqual(len(list(facts.sentences(source, is_python=True))), 1, source)
        for source in PYTHON_FACTS:
            self.assertEqual(list(facts.sentences(source, is_python=True)), [], source)


if __name__ == "__main__":
    unittest.main()
