"""examples/search: rounds of trials over what the round before found, in small, and with many trials and a driver that is killed ten times.

SEARCH_TRIALS is the number of trials of the latter: 100, or 1000 for all.
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

    def best(self, step: str = "keep.best") -> dict:
        return json.loads(self.artifact(step))


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
        self.assertEqual(second.steps()["start"], "succeeded")  # what it begins with is another version
        self.assertLessEqual(self.best("choose.best")["loss"], found["loss"])


class SearchInContainers(Search):
    orchestrator = "docker"


class ManyTrials(SearchTest):
    """The same search, once undisturbed and once with its driver killed."""

    words = ("-p", f"points={TRIALS // ROUNDS}", "-p", f"last_round={ROUNDS - 1}", "-p", "enough=0")

    def write_ledger(self):
        """Each trial notes that it begins; a step on `local` writes into the folders of `volumes` alone."""
        (self.folder / "ledger").mkdir()
        pipeline = self.folder / "pipeline.yaml"
        text = pipeline.read_text().replace("network: none", f"network: none, volumes: [\"{self.folder}/ledger:{self.folder}/ledger\"]")
        pipeline.write_text(text.replace("python search.py try", f"echo ${{step.name}} >> {self.folder}/ledger/begun; python search.py try"))

    def succeeded(self) -> set:
        shown = self.pipe("show", "latest", "--output", "json")
        return {step["step"] for step in json.loads(shown.out)["steps"] if step["status"] in ("succeeded", "cached")} if shown.code == 0 else set()

    def begun(self) -> collections.Counter:
        ledger = self.folder / "ledger" / "begun"
        return collections.Counter(ledger.read_text().split()) if ledger.exists() else collections.Counter()

    def wait_for_trials(self, process, count: int):
        """Until so many have begun in all, or the driver has ended."""
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
                with contextlib.suppress(ProcessLookupError):  # it has ended, which is told below
                    os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate(timeout=600)
            again = {step for step, count in (self.begun() - before).items() if step in safe}
            self.assertEqual(again, set(), "had succeeded before, and ran once more")
            if process.returncode != -signal.SIGKILL:
                break
            kills += 1
            # What has been published would be the beginning of another search.
            resumes = "keep" in self.succeeded() or (moment.random() < 0.5 and bool(self.succeeded()))
        self.assertEqual(process.returncode, 0, out + err)
        self.assertEqual(kills, KILLS, "the run ended before it was killed often enough")
        self.assertEqual(self.best(), wanted)
        counts = self.begun()
        self.assertEqual(set(counts), trials)
        run_twice = sum(counts.values()) - TRIALS
        # Only what ran when the driver was killed runs again, or had ended and was not yet recorded.
        self.assertLessEqual(run_twice, 2 * KILLS * (os.cpu_count() or 1), counts)
        print(f"{TRIALS} trials in {ROUNDS} rounds, {took:.1f} s undisturbed; {kills} kills, {run_twice} trials begun once more, {time.monotonic() - begun - took:.1f} s")
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
