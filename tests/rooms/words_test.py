"""scripts/check-words finds retired identifiers. The test reads them from its list, because this file may not contain one."""

import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHECK = ROOT / "scripts/check-words"


def retired_words():
    """Returns {section: [(word, its replacement)]}. Patterns that are not plain words are left out."""
    sections = {}
    for line in (ROOT / "scripts/retired-words").read_text().splitlines():
        if line.startswith("["):
            words = sections.setdefault(line[1:line.index("]")], [])
        elif line and not line.startswith("#"):
            pattern, replacement = line.split(" => ")
            words.extend((word, replacement) for word in pattern.split("|") if re.fullmatch(r"[\w: ]+", word))
    return sections


class RetiredWords(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        subprocess.run(["git", "init", "-q", self.root], check=True)

    def check(self, *arguments):
        return subprocess.run([CHECK, *arguments], cwd=self.root, capture_output=True, text=True)

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def test_every_retired_identifier_is_found_in_sources(self):
        words = retired_words()["identifiers"]
        self.write("src/core/a.hpp", "".join(f"x({word});\n" for word, _ in words))
        done = self.check()
        self.assertEqual(done.returncode, 1)
        for number, (word, replacement) in enumerate(words, 1):
            self.assertIn(f"src/core/a.hpp:{number}:x({word});", done.stderr)
            self.assertIn(f"write: {replacement}\n", done.stderr)

    def test_parts_of_words_and_other_folders_are_not_found(self):
        words = [word for section in retired_words().values() for word, _ in section]
        self.write("src/core/a.hpp", "".join(f"a{word}z\n" for word in words))
        self.write("bench/a.md", "".join(f"{word}\n" for word in words))
        done = self.check()
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_words_are_counted(self):
        word = retired_words()["identifiers"][0][0]
        self.write("src/a.hpp", f"{word}\n{word} {word}\n")
        done = self.check("--count", "src")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, rf"(?m)^ +2  .*\b{word}\b")


class ThisCheckout(unittest.TestCase):
    def test_has_no_retired_word(self):
        done = subprocess.run([CHECK], cwd=ROOT, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
