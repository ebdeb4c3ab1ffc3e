"""Runs in Python: results, metrics, failures, events, asyncio, interrupts; each Python that the machine has."""

import os
import signal
import subprocess
import sys
import textwrap
import unittest

from python_support import PythonTest, pyenv

PROGRAM = """
    from dataclasses import dataclass
    from typing import List, NamedTuple
    import os, time
    import pipe_ml as pl

    @dataclass
    class Model:
        weights: List[float]
        c: float

    class Split(NamedTuple):
        fit: List[float]
        held: List[float]

    @pl.step
    def load(count: int = 4) -> List[float]:
        print("loading", count)
        return [float(i) for i in range(count)]

    @pl.step
    def split(data: List[float]) -> Split:
        return Split(data[:-1], data[-1:])

    # A line that moves the function.

    @pl.step
    def train(data: List[float], c: float = 1.0) -> Model:
        pl.metric("loss", c / 2)
        if c < 0:
            raise ValueError(f"c is {c}")
        return Model([c * x for x in data], c)

    @pl.step
    def slow() -> None:
        print("begun", flush=True)
        while not pl.stopping():
            time.sleep(0.01)
        raise SystemExit(3)

    @pl.pipeline
    def digits(count: int = 3, c: float = 0.5):
        parts = split(load(count))
        train(parts.fit, c)
        train.with_options(name="each").map(parts.held, c=[c_ for c_ in (1.0, 2.0)])

    @pl.pipeline
    def stuck():
        slow()

    if __name__ == "__main__":
        digits.main()
"""


class Runs(PythonTest):
    def setUp(self):
        super().setUp()
        self.program(PROGRAM)

    def script(self, text, code=0, **env):
        self.write("script.py", "from digits import *\n" + textwrap.dedent(text))
        return self.python_run("script.py", code=code, **env)

    def test_a_failure_is_an_exception_with_the_steps_own_traceback(self):
        result = self.script("""
            try:
                digits.run(orchestrator="local", c=-1.0)
            except pl.RunFailed as error:
                print(error)
                print(error.run["load"].output(), error.run["train"].failure, error.run["train"].status)
        """)
        self.assertRegex(result.out, r"run \S+ of digits failed\n\nstep 'train' raised ValueError: c is -1.0 \(digits.py:30, in train\)\n")
        self.assertIn(f'  File "{self.folder}/digits.py", line 30, in train\n      raise ValueError(f"c is {{c}}")\n', result.out)
        self.assertIn("[0.0, 1.0, 2.0] raised ValueError: c is -1.0", result.out)
        uncaught = self.script("digits.run(orchestrator='local', c=-2.0)", code=1)
        self.assertRegex(uncaught.err, r"^run \S+ of digits failed\n")
        self.assertNotIn("pipe_ml/_", uncaught.err)

    def test_wrong_calls_are_errors_at_their_lines(self):
        self.assertTrue(self.script("digits.run(siez=3)", code=1).err.startswith("script.py:2: error: the pipeline 'digits' has no parameter 'siez'"))
        self.assertIn("script.py:2: error: the parameter 'count' should be int, and is a str: '3'", self.script("digits.run(count='3')", code=1).err)
        self.assertRegex(self.script("digits.run(orchestrator='nowhere')", code=1).err, r"must be one of docker, local, kubernetes[a-z, ]*, not 'nowhere'")
        result = self.script("""
            run = digits.run(orchestrator="local")
            for wrong in (lambda: run["laod"], lambda: run["each"], lambda: run["load"].output("x"), lambda: run["split"].output()):
                try:
                    wrong()
                except KeyError as error:
                    print(error.args[0])
        """)
        self.assertRegex(result.out, r"has no step 'laod': did you mean 'load'\?\n.*it is mapped: each.c-1.0, each.c-2.0\n.*has no output 'x': it has result.*\n.*has no output 'result': it has fit, held")

    def test_results_are_loaded_as_they_were_returned(self):
        result = self.script("""
            run = digits.run(orchestrator="local", count=4)
            assert run.succeeded and run.parameters == {"count": 4, "c": 0.5}, run.parameters
            assert run["train"].output() == Model([0.0, 0.5, 1.0], 0.5)
            assert run["split"].outputs == {"fit": [0.0, 1.0, 2.0], "held": [3.0]} and run["split"].output("held") == [3.0]
            assert [step.output().c for step in run.mapped("each")] == [1.0, 2.0]
            assert run["train"].metrics == {"loss": 0.25} and run.metrics["train.loss"] == 0.25 and run["train"].parameters["c"] == 0.5
            assert run["load"].logs() == "loading 4\\n", run["load"].logs()
            again = digits.run(orchestrator="local", count=4)
            assert {step.status for step in again.steps.values()} == {"cached"}
            rows = run.compare(digits.run(orchestrator="local", count=3))
            assert rows[0]["name"] == "count" and rows[0]["differs"], rows[0]
            assert digits.last_run().parameters["count"] == 3
            assert "succeeded" in again.show()
            print("done")
        """)
        self.assertTrue(result.out.endswith("done\n"), result)

    def test_events_come_as_they_happen_and_with_asyncio(self):
        result = self.script("""
            import asyncio
            seen = [event["event"] for event in digits.start(orchestrator="local")]
            assert seen[0] == "run_started" and seen[-1] == "summary", seen

            async def main():
                live = digits.start(orchestrator="local", count=5)
                async for event in live:
                    if event["event"] == "step_finished":
                        print(event["step"], event["status"])
                runs = await asyncio.gather(digits.start(orchestrator="local", count=6), digits.start(orchestrator="local", count=7))
                assert [len(run["load"].output()) for run in runs] == [6, 7]
                try:
                    await asyncio.wait_for(asyncio.ensure_future(stuck.start(orchestrator="local")._awaited()), 6)
                except asyncio.TimeoutError:
                    print("cancelled")

            asyncio.run(main())
            assert stuck.last_run().status == "interrupted", stuck.last_run().status
        """)
        self.assertIn("load succeeded\n", result.out)
        self.assertIn("cancelled\n", result.out)

    def test_an_interrupt_ends_the_run_and_raises_keyboard_interrupt(self):
        self.write("script.py", "from digits import *\ntry:\n    stuck.run(orchestrator='local', show=True)\nexcept KeyboardInterrupt:\n    print('interrupted', stuck.last_run().status)\n")
        process = subprocess.Popen([self.python, "script.py"], cwd=self.folder, env=self.environment({}), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        for line in process.stderr:
            if "begun" in line:
                break
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=300)
        self.assertEqual((process.returncode, out), (0, "interrupted interrupted\n"), err)
        self.assert_nothing_left()

    def test_each_python_declares_and_runs_the_same(self):
        exported = set()
        pythons = {version: found for version in ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14") if (found := pyenv(version))}
        for version, self.python in (pythons or {"3.": sys.executable}).items():
            with self.subTest(version):
                exported.add(self.digits("export").out)
                result = self.digits("run", "--no-cache", PATH=f"{os.path.dirname(self.python)}:{os.environ['PATH']}", PYENV_VERSION="")
                self.assertEqual(set(result.steps().values()), {"succeeded"}, result)
                self.assertTrue(any(version in event.get("image", "") for event in result.events("step_started")), result.events("step_started")[:1])
        self.assertEqual(len(exported), 1)


if __name__ == "__main__":
    unittest.main()
