"""Lineage of input files and folders, and of published versions: `why`, `used`, exports and the page's data."""

import hashlib
import json
import unittest

from support import NOWHERE, PipeTest


class DataLineage(PipeTest):
    orchestrator = "local"

    def environment(self, env):
        return super().environment({"DOCKER_HOST": NOWHERE, **env})

    def setUp(self):
        super().setUp()
        self.write("data.csv", "1,2\n")
        self.write("corpus/a.txt", "a\n")
        self.write("corpus/deep/b.txt", "b\n")
        self.pipeline({"train": {"command": "cat ${inputs.data} ${inputs.corpus}/a.txt > ${outputs.model}", "inputs": {"data": {"path": "data.csv"}, "corpus": {"path": "corpus"}},
                                 "outputs": ["model"], "publish": {"model": "production"}}})
        self.run_pipe()
        self.write("predict.yaml", json.dumps({"name": "predict", "steps": {"predict": {
            "command": "cat ${inputs.model} > ${outputs.table}; echo row >> ${outputs.table}", "inputs": {"model": "artifact:production"}, "outputs": ["table"]}}}))
        done = self.pipe("run", "predict.yaml", "-o", "local")
        self.assertEqual(done.code, 0, done)

    def json_of(self, *words) -> dict:
        """Returns the JSON that a command prints."""
        done = self.pipe(*words, "--output", "json")
        self.assertEqual(done.code, 0, done)
        return json.loads(done.out)

    def used(self, what: str) -> list[tuple]:
        """Returns the steps that used a file, a folder, a digest or a published version, each with the names of its inputs."""
        return [(use["step"], use["inputs"]) for use in self.json_of("used", what)["used"]]

    def test_used_finds_files_folders_and_versions(self):
        self.write("copy-elsewhere.csv", "1,2\n")
        for file in ("data.csv", "copy-elsewhere.csv", hashlib.sha256(b"1,2\n").hexdigest()):
            self.assertEqual(self.used(file), [("train", ["data"])], file)
        self.assertEqual(self.used("corpus"), [("train", ["corpus"])])
        self.assertEqual(self.used("corpus/deep/b.txt"), [("train", ["corpus"])])
        self.assertEqual(self.used("production@1"), [("predict", ["model"])])
        self.assertIn("train.model", self.pipe("used", "data.csv").out)
        self.write("corpus/a.txt", "changed\n")
        self.assertEqual(self.used("corpus"), [], "no step used the folder's present content")

    def test_why_ends_with_the_data(self):
        made = self.json_of("why", "production")
        self.assertEqual((made["step"], made["published"]), ("train", ["production@1"]))
        self.assertEqual(made["inputs"]["data"]["data"], {"kind": "file", "source": str(self.folder / "data.csv")})
        self.assertEqual(made["inputs"]["data"]["digest"], hashlib.sha256(b"1,2\n").hexdigest())
        self.assertEqual(made["inputs"]["corpus"]["data"]["kind"], "folder")
        text = self.pipe("why", "predict.table").out
        for part in ("published as production@1", "input data: file ", "input corpus: folder "):
            self.assertIn(part, text)

    def test_exports_and_the_pages_data_name_the_file(self):
        run = [run["id"] for run in self.json_of("runs")["runs"] if run["pipeline"] == "e2e"][0]
        step, = json.loads(self.pipe("report", run, "--output", "json").out)["steps"]
        self.assertIn(["data", "file data.csv", hashlib.sha256(b"1,2\n").hexdigest()[:12]], step["f"])
        provenance = self.pipe("export", run, "train.model", "--format", "slsa").out
        self.assertIn("file:data.csv", provenance)
        self.assertNotIn(str(self.folder / "data.csv"), provenance, "folders of this machine are nobody's business")
        self.assertIn('"name":"data.csv"', self.pipe("export", run, "--format", "openlineage").out.replace(": ", ":"))
        self.assertEqual(self.pipe("export", run, "--format", "ro-crate", "-o", "crate").code, 0)
        self.assertIn("data.csv", (self.folder / "crate/ro-crate-metadata.json").read_text())


if __name__ == "__main__":
    unittest.main()
