"""The worked examples of docs/coming-from-*.md, unchanged, on an engine whose GPUs are the test bed's stand-ins, and with a stand-in for libnvidia-ml. A test
for each page, named after the page, checks that its example works."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest

from support import PipeTest, docker

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def engine_has_gpus() -> bool:
    try:
        return "nvidia" in docker("info", "--format", "{{json .Runtimes}}")
    except (OSError, subprocess.CalledProcessError):
        return False


def block(page: str, language: str) -> str:
    """Returns the last code block of a language on a page."""
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)[-1]


def uuids(text: str) -> list[str]:
    return re.findall(r"UUID: (GPU-[0-9a-f-]+)", text)


class Examples(PipeTest):
    def environment(self, env: dict) -> dict:
        return super().environment({"PIPE_NVML": os.environ["NVML_STAND_IN"], "PIPE_GPU_LOCKS": str(self.folder / "locks"), **env})

    def example(self, page: str):
        """Writes the page's pipeline. Its images are built in the test's repository, so that the test removes them."""
        self.write("pipeline.yaml", block(page, "yaml").replace("  docker:\n", f"  docker:\n    target_repository: {self.repository}\n", 1))

    def test_every_example_is_valid(self):
        (self.folder / "samples").mkdir()  # coming-from-snakemake.md
        # The example of coming-from-metaflow.md is Python; tests/python runs it.
        pages = sorted(path.name for path in DOCS.glob("coming-from-*.md") if path.name != "coming-from-metaflow.md")
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


class WholePipelines(PipeTest):
    """examples/from-*: whole pipelines of other systems, translated."""

    def example(self, name: str):
        shutil.copytree(ROOT / "examples" / name, self.folder, dirs_exist_ok=True)

    def by_step(self, *words) -> dict[str, str]:
        """Runs the pipeline. Returns the final status of each step, by the step's name without the paths in it."""
        return {re.sub(r"\.fastq-.*", "", step): status for step, status in self.run_pipe(*words).steps().items()}

    def test_nextflow(self):
        self.orchestrator = "local"
        self.example("from-nextflow")
        lanes = ("heart.lane-1", "heart.lane-2", "liver.lane-1")
        steps = {*(f"{step}.sample-{lane}" for step in ("qc", "trim") for lane in lanes), "count.sample-heart", "count.sample-liver", "report"}
        self.assertEqual(self.by_step(), dict.fromkeys(steps, "succeeded"))
        report = self.folder / "results/report.tsv"
        self.assertIn("count\theart\tACTB\t3\ncount\theart\tGAPDH\t1\n", report.read_text())
        self.assertEqual((self.folder / "results/liver/counts.tsv").read_text(), "ACTB\t0\nGAPDH\t2\n")
        with (self.folder / "reads/heart_2.fastq").open("a") as lane:
            lane.write("@h6\nTTGGCCAA\n+\nIIIIIIII\n")
        ran = {step for step, status in self.by_step().items() if status == "succeeded"}
        self.assertEqual(ran, {"qc.sample-heart.lane-2", "trim.sample-heart.lane-1", "trim.sample-heart.lane-2", "count.sample-heart", "report"},
                         "lane 1 makes its temporary output again")
        self.assertIn("count\theart\tGAPDH\t2\n", report.read_text())
        self.write("reads/liver_1.fastq", "")
        self.assertEqual(self.by_step()["qc.sample-liver.lane-1"], "failed")
        self.assertIn("quality\tliver 1\tnot known\n", report.read_text())
        skipped = self.by_step("-p", "skip_qc=true")
        self.assertEqual({skipped[f"qc.sample-{lane}"] for lane in lanes} | {skipped["report"]}, {"skipped", "succeeded"})

    def test_gitlab(self):
        self.example("from-gitlab")
        process = self.start("run", "pipeline.yaml", "--orchestrator", self.orchestrator, "--output", "json", SERVER_TOKEN="hush-hush-4711",
                             PIPE_GPU_LOCKS=str(self.folder / "locks"))
        for line in process.stdout:
            if '"step_waits"' in line and "an answer: Deploy the better model?" in line:
                break
        self.assertEqual(self.pipe("answer", "latest", "deploy", "yes").code, 0)
        ended = self.finish(process)
        self.assertEqual((ended.code, ended.steps()["deploy"], ended.steps()["failed"]), (0, "succeeded", "skipped"), ended)
        self.assertEqual(self.artifact("compare.best"), '{"model": "square", "right": 1.0}')
        self.assertIn("deploys square", self.pipe("logs", "latest", "deploy").out)
        log = self.pipe("logs", "latest", "evaluate[model=square]").out
        self.assertIn("[model] serves square", log)
        self.assertNotIn("Traceback", log, "the check whether the service is ready reads the whole answer")
        run = json.loads(self.pipe("runs", "--output", "json").out)["runs"][0]["id"]
        self.assertEqual(docker("ps", "-aq", "--filter", f"label=pipe.run={run}"), "")


if __name__ == "__main__":
    unittest.main()
