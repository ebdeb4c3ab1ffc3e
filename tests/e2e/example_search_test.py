"""examples/search: rounds of trials, each based on what the round before found; once with few trials, and once with many while the driver (`pipe run`) is
killed ten times.

SEARCH_TRIALS is the number of trials of the second test: 100 by default; 1000 for a thorough test.
"""

import collections
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import time
import unittest

from support import PipeTest

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "search"
TRIALS = int(os.environ.get("SEARCH_TRIALS", "100"))
KILLS = 10
ROUNDS = 10


class SearchTest(PipeTest):
    orchestrator = "local"

    def setUp(self):
        super().setUp()
        shutil.copytree(EXAMPLE, self.folder, dirs_exist_ok=True)

    def best(self, artifact: str = "keep.best") -> dict:
        """Returns the best trial, from an artifact of the latest run."""
        return json.loads(self.artifact(artifact))


class Search(SearchTest):
    def test_a_later_run_goes_on_from_what_was_published(self):
        first = self.run_pipe()
        steps = collections.Counter(step.split(".")[0] for step in first.steps())
        self.assertEqual(steps, {"start": 1, "propose": 3, "trial": 24, "choose": 3, "keep": 1})
        self.assertEqual(set(first.steps().values()), {"succeeded"}, first)
        found = self.best()
        listed = json.loads(self.pipe("artifacts", "--name", "optimum", "--output", "json").out)["versions"]
        self.assertEqual([(version["version"], version["current"]) for version in listed], [(1, True)])
        second = self.run_pipe("-p", "seed=2")
        self.assertEqual(second.steps()["start"], "succeeded")  # The step is not reused, because its input is the version that the first run has published.
        self.assertLessEqual(self.best("choose.best")["loss"], found["loss"])


class SearchInContainers(Search):
    orchestrator = "docker"


class ManyTrials(SearchTest):
    """The same search, once undisturbed and once with its driver killed."""

    words = ("-p", f"points={TRIALS // ROUNDS}", "-p", f"last_round={ROUNDS - 1}", "-p", "enough=0")

    def write_ledger(self):
        """Changes the pipeline so that each trial writes its name into ledger/begun when it begins. The folder is a volume, because a step on `local` may write
        outside its own folders only there."""
        (self.folder / "ledger").mkdir()
        pipeline = self.folder / "pipeline.yaml"
        text = pipeline.read_text().replace("network: none", f"network: none, volumes: [\"{self.folder}/ledger:{self.folder}/ledger\"]")
        pipeline.write_text(text.replace("python search.py try", f"echo ${{step.name}} >> {self.folder}/ledger/begun; python search.py try"))

    def succeeded(self) -> set:
        """Returns the steps of the latest run that have succeeded or were reused."""
        shown = self.pipe("show", "latest", "--output", "json")
        return {step["step"] for step in json.loads(shown.out)["steps"] if step["status"] in ("succeeded", "cached")} if shown.code == 0 else set()

    def begun(self) -> collections.Counter:
        """Returns how often each trial has begun."""
        ledger = self.folder / "ledger" / "begun"
        return collections.Counter(ledger.read_text().split()) if ledger.exists() else collections.Counter()

    def wait_for_trials(self, process, count: int):
        """Waits until this many trials have begun in all, or the driver has ended."""
        while self.begun().total() < count and process.poll() is None:
            time.sleep(0.002)

    def test_a_search_that_is_killed_ten_times_finds_what_an_undisturbed_one_finds(self):
        begun = time.monotonic()
        undisturbed = self.run_pipe(*self.words)
        took = time.monotonic() - begun
        trials = {step for step in undisturbed.steps() if step.startswith("trial.")}
        self.assertEqual(len(trials), TRIALS, undisturbed.steps())
        wanted = self.best()

        self.state = self.folder / "other-state"
        self.write_ledger()
        moment, kills, run_twice = random.Random(7), 0, 0
        resumes = False
        while True:
            before, safe = self.begun(), self.succeeded()
            words = ("resume", "latest") if resumes else ("run", "pipeline.yaml", "--orchestrator", "local", *self.words)
            process = self.start(*words)
            if kills < KILLS:
                self.wait_for_trials(process, before.total() + moment.randint(1, TRIALS * 3 // 4 // KILLS))
                time.sleep(moment.uniform(0, 0.05))
                with contextlib.suppress(ProcessLookupError):  # The driver may have ended; its exit code is checked below.
                    os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate(timeout=600)
            again = {step for step, count in (self.begun() - before).items() if step in safe}
            self.assertEqual(again, set(), "had succeeded before, and ran once more")
            if process.returncode != -signal.SIGKILL:
                break
            kills += 1
            # Once the best trial is published, a new run would begin another search with it: only a resume continues this one.
            resumes = "keep" in self.succeeded() or (moment.random() < 0.5 and bool(self.succeeded()))
        self.assertEqual(process.returncode, 0, out + err)
        self.assertEqual(kills, KILLS, "the run ended before it was killed often enough")
        self.assertEqual(self.best(), wanted)
        counts = self.begun()
        self.assertEqual(set(counts), trials)
        run_twice = sum(counts.values()) - TRIALS
        # Only trials that ran when the driver was killed run again, and those that had ended without being recorded.
        self.assertLessEqual(run_twice, 2 * KILLS * (os.cpu_count() or 1), counts)
        print(f"{TRIALS} trials in {ROUNDS} rounds, {took:.1f} s undisturbed; {kills} kills, {run_twice} trials begun once more, {time.monotonic() - begun - took:.1f} s")
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
