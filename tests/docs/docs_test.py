"""Documents say what is so: generated ones are up to date, links lead somewhere, every error class and command is described."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PIPE = os.environ["PIPE"]


def documents():
    return [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/**/*.md"), *room_documents()]


def room_documents():
    return sorted(ROOT.glob("src/**/README.md"))


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

    def test_links_lead_to_headings_that_exist(self):
        def headings(document):
            titles = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", document.read_text(), flags=re.DOTALL), re.MULTILINE)
            return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}

        broken = [
            f"{document.relative_to(ROOT)}: {target}#{anchor}"
            for document in documents()
            for target, anchor in re.findall(r"\]\(([\w./-]*\.md|)#([^)\s]+)\)", document.read_text())
            if anchor not in headings(document.parent / target if target else document)
        ]
        self.assertEqual(broken, [])

    def test_glossary_has_each_word_once_in_order(self):
        words = re.findall(r"^\| (.+?) \|", (ROOT / "docs/glossary.md").read_text(), re.MULTILINE)[1:]
        self.assertGreater(len(words), 50)
        self.assertEqual(words, sorted(set(words), key=str.lower))

    def test_files_that_documents_name_exist(self):
        """Files to be written by the tasks in READMEs of rooms are called systemd and disk."""
        named = [
            (document, path)
            for document in (ROOT / "CONTRIBUTING.md", ROOT / "docs/architecture.md", *room_documents())
            for path in re.findall(r"`((?:src|tests|scripts|include|docs)/[\w./-]*\w)`", document.read_text())
            if "systemd" not in path and "disk" not in path and "ROOM" not in path
        ]
        self.assertGreater(len(named), 20)
        self.assertEqual([f"{document.name}: {path}" for document, path in named if not (ROOT / path).exists()], [])
        sources = [f"/{file.relative_to(ROOT)}" for folder in ("src", "include", "tests") for file in (ROOT / folder).rglob("*.?pp")]
        headers = re.findall(r"`((?:\w+/)*\w+\.[hc]pp)`", (ROOT / "docs/architecture.md").read_text())
        self.assertEqual([header for header in headers if not any(source.endswith(f"/{header}") for source in sources)], [])

    def test_every_room_has_a_readme_that_names_its_headers_and_tests(self):
        """A room is a folder below src; orchestrators and stores of blobs are described by their outer room or by themselves."""
        wrong = []
        for room in sorted(path for path in (ROOT / "src").iterdir() if path.is_dir()):
            if not (room / "README.md").exists():
                wrong.append(f"{room.name}: no README.md")
        for document in room_documents():
            text, room = document.read_text(), document.parent
            if "Tests: " not in text or "may not " not in text or "$ scripts/build release " not in text:
                wrong.append(f"{document.relative_to(ROOT)}: says its tests, a command, and what it may not know")
            places = (room, ROOT / "src", ROOT / "tests", ROOT)
            for header in re.findall(r"`((?:\w+/)*\w+\.[hc]pp)`", text):
                if not any((place / header).exists() for place in places) and not re.search("systemd|disk|entry.cpp", header) and not list((ROOT / "tests").rglob(header)):
                    wrong.append(f"{document.relative_to(ROOT)}: {header}")
            targets = re.findall(r"release unit_(\w+) ", text)
            wrong += [f"{document.relative_to(ROOT)}: unit_{target}" for target in targets if not list((ROOT / "tests/unit" / target).rglob("*.cpp"))]
        self.assertEqual(wrong, [])

    def test_tests_that_promises_name_exist(self):
        sources = [path for kind in ("*.cpp", "*.hpp", "*.py") for path in (ROOT / "tests").rglob(kind)]
        known = set(re.findall(r"\w+", "".join(path.read_text() for path in sources)))
        texts = [(ROOT / name).read_text() for name in ("docs/reliability.md", "SECURITY.md")]
        rows = [line.rstrip().rstrip("|").split("|")[-1] for text in texts for line in text.splitlines() if line.startswith("|")]
        promises = [line for line in texts[1].splitlines() if line.startswith("|")][2:]
        self.assertEqual([line for line in promises if not line.split("|")[-2].strip().startswith("`")], [], "nothing is promised without a test")
        named = re.findall(r"`([a-z0-9_]+(?:/[a-z0-9_]+)?)`", " ".join(rows))
        missing = [name for name in named if "/" not in name and not known & {name, f"test_{name}"}]
        missing += [name for name in named if "/" in name and not (ROOT / "tests" / f"{name}_test.py").exists()]
        self.assertEqual(missing, [])

    def test_document_describes_every_command(self):
        overview = subprocess.run([PIPE, "--help"], check=True, stdout=subprocess.PIPE, text=True).stdout
        commands = re.findall(r"^  ([a-z]+) {2,}", overview.split("Commands:")[1].split("\n\n")[0], re.MULTILINE)
        described = re.findall(r"^\| `pipe ([a-z]+)", (ROOT / "docs/commands.md").read_text(), re.MULTILINE)
        self.assertEqual(sorted(set(commands) - {"help"}), sorted(described))

    def test_yaml_in_documents_can_be_read(self):
        """Blocks, and `key: {...}` within a line. Their names and files need not exist."""
        wrong = []
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "pipeline.yaml"
            for document in documents():
                text = document.read_text()
                in_lines = re.findall(r"`([a-z_]+: [\[{][^`\n]*[\]}])`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
                for example in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL) + in_lines:
                    file.write_text(example.replace("\\|", "|"))
                    done = subprocess.run([PIPE, "validate", file, "--output", "json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
                    codes = {each["code"] for each in json.loads(done.stdout).get("diagnostics", [])}
                    wrong += [f"{document.relative_to(ROOT)}: {example}"] if "invalid-yaml" in codes else []
        self.assertEqual(wrong, [])

    def test_every_error_class_is_described(self):
        literal = re.compile(
            r'(?:report\((?:diagnostics_?,\s*)?|(?:stop\(\s*|push_back\(\s*|problem|return |Diagnostic)\{\s*(?:\w+,\s*[\w+ ]+,\s*)?)'
            r'"([a-z]+(?:-[a-z0-9]+)*)",\s*(?:std::|"|\w)'
        )
        rooms = ("settings", "gpu", "yaml", "spec", "dsl", "lockfile", "ecs_import")
        codes = {code for room in rooms for file in (ROOT / "src" / room).rglob("*.cpp") for code in literal.findall(file.read_text())}
        codes |= {code for file in (ROOT / "src").rglob("*.cpp") for code in re.findall(r'\.code = "([a-z-]+)"', file.read_text())}
        codes.remove("not-honoured")  # of notes, which have no code where they are shown
        self.assertGreater(len(codes), 25, "the pattern still fits the sources")
        described = set(re.findall(r"^### `([a-z0-9-]+)`", (ROOT / "docs/errors.md").read_text(), re.MULTILINE))
        self.assertEqual(sorted(codes - described), [])


PIPELINE = """
name: digits
parameters: {rows: 5}
steps:
  load:
    command: 'echo "@pipe {\\"metric\\": \\"loss\\", \\"value\\": 0.5}"; echo ${params.rows} > "$PIPE_OUTPUT_DATA"'
    outputs: [data]
  train:
    matrix: {lr: [0.1, 0.2]}
    command: 'cat "$PIPE_INPUT_DATA" > "$PIPE_OUTPUT_MODEL"; python3 lost.py || true'
    inputs: {data: load.data}
    outputs: [model]
  report: {command: 'exit 3', inputs: {models: "train[*].model"}, retry: {max_retries: 1, delay: 0s}}
  mail: {command: 'true', after: [report]}
"""


class OutputForPrograms(unittest.TestCase):
    """All names that commands print with --output json are in docs/json.md."""

    @classmethod
    def setUpClass(cls):
        text = (ROOT / "docs/json.md").read_text()
        cls.documented = {name for code in re.findall(r"`([^`\n]+)`", text) for name in re.findall(r"\w+", code)}

    def names(self, value) -> set:
        """Returns all names in a value, but for those in maps with the user's keys or with content that other documents describe."""
        if isinstance(value, list):
            return set().union(*(self.names(each) for each in value))
        if not isinstance(value, dict):
            return set()
        own = {"parameters", "instances", "inputs", "usage", "phases", "data"}
        return set(value).union(*(self.names(each) for key, each in value.items() if key not in own or isinstance(each, list)))

    def pipe(self, folder: str, line: str) -> str:
        return subprocess.run([PIPE, *line.split(), "--output", "json"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout

    def test_events_are_described(self):
        sources = "".join(file.read_text() for file in (ROOT / "src").rglob("*.cpp"))
        events = set(re.findall(r'"event", "(\w+)"', sources))
        self.assertGreater(len(events), 15)
        self.assertEqual(events - self.documented, set())

    def test_names_that_commands_print_are_described(self):
        printed = {}
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "pipeline.yaml").write_text(PIPELINE)
            self.assertEqual(json.loads(self.pipe(folder, "validate"))["valid"], True)
            for line in (
                "validate", "render", "run -o local", "plan -v -o local", "run -o local --no-cache", "build -o local", "runs", "show latest", "tag latest best", "note latest hi",
                "metrics latest", "logs latest", "artifacts latest", "export latest --format openlineage -o events", "code latest load", "why load.data", "used load.data", "verify", "advise", "doctor", "gpus", "instances", "profiles",
                "clean -n --all", "init hello", "lock", "run --step nix", "cancel latest", "plan lost.yaml",
            ):
                text = self.pipe(folder, line)
                try:
                    values = [json.loads(text)]
                except ValueError:
                    values = [json.loads(each) for each in text.splitlines()]
                self.assertTrue(values, f"{line} printed nothing")
                printed[line] = self.names(values)
            newest, older = [run["id"] for run in json.loads(self.pipe(folder, "runs"))["runs"]][:2]
            printed["compare"] = self.names(json.loads(self.pipe(folder, f"compare {older} {newest}")))
            self.assertIn("rows", printed["compare"])
        self.assertEqual({line: names - self.documented for line, names in printed.items() if names - self.documented}, {})


if __name__ == "__main__":
    unittest.main()
