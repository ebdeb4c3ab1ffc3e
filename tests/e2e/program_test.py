"""C++ programs with a pipeline of their own, as their users see them: every kind of step and of failure."""

import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

BIN = pathlib.Path(os.environ["BUILD_DIR"]) / "bin"
PROGRAM = BIN / "dsl_program"


class Program(unittest.TestCase):
    """`which` names a pipeline of tests/dsl/program.cpp."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def program(self, which, *words, code=0, **variables):
        """Runs the program, and returns its stdout and stderr. `code` is the expected exit code."""
        done = subprocess.run(
            [PROGRAM, *words], cwd=self.folder, env={**os.environ, "DSL_PROGRAM": which, "NO_COLOR": "1", **variables},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def run_local(self, which, *words, **options):
        return self.program(which, "run", "-o", "local", *words, **options)

    def events(self, which, *words, **options):
        """Runs the pipeline, and returns its events."""
        text = self.run_local(which, "--output", "json", *words, **options)
        return [json.loads(line) for line in text.splitlines() if line.startswith("{")]

    def failure(self, events, step):
        """Returns the failure with which the step ended."""
        return next(e["failure"] for e in events if e["event"] == "step_finished" and e["step"] == step)

    def test_functions_scripts_and_instances_run_in_one_graph(self):
        text = self.run_local("lines")
        self.assertIn("lines", text)
        copied = self.folder / "winner.json"
        self.program("lines", "artifacts", "latest", "best.result", "--copy", str(copied))
        self.assertEqual(json.loads(copied.read_text()), {"offset": 1.0, "slope": 2.0})
        self.program("lines", "artifacts", "latest", "count_lines.result", "--copy", str(self.folder / "n.json"))
        self.assertEqual((self.folder / "n.json").read_text(), "2\n")

    def test_second_run_reuses_all_and_a_parameter_reruns_only_the_steps_that_take_it(self):
        self.run_local("lines")
        ends = {e["step"]: e["status"] for e in self.events("lines") if e["event"] == "step_finished"}
        self.assertEqual(set(ends.values()), {"cached"})
        ends = {e["step"]: e["status"] for e in self.events("lines", "--param", "split.arg2=0.5") if e["event"] == "step_finished"}
        self.assertEqual((ends["make"], ends["split"]), ("cached", "succeeded"))
        ends = {e["step"]: e["status"] for e in self.events("lines", "--param", "count=50") if e["event"] == "step_finished"}
        self.assertEqual(ends["make"], "succeeded")

    def test_a_vector_that_a_step_makes_is_mapped_over(self):
        ends = {e["step"]: e["status"] for e in self.events("grows") if e["event"] == "step_finished"}
        self.assertEqual(set(ends.values()), {"succeeded"}, ends)
        self.assertEqual(len(ends), 3 + 3 + 1 + 3 + 12, ends)  # The pipeline `grows` maps over 3 trials, 3 words and 12 pages.
        self.program("grows", "artifacts", "latest", "smallest.result", "--copy", str(self.folder / "least.json"))
        self.assertEqual(json.loads((self.folder / "least.json").read_text()), 1.0)
        for part in (3, 10):
            self.program("grows", "artifacts", "latest", f"letters_of[{part}].result", "--copy", str(self.folder / f"n{part}.json"))
            self.assertEqual((self.folder / f"n{part}.json").read_text(), f"{part}\n")
        ends = {e["step"]: e["status"] for e in self.events("grows", "--param", "count=4") if e["event"] == "step_finished"}
        ran = [step for step, status in ends.items() if status == "succeeded"]
        self.assertEqual(len(ran), 3, ran)  # propose, one new trial, smallest
        text = self.program("grows", "plan", "-o", "local", "--param", "count=4")
        self.assertIn("loss_of", text)
        self.assertNotIn("unknown", text)
        self.assertIn("unknown", self.program("grows", "plan", "-o", "local", "--param", "count=5"))

    def test_log_lines_have_their_fields(self):
        self.run_local("lines")
        text = self.program("lines", "logs", "latest", "fit.ridge-0.0")
        self.assertIn("points=80", text)
        lines = [json.loads(line) for line in self.program("lines", "logs", "latest", "fit.ridge-0.0", "--output", "json").splitlines()]
        self.assertEqual(lines[0]["data"]["fields"], {"points": 80, "ridge": 0.0})
        self.assertEqual(lines[0]["line"], "info: fitted points=80 ridge=0.0")
        self.assertEqual(lines[1]["data"]["progress"], 0.5)

    def test_failure_by_an_exception_has_type_message_and_place(self):
        events = self.events("throws", code=1, TOKEN="s3cret-value")
        failure = self.failure(events, "fails")
        self.assertEqual(failure["kind"], "exception")
        self.assertRegex(
            failure["message"],
            r"^threw std::runtime_error: cannot read the table; caused by std::out_of_range: .*\(step 'fails' at program\.cpp:\d+\)$",
        )

    def test_secret_in_an_exception_is_masked(self):
        text = self.run_local("throws", code=1, TOKEN="s3cret-value")
        self.assertNotIn("s3cret-value", text)
        self.assertIn("std::invalid_argument: the value is ", text)
        self.assertIn(f"its whole output: {PROGRAM} logs ", text)
        stored = b"".join(p.read_bytes() for p in (self.folder / ".pipe").rglob("*") if p.is_file() and p.stat().st_size < 1 << 22)
        self.assertNotIn(b"s3cret-value", stored)

    def test_failure_by_a_crash_names_the_signal(self):
        failure = self.failure(self.events("crashes", code=1), "crashes")
        self.assertEqual(failure["kind"], "signal")
        self.assertIn("SIGSEGV", failure["message"])
        self.assertIn("crashed: SIGSEGV", "\n".join(failure["details"]))

    def test_step_that_checks_for_cancellation_can_clean_up(self):
        events = self.events("polite", code=1)
        self.assertEqual(self.failure(events, "polite")["kind"], "timed_out")
        self.assertIn("stopping", self.program("polite", "logs", "latest", "polite"))

    def test_step_that_ignores_cancellation_is_killed_and_its_failure_says_so(self):
        process = subprocess.Popen(
            [PROGRAM, "run", "-o", "local", "--output", "json"], cwd=self.folder, env={**os.environ, "DSL_PROGRAM": "stubborn"},
            stdout=subprocess.PIPE, text=True,
        )
        lines = []
        for line in process.stdout:
            lines.append(json.loads(line))
            if lines[-1]["event"] == "step_log":
                process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(), 130)
        failure = self.failure(lines, "stubborn")
        self.assertEqual(failure["kind"], "cancelled")
        self.assertIn("killed", failure["message"])

    def test_all_errors_are_reported_at_once_with_the_line_of_each_step(self):
        text = self.program("wrong", "validate", code=2)
        for part in ("'one.two' cannot be a step's name", "two steps are called 'twice'", "volumes", "the step has no input 'nothing'"):
            self.assertIn(part, text)
        self.assertRegex(text, r"program\.cpp:\d+:\d+: error: ")

    def test_parameter_of_the_wrong_type_is_refused(self):
        text = self.program("lines", "validate", "--param", "count=many", code=2)
        self.assertIn("'count' is a number, such as 100, not the text 'many'", text)

    def test_export_is_yaml_that_runs(self):
        (self.folder / "program.yaml").write_text(
            subprocess.run([PROGRAM, "export"], cwd=self.folder, env={**os.environ, "DSL_PROGRAM": "lines"}, stdout=subprocess.PIPE, text=True, check=True).stdout
        )
        subprocess.run([os.environ["PIPE"], "validate", "program.yaml"], cwd=self.folder, check=True, stdout=subprocess.PIPE)

    def test_help_of_a_program_has_its_own_commands(self):
        text = self.program("lines", "--help")
        self.assertIn("COMMAND --help", text)
        self.assertNotIn("  init ", text)
        self.assertIn("export", text)

    def environment(self):
        """Returns the variables for the pipeline `gated`, whose second step waits until the file `gate` exists."""
        return {**os.environ, "DSL_PROGRAM": "gated", "GATE": str(self.folder / "gate"), "NO_COLOR": "1"}

    def command(self, *words):
        """Runs a command for the pipeline `gated`, and returns its stdout."""
        return subprocess.run(words, cwd=self.folder, env=self.environment(), stdout=subprocess.PIPE, text=True, check=True).stdout

    def write_export(self):
        (self.folder / "gated.yaml").write_text(self.command(PROGRAM, "export"))

    def test_run_by_the_library_is_resumed_opened_and_reused_like_one_of_the_command(self):
        driver = subprocess.Popen([PROGRAM, "embedded"], cwd=self.folder, env=self.environment())
        self.addCleanup(driver.kill)
        is_waiting = False
        while not is_waiting:
            self.assertIsNone(driver.poll(), "the run has ended before its gate was opened")
            time.sleep(0.1)
            if (self.folder / ".pipe/pipe.db").exists():
                is_waiting = "running" in subprocess.run([PROGRAM, "show", "latest", "two"], cwd=self.folder, env=self.environment(),
                                                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
        driver.kill()
        driver.wait()
        (self.folder / "gate").touch()
        self.command(PROGRAM, "resume")
        shown = json.loads(self.command(PROGRAM, "show", "latest", "--output", "json"))
        self.assertEqual({step["step"]: (step["status"], len(step["attempts"])) for step in shown["steps"]}, {"one": ("succeeded", 1), "two": ("succeeded", 2)})
        self.assertEqual(self.command(PROGRAM, "shell", "latest", "two", "--", "sh", "-c", 'cat "$PIPE_INPUT_TEXT"'), "one\n")
        self.write_export()
        events = [json.loads(line) for line in self.command(os.environ["PIPE"], "run", "gated.yaml", "-o", "local", "--output", "json").splitlines()]
        self.assertEqual({e["step"]: e["status"] for e in events if e["event"] == "step_finished"}, {"one": "cached", "two": "cached"})

    def test_run_by_the_library_reuses_what_pipe_has_run(self):
        (self.folder / "gate").touch()
        self.write_export()
        self.command(os.environ["PIPE"], "run", "gated.yaml", "-o", "local")
        self.assertEqual(self.command(PROGRAM, "embedded"), "one cached\ntwo cached\n")

    def test_a_program_can_use_the_library_without_commands(self):
        done = subprocess.run([BIN / "dsl_library", self.folder / "state"], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, "all well\n"))


if __name__ == "__main__":
    unittest.main()
