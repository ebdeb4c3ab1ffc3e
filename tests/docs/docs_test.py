"""Documents say what is so: generated ones are up to date, links lead somewhere, every error class and command is described."""

import os
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PIPE = os.environ["PIPE"]


def documents():
    return [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/**/*.md")]


class Documents(unittest.TestCase):
    def test_settings_are_those_of_the_schema(self):
        done = subprocess.run([sys.executable, ROOT / "scripts/generate-docs", "--check"], env={**os.environ, "PIPE": PIPE})
        self.assertEqual(done.returncode, 0)

    def test_links_lead_to_files_that_exist(self):
        broken = [
            f"{document.relative_to(ROOT)}: {target}"
            for document in documents()
            for target in re.findall(r"\]\(([^)#\s]+)", re.sub(r"```.*?```|`[^`]*`", "", document.read_text(), flags=re.DOTALL))
            if not re.match(r"[a-z]+:", target) and not (document.parent / target).exists()
        ]
        self.assertEqual(broken, [])

    def test_document_describes_every_command(self):
        overview = subprocess.run([PIPE, "--help"], check=True, stdout=subprocess.PIPE, text=True).stdout
        commands = re.findall(r"^  ([a-z]+) {2,}", overview.split("Commands:")[1].split("\n\n")[0], re.MULTILINE)
        described = re.findall(r"^\| `pipe ([a-z]+)", (ROOT / "docs/commands.md").read_text(), re.MULTILINE)
        self.assertEqual(sorted(set(commands) - {"help"}), sorted(described))

    def test_every_error_class_is_described(self):
        literal = re.compile(
            r'(?:report\(diagnostics_?,\s*|(?:stop\(\s*|push_back\(\s*|problem|return |Diagnostic)\{\s*(?:\w+,\s*[\w+ ]+,\s*)?)'
            r'"([a-z]+(?:-[a-z0-9]+)*)",\s*(?:std::|"|\w)'
        )
        codes = {code for room in ("settings", "gpu", "yaml", "spec") for file in (ROOT / "src" / room).rglob("*.cpp") for code in literal.findall(file.read_text())}
        self.assertGreater(len(codes), 25, "the pattern still fits the sources")
        described = set(re.findall(r"^### `([a-z0-9-]+)`", (ROOT / "docs/errors.md").read_text(), re.MULTILINE))
        self.assertEqual(sorted(codes - described), [])


if __name__ == "__main__":
    unittest.main()
