"""Checkpoints (the folder that a step keeps until it succeeds), outputs of failed attempts, and published artifacts."""

import contextlib
import hashlib
import json
import os
import pathlib
import random
import signal
import subprocess
import unittest

from support import PipeTest, wait_until

# Trains for 40 rounds; each round needs the state of the one before. The state is replaced by a rename, so a kill leaves the old or the new one.
TRAIN = """
import hashlib, os, sys, time
folder, rounds = os.environ["PIPE_CHECKPOINT"], 40
state, done = b"weights", 0
file = os.path.join(folder, "state")
if os.path.exists(file):
    text = open(file, "rb").read()
    done, state = int(text[:4]), text[4:]
open(os.environ["STARTS"], "a").write(f"{done}\\n")
for i in range(done, rounds):
    for _ in range(200):
        state = hashlib.sha256(state + bytes([i])).digest()
    with open(file + ".new", "wb") as out:
        out.write(b"%4d" % (i + 1) + state)
    os.rename(file + ".new", file)
    time.sleep(0.01)
open(sys.argv[1], "wb").write(state)
"""


def undisturbed() -> bytes:
    """Returns the weights that TRAIN has at its end if nothing interrupts it."""
    state = b"weights"
    for i in range(40):
        for _ in range(200):
            state = hashlib.sha256(state + bytes([i])).digest()
    return state


class Checkpoints(PipeTest):
    orchestrator = "local"

    def training(self, **step):
        """Writes a pipeline that executes TRAIN. `step` has further keys of the step."""
        self.write("train.py", TRAIN)
        self.pipeline({"train": {"command": "python3 train.py ${outputs.model}", "checkpoint": True, "outputs": ["model"],
                                 "environment": {"STARTS": str(self.folder / "starts")}, **step}})

    def starts(self) -> list[int]:
        """Returns for each start of the training how many rounds its checkpoint had."""
        file = self.folder / "starts"
        return [int(line) for line in file.read_text().split()] if file.exists() else []

    def model(self) -> bytes:
        """Returns the weights that the latest run has made."""
        target = self.folder / "model"
        self.assertEqual(self.pipe("artifacts", "latest", "train.model", "--copy", target).code, 0)
        return target.read_bytes()

    def test_a_training_killed_fifty_times_ends_with_the_weights_of_an_undisturbed_one(self):
        """The driver and its step are killed, or the step alone; the next run continues from the checkpoint."""
        self.training()
        chance = random.Random(int(os.environ.get("CHAOS_SEED", "16")))
        kills, was_continued = 0, False
        while kills < 50:
            before = len(self.starts())
            run = self.start("run", "pipeline.yaml", "--orchestrator", "local")
            wait_until(lambda: len(self.starts()) > before or run.poll() is not None, "a start of the training")
            with_driver = chance.random() < 0.5
            with contextlib.suppress(subprocess.TimeoutExpired):
                run.wait(chance.uniform(0, 0.05))
            if run.poll() is None:
                os.killpg(run.pid, signal.SIGKILL) if with_driver else self.kill_step()
                kills += 1
            self.finish(run)
            if "train" in self.succeeded():
                self.assertEqual(self.model(), undisturbed())
                self.assertEqual(self.pipe("clean", "--runs", "--keep", "0").code, 0)  # The next run trains from the beginning.
                was_continued |= any(self.starts())
                (self.folder / "starts").unlink()
                (self.folder / "model").unlink()
        self.assertIn(self.run_pipe().steps()["train"], ("succeeded", "cached"))
        self.assertTrue(was_continued or any(self.starts()), "some attempt has continued from a checkpoint")
        self.assertEqual(self.model(), undisturbed())
        self.assertEqual(list((self.state / "checkpoints").iterdir()), [], "a step that has succeeded keeps nothing")

    def kill_step(self):
        """Kills the processes of this test's training."""
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if str(self.folder).encode() in (entry / "environ").read_bytes() and b"train.py" in (entry / "cmdline").read_bytes():
                    os.kill(int(entry.name), signal.SIGKILL)

    def succeeded(self) -> list[str]:
        """Returns the steps of the latest run that have succeeded."""
        shown = self.pipe("show", "latest", "--output", "json")
        return [step["step"] for step in json.loads(shown.out)["steps"] if step["status"] == "succeeded"]

    def test_retries_continue_where_the_attempt_before_ended(self):
        self.write("count.py", "import os, sys\nfile = os.environ['PIPE_CHECKPOINT'] + '/n'\nn = int(open(file).read()) + 1 if os.path.exists(file) else 1\n"
                               "open(file, 'w').write(str(n))\nopen(sys.argv[1], 'w').write(str(n))\nsys.exit(n < 3)\n")
        step = {"command": "python3 count.py ${outputs.n}", "outputs": ["n"], "checkpoint": True, "retry": {"max_retries": 2, "delay": "0s"}}
        self.pipeline({"count": step})
        self.run_pipe()
        self.assertEqual(self.artifact("count.n"), "3")
        self.run_pipe("--no-cache")
        self.assertEqual(self.artifact("count.n"), "3", "a success leaves no checkpoint to the next run")
        self.pipeline({"count": step | {"retry": {}}})
        self.run_pipe("--no-cache", code=1)
        self.pipeline({"count": step | {"retry": {}, "version": "2"}})
        self.run_pipe(code=1)
        self.assertEqual(self.artifact("count.n"), "1", "another key has another folder")

    def test_two_runs_of_a_step_do_not_share_the_folder(self):
        self.write("wait.py", "import os, time\nfolder = os.environ['PIPE_CHECKPOINT']\nopen(os.environ['SEEN'], 'a').write(folder + '\\n')\n"
                              "while not os.path.exists(os.environ['GO']): time.sleep(0.05)\n")
        self.pipeline({"a": {"command": "python3 wait.py", "checkpoint": True,
                             "environment": {"SEEN": str(self.folder / "seen"), "GO": str(self.folder / "go")}}})
        runs = []
        for count in (1, 2):
            runs.append(self.start("run", "pipeline.yaml", "--orchestrator", "local", "--no-cache"))  # With a cache, the second would wait for the first.
            wait_until(lambda: (self.folder / "seen").exists() and len((self.folder / "seen").read_text().split()) == count, "the step's start")
        (self.folder / "go").touch()
        for run in runs:
            self.assertEqual(self.finish(run).code, 0)
        self.assertEqual(len(set((self.folder / "seen").read_text().split())), 2)

    def test_what_a_failed_attempt_has_written_can_be_copied_out(self):
        self.pipeline({"a": {"command": "echo half > ${outputs.model}; mkdir ${outputs.logs}; echo x > ${outputs.logs}/1; exit 1",
                             "outputs": {"model": "model.txt", "logs": None}},
                       "b": {"command": "echo whole > ${outputs.x}", "outputs": ["x"]}})
        self.run_pipe(code=1)
        listed = json.loads(self.pipe("artifacts", "--output", "json").out)["artifacts"]
        self.assertEqual({entry["output"]: entry.get("failed_attempt") for entry in listed}, {"a.model.txt": 1, "a.logs": 1, "b.x": None})
        self.assertIn("attempt 1 failed", self.pipe("artifacts").out)
        self.assertIn("outputs of failed attempts are kept", self.pipe("show").out)
        self.assertEqual(self.pipe("artifacts", "latest", "a.model", "--copy", "-").out, "half\n")
        copied = self.pipe("artifacts", "latest", "a.logs", "--copy", self.folder / "logs")
        self.assertIn("may be incomplete", copied.out)
        self.assertEqual((self.folder / "logs" / "1").read_text(), "x\n")
        self.assertNotEqual(self.pipe("artifacts", "latest", "a.model", "--copy", self.folder / "logs" / "1").code, 0, "nothing is overwritten")
        self.assertEqual(self.pipe("clean", "--runs", "--keep", "0").code, 0)
        self.assertEqual(list((self.state / "failed").iterdir()), [])


class CheckpointsInContainers(PipeTest):
    def test_a_container_continues_where_the_one_before_ended(self):
        self.pipeline({"a": {"command": "echo x >> ${checkpoint}/n; cp ${checkpoint}/n ${outputs.n}; [ $(wc -l < ${checkpoint}/n) = 3 ]", "outputs": ["n"]}})
        for code in (1, 1, 0):
            self.run_pipe(code=code)
        self.assertEqual(self.artifact("a.n"), "x\nx\nx\n")
        self.assertEqual(list((self.state / "checkpoints").iterdir()), [])
        self.assert_nothing_left()


class Names(PipeTest):
    orchestrator = "local"

    def publish(self, content: str):
        """Runs a pipeline that publishes this content as `production`."""
        self.pipeline({"train": {"command": f"echo {content} > ${{outputs.model}}", "outputs": {"model": "model.txt"}, "publish": {"model": "production"}}})
        self.run_pipe()

    def consume(self, source="artifact:production", code: int = 0):
        """Runs a pipeline with this input. Returns the input's content, or the Result if `code`, the expected exit code, is not 0."""
        self.pipeline({"use": {"command": "cat ${inputs.model} > ${outputs.seen}", "inputs": {"model": source}, "outputs": ["seen"]}})
        result = self.run_pipe(code=code)
        return self.artifact("use.seen") if code == 0 else result

    def versions(self) -> dict[int, bool]:
        """Returns the versions of `production`; true for the current one."""
        listed = json.loads(self.pipe("artifacts", "--name", "production", "--output", "json").out)["versions"]
        return {version["version"]: version["current"] for version in listed}

    def test_a_published_artifact_is_the_input_of_another_pipeline(self):
        self.publish("one")
        self.assertEqual(self.consume(), "one\n")
        self.assertEqual(self.plan()["use"]["action"], "reuse")
        self.publish("two")
        self.assertEqual(self.versions(), {1: False, 2: True})
        self.assertEqual(self.consume(), "two\n")
        self.assertEqual(self.consume("artifact:production@1"), "one\n")
        self.assertEqual(self.pipe("artifacts", "--name", "production", "--demote").code, 0)
        self.assertEqual(self.consume(), "one\n", "the version is in the key")
        self.publish("two")
        self.assertEqual(self.versions(), {1: True, 2: False}, "a result that was published before is not promoted again")
        self.assertEqual(self.pipe("artifacts", "--name", "production", "--promote", "2").code, 0)
        self.assertEqual(self.consume(), "two\n")
        self.assertEqual(self.pipe("artifacts", "--name", "production@1", "--copy", self.folder / "m").code, 0)
        self.assertEqual((self.folder / "m").read_text(), "one\n")

    def test_a_published_artifact_can_be_copied_to_standard_output(self):
        self.publish("one")
        self.assertEqual(self.pipe("artifacts", "--name", "production", "--copy", "-").out, "one\n")
        refused = self.pipe("artifacts", "--name", "production", "--copy", "-", "--output", "json")
        self.assertEqual(refused.code, 2, refused)
        self.assertIn("leave out `--output json`", refused.err)
        self.assertFalse((self.folder / "-").exists())

    def test_a_name_without_a_version_fails_before_anything_runs(self):
        failed = self.consume(code=3)
        self.assertIn("nothing is published as 'production'", failed.out)
        self.assertEqual(self.consume({"artifact": "production", "optional": True}), "")
        self.publish("one")
        self.assertEqual(self.consume({"artifact": "production", "optional": True}), "one\n")
        self.consume("artifact:production@7", code=3)
        for words in (["--name", "prodction"], ["--name", "production@7"], ["--name", "production", "--promote", "7"], ["--name", "production", "--demote"],
                      ["latest", "use.seen", "--publish", "../x"]):
            refused = self.pipe("artifacts", *words)
            self.assertEqual(refused.code, 2, refused)
        self.assertIn("did you mean 'production'?", self.pipe("artifacts", "--name", "prodction").err)

    def test_an_output_of_a_run_can_be_published_by_a_command(self):
        self.pipeline({"a": {"command": "echo x > ${outputs.x}", "outputs": ["x"]}})
        self.run_pipe()
        self.assertEqual(self.pipe("artifacts", "latest", "a.x", "--publish", "production").code, 0)
        self.assertEqual(self.consume(), "x\n")

    def test_a_published_artifact_outlives_its_run(self):
        self.publish("one")
        self.assertEqual(self.pipe("clean", "--runs", "--keep", "0").code, 0)
        self.assertEqual(self.consume(), "one\n")

    def test_a_failed_step_publishes_nothing(self):
        self.pipeline({"train": {"command": "echo one > ${outputs.model}; exit 1", "outputs": ["model"], "publish": {"model": "production"}}})
        self.run_pipe(code=1)
        self.assertEqual(self.pipe("artifacts", "--name", "production").code, 2)


if __name__ == "__main__":
    unittest.main()
