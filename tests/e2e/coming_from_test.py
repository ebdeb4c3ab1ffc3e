"""The worked examples of docs/coming-from-*.md, run as they stand: on an engine whose GPUs are the test bed's stand-ins, with a stand-in for libnvidia-ml."""

import os
import pathlib
import re
import subprocess
import unittest

from support import PipeTest, docker

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"


def engine_has_gpus() -> bool:
    try:
        return "nvidia" in docker("info", "--format", "{{json .Runtimes}}")
    except (OSError, subprocess.CalledProcessError):
        return False


def block(page: str, language: str) -> str:
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)[-1]


def uuids(text: str) -> list[str]:
    return re.findall(r"UUID: (GPU-[0-9a-f-]+)", text)


class Examples(PipeTest):
    def environment(self, env: dict) -> dict:
        return super().environment({"PIPE_NVML": os.environ["NVML_STAND_IN"], "PIPE_GPU_LOCKS": str(self.folder / "locks"), **env})

    def example(self, page: str):
        """The page's pipeline; what it builds is this test's to remove."""
        self.write("pipeline.yaml", block(page, "yaml").replace("  docker:\n", f"  docker:\n    target_repository: {self.repository}\n", 1))

    def test_every_example_is_valid(self):
        (self.folder / "samples").mkdir()  # coming-from-snakemake.md
        pages = sorted(path.name for path in DOCS.glob("coming-from-*.md") if path.name != "coming-from-metaflow.md")  # its example is Python: tests/python
        self.assertEqual(pages, [f"coming-from-{system}.md" for system in ("ecs", "gitlab", "lightning", "nextflow", "snakemake", "zenml")])
        for page in pages:
            self.example(page)
            result = self.pipe("validate", "pipeline.yaml")
            self.assertEqual(result.code, 0, (page, result))

    def test_snakemake(self):
        (self.folder / "samples").mkdir()
        for name, lines in (("a", 2), ("b", 3)):
            self.write(f"samples/{name}.txt", "line\n" * lines)
        self.example("coming-from-snakemake.md")
        self.orchestrator = "local"
        self.run_pipe()
        self.assertEqual(self.artifact("total.total"), "5\n")

    def test_nextflow(self):
        self.example("coming-from-nextflow.md")
        self.orchestrator = "local"
        self.run_pipe()
        self.assertEqual(self.artifact("all.all"), "A\nB\nC\n")

    def test_the_imported_task_definition_is_the_one_on_the_page(self):
        self.write("task-definition.json", block("coming-from-ecs.md", "json"))
        result = self.pipe("import", "task-definition.json")
        self.assertEqual(result.code, 0, result)
        self.assertEqual(re.sub(r"(?m)^#.*\n", "", result.out), block("coming-from-ecs.md", "yaml"))
        self.assertEqual(self.pipe("import", "task-definition.json", "--out", "made.yaml").code, 0)
        again = self.pipe("import", "task-definition.json", "--out", "made.yaml")
        self.assertEqual((again.code, "exists already" in again.text), (2, True), again)
        self.assertEqual((self.folder / "made.yaml").read_text(), result.out)

    @unittest.skipUnless(engine_has_gpus(), "the engine has no GPUs")
    def test_zenml(self):
        self.example("coming-from-zenml.md")
        self.run_pipe()
        self.assertEqual(len(uuids(self.artifact("train.gpus"))), 1)
        self.assertEqual(self.artifact("train.model").strip(), "2")
        self.assertIn("train 3", self.pipe("logs", "latest", "train").out)

    @unittest.skipUnless(engine_has_gpus(), "the engine has no GPUs")
    def test_lightning(self):
        self.example("coming-from-lightning.md")
        self.run_pipe()
        seen = uuids(self.artifact("all.seen"))
        self.assertGreater(len(seen), 3)
        self.assertEqual(uuids(self.artifact("first-two.seen")), seen[:2])
        self.assertEqual(uuids(self.artifact("second-and-fourth.seen")), [seen[1], seen[3]])
        self.assertEqual(len(uuids(self.artifact("without.seen"))), 4 + len(seen))

    @unittest.skipUnless(engine_has_gpus(), "the engine has no GPUs")
    def test_gitlab(self):
        self.example("coming-from-gitlab.md")
        self.run_pipe()
        self.assertGreater(len(set(uuids(self.pipe("logs", "latest", "train").out))), 1)
        self.assertEqual(self.artifact("train.model"), "trained 3 epochs\n")

    @unittest.skipUnless(engine_has_gpus(), "the engine has no GPUs")
    def test_ecs(self):
        self.write("task-definition.json", block("coming-from-ecs.md", "json"))
        result = self.pipe("run", "task-definition.json", "--output", "json")
        self.assertEqual(result.code, 0, result)
        self.assertIn("Tesla", self.pipe("logs", "latest", "gpu").out)
        again = self.pipe("run", "task-definition.json", "--output", "json")
        self.assertEqual(again.steps(), {"gpu": "succeeded"}, "a task is run each time")


if __name__ == "__main__":
    unittest.main()
