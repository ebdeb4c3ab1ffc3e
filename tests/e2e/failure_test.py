"""Failures of steps, builds and the machine: their messages and exit codes, and that nothing is left after them."""

import contextlib
import json
import os
import pathlib
import subprocess
import unittest

from support import NOWHERE, PipeTest, Result, docker, wait_until

OK = {"command": ["python3", "-c", "print('fine')"]}


def python(code: str, **more) -> dict:
    """Returns a step that executes this Python code."""
    return {"command": ["python3", "-c", code], **more}


class Failures(PipeTest):
    def test_a_failing_step_skips_what_needs_it_and_nothing_else(self):
        self.pipeline({
            "bad": python("import sys; print('to stdout'); print('to stderr', file=sys.stderr); sys.exit(7)"),
            "after": OK | {"after": ["bad"]},
            "later": OK | {"after": ["after"]},
            "apart": OK,
        })
        result = self.run_pipe(code=1)
        self.assertEqual(result.steps(), {"bad": "failed", "after": "skipped", "later": "skipped", "apart": "succeeded"})
        self.assertEqual(result.failure("bad")["kind"], "exit_code")
        self.assertEqual(result.failure("bad")["message"], "ended with exit code 7")
        logs = self.pipe("logs", "latest", "bad")
        self.assertEqual(sorted(logs.out.split("\n"))[-2:], ["to stderr", "to stdout"], logs)
        shown = self.pipe("show", "latest")
        self.assertIn("bad", shown.out)
        self.assert_nothing_left()

    def gate(self, step: str) -> str:
        """Returns the path of the file for which the step waits."""
        return f"/tmp/{step}-may-end"

    def open_gate(self, step: str):
        """Makes the file for which the step waits. The `docker exec` may fail: the step may end before it, which removes the container."""
        shown = ("ps", "-q", "--filter", f"label=e2e={self.mark}", "--filter", f"label=pipe.step={step}")
        container = wait_until(lambda: docker(*shown), f"a container of {step}")
        subprocess.run(["docker", "exec", container, "touch", self.gate(step)], check=False)

    def run_with_a_slow_step(self, slow_ends: bool, **top) -> dict[str, str]:
        """Runs `bad`, which fails while `slow` runs, and returns the steps' final statuses. If `slow_ends`, `slow` ends after that; else never."""
        wait = "import os, time\nwhile not os.path.exists({!r}): time.sleep(0.02)\n"
        bad, slow = wait.format(self.gate("bad")), wait.format(self.gate("slow"))
        self.pipeline({"bad": python(bad + "raise SystemExit(1)"), "slow": python(slow), "next": OK | {"after": ["slow"]}}, **top)
        words = ("run", "pipeline.yaml", "--orchestrator", self.orchestrator, "--output", "json", "--jobs", "2", "--no-cache")
        lines = []
        with self.start(*words) as process:

            def read_until(kind: str, step: str):
                while line := process.stdout.readline():
                    lines.append(line)
                    event = json.loads(line)
                    if event["event"] == kind and event.get("step") == step:
                        return
                self.fail(f"there was no {kind} of {step}: {''.join(lines)}{process.stderr.read()}")

            read_until("step_started", "slow")
            self.open_gate("bad")
            read_until("step_finished", "bad")
            if slow_ends:
                self.open_gate("slow")
            lines.append(process.stdout.read())
        result = Result(process.returncode, "".join(lines), "")
        self.assertEqual(result.code, 1, result)
        self.assert_nothing_left()
        return result.steps()

    def test_other_steps_continue_after_a_failure(self):
        self.assertEqual(self.run_with_a_slow_step(True), {"bad": "failed", "slow": "succeeded", "next": "succeeded"})

    def test_no_step_starts_after_a_failure_with_stop_on_failure(self):
        steps = self.run_with_a_slow_step(True, execution_mode="stop_on_failure")
        self.assertEqual((steps["bad"], steps["slow"]), ("failed", "succeeded"))
        self.assertIn(steps["next"], ("skipped", "cancelled"))

    def test_running_steps_are_stopped_at_the_first_failure_with_fail_fast(self):
        steps = self.run_with_a_slow_step(False, execution_mode="fail_fast")
        self.assertEqual((steps["bad"], steps["slow"]), ("failed", "cancelled"))

    def test_a_retry_is_a_new_attempt_with_its_own_log(self):
        self.pipeline({"flaky": {
            "command": "echo attempt ${env.N}$PIPE_ATTEMPT; test $PIPE_ATTEMPT = 3 && echo done > ${outputs.x}",
            "environment": {"N": "number "}, "outputs": ["x"], "retry": {"max_retries": 2, "delay": "10ms", "backoff": 2},
        }})
        result = self.run_pipe()
        self.assertEqual([event["attempt"] for event in result.events("step_started")], [1, 2, 3])
        self.assertEqual([event["attempt"] for event in result.events("step_retried")], [1, 2])
        self.assertEqual([event["delay_ms"] for event in result.events("step_retried")], [10, 20])
        self.assertIn("attempt number 1", self.pipe("logs", "latest", "flaky", "--attempt", "1").out)
        self.assertEqual(self.artifact("flaky.x"), "done\n")

    def test_out_of_memory_is_distinguished_from_other_kills(self):
        self.pipeline({
            "hungry": python("x = bytearray(400 << 20); print(len(x))", settings={"resources": {"memory": "64MiB"}}),
            "killed": python("import os; os.kill(os.getpid(), 9)"),
        })
        result = self.run_pipe(code=1)
        self.assertEqual(result.failure("hungry")["kind"], "out_of_memory", result)
        self.assertIn("64", result.failure("hungry")["message"] + " ".join(result.failure("hungry").get("hints", [])))
        self.assertNotEqual(result.failure("killed")["kind"], "out_of_memory")
        self.assert_nothing_left()

    def test_a_step_killed_for_memory_is_tried_again_with_more(self):
        self.pipeline({"hungry": python(
            "x = bytearray(b'x') * (150 << 20); print(len(x))", settings={"resources": {"memory": "64MiB"}},
            retry={"on_oom": {"memory": "x2", "max": "1GiB"}},
        )})
        result = self.run_pipe()
        self.assertEqual([event["memory"] >> 20 for event in result.events("step_retried")], [128, 256])
        shown = json.loads(self.pipe("show", "latest", "--output", "json").out)["steps"][0]["attempts"]
        self.assertEqual([attempt["usage"]["memory_limit"] >> 20 for attempt in shown], [64, 128, 256])
        self.assertEqual([attempt["failure"]["kind"] for attempt in shown[:2]], ["out_of_memory"] * 2)
        self.assertIn("256 MiB", self.pipe("show", "latest").out)
        advice = json.loads(self.pipe("advise", "pipeline.yaml", "--output", "json").out)["steps"][0]["advice"][0]
        self.assertEqual(advice["value"], "256MiB")
        self.assertIn("killed for lack of memory with 128 MiB, not with 256 MiB", advice["reason"])
        self.assertEqual(set(self.run_pipe().steps().values()), {"cached"}, "the limit is no part of the key")
        self.assert_nothing_left()

    def test_a_child_killed_for_memory_is_reported_whatever_the_step_makes_of_it(self):
        child = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'x = bytearray(range(256)) * (400 << 12)']); sys.exit({})"
        limit = {"resources": {"memory": "64MiB"}}
        self.pipeline({
            "hides": python(child.format(0), settings=limit),
            "tells": python(child.format(1), settings=limit, retry={"on_oom": {"memory": "x2", "max": "128MiB"}}),
        })
        result = self.run_pipe(code=1)
        self.assertEqual(result.steps(), {"hides": "succeeded", "tells": "failed"})
        self.assertEqual(result.failure("tells")["kind"], "out_of_memory")
        self.assertEqual([event["memory"] >> 20 for event in result.events("step_retried")], [128])
        self.assertIn("for lack of memory", " ".join(event["text"] for event in result.events("notice") if event["step"] == "hides"))
        self.assertIn("for lack of memory", self.pipe("logs", "latest", "hides").out)
        shown = json.loads(self.pipe("show", "latest", "--output", "json").out)["steps"]
        self.assertEqual([attempt["usage"].get("memory_kills") for step in shown for attempt in step["attempts"]], [1, 1, 1])

    def test_a_step_learns_its_limits_of_memory_and_processors(self):
        self.pipeline({"one": python("import os; print(*(os.environ[name] for name in ('PIPE_CPUS', 'PIPE_MEMORY', 'OMP_NUM_THREADS', 'GOMAXPROCS')))",
                                     environment={"GOMAXPROCS": "7"}, settings={"resources": {"cpu_count": 1.5, "memory": "256MiB"}}),
                       "whole": {"command": "echo $((PIPE_CPUS + 1))", "settings": {"resources": {"cpu_count": 1}}}})
        self.run_pipe()
        self.assertEqual(self.pipe("logs", "latest", "one").out, f"1.5 {256 << 20} 2 7\n")
        self.assertEqual(self.pipe("logs", "latest", "whole").out, "2\n")

    def test_windows_line_ends_are_named(self):
        self.write("run.sh", "#!/bin/sh\r\necho hi\r\n").chmod(0o755)
        self.pipeline({"text": {"command": "./run.sh"}, "list": {"command": ["./run.sh"]}})
        result = self.run_pipe(code=1)
        for step in ("text", "list"):
            self.assertIn("'run.sh' has Windows line ends", " ".join(result.failure(step)["hints"]))

    def test_a_command_that_is_too_long_is_an_error_before_anything_runs(self):
        self.pipeline({"first": OK, "long": {"command": "printf %s ${params.a}${params.b} | wc -c"}}, parameters={"a": "x", "b": "y"})
        self.write("long.json", json.dumps({"a": "x" * 70000, "b": "y" * 70000}))
        result = self.pipe("run", "pipeline.yaml", "-o", self.orchestrator, "--params", "long.json")
        self.assertEqual(result.code, 2, result)
        self.assertIn("128 KiB", result.err)
        self.assertIn("name that under `inputs:`", result.err)
        self.assertNotIn("first", result.out)
        self.pipeline({"long": {"command": "env", "environment": {"TABLE": "x" * 140000}}})
        result = self.pipe("run", "pipeline.yaml", "-o", self.orchestrator)
        self.assertEqual(result.code, 2, result)
        self.assertIn("the variable 'TABLE' with 136.7 KiB", result.err)

    def test_a_timeout_stops_the_step_and_output_of_python_is_not_held_back(self):
        self.pipeline({"slow": python("import time\nprint('begun')\ntime.sleep(600)", timeout="4s")})
        result = self.run_pipe(code=1)
        self.assertEqual(result.failure("slow")["kind"], "timed_out")
        self.assertEqual(result.failure("slow")["message"], "was stopped: it ran longer than its timeout of 4.0s")
        self.assertIn("begun", self.pipe("logs", "latest", "slow").out)
        self.assert_nothing_left()

    def test_a_notice_says_that_a_silent_step_is_stalled_and_in_what_it_waits(self):
        without_init = {"command": ["python3", "-c", "import subprocess\nsubprocess.run(['sleep', '6'])"], "settings": {"docker": {"run_args": {"init": False}}}}
        self.pipeline({"hangs": python("import time\nprint('begun', flush=True)\ntime.sleep(6)\nprint('goes on')"), "without-init": without_init,
                       "talks": {"command": "for i in $(seq 30); do echo $i; sleep 0.1; done"}}, stalled_after="2s")
        result = self.run_pipe("--jobs", "3")
        notices = {notice["step"]: notice["text"] for notice in result.events("notice") if "stalled" in notice["text"]}
        self.assertEqual(set(notices), {"hangs", "without-init"})
        self.assertRegex(notices["hangs"], r"stalled: has printed nothing for 2\.0s; \d+ \S*python\S* .*: sleeps")
        log = self.pipe("logs", "latest", "hangs").text
        self.assertIn("pipe: stalled: has printed nothing for 2.0s", log)
        self.assertIn("goes on", log)
        self.assertRegex(notices["without-init"], r"; \d+ \S*python\S* .*: sleeps in do_wait \(1 more in its log\)", "the container's own first process is shown")
        self.assertRegex(self.pipe("logs", "latest", "without-init").text, r"\d+ sleep 6: sleeps in ")

    def test_a_stalled_step_is_ended_and_retried_with_retry_stalled(self):
        self.pipeline({"hangs": {"command": "echo begun; if [ $PIPE_ATTEMPT = 1 ]; then sleep 600; fi; echo well", "stalled_after": "2s", "retry": {"stalled": True}}})
        result = self.run_pipe()
        retried, = result.events("step_retried")
        self.assertEqual(retried["failure"]["kind"], "stalled")
        self.assertRegex(retried["failure"]["message"], r"was ended: it has printed nothing for 2\.0s; \d+ .*: sleeps")
        self.assertIn("well", self.pipe("logs", "latest", "hangs").out)
        self.assert_nothing_left()

    def test_a_missing_output_fails_the_step(self):
        self.pipeline({"forgets": {"command": "echo only > ${outputs.one}", "outputs": ["one", "two"]}})
        result = self.run_pipe(code=1)
        self.assertEqual(result.failure("forgets")["kind"], "missing_output")
        self.assertIn("two", result.failure("forgets")["message"])
        self.assertEqual(set(self.run_pipe(code=1).steps().values()), {"failed"}, "a failure is not reused")
        self.assert_nothing_left()

    def test_the_failure_names_a_missing_command(self):
        self.pipeline({"typo": {"command": ["pythn", "x.py"]}})
        result = self.run_pipe(code=1)
        self.assertIn("pythn", result.failure("typo")["message"] + json.dumps(result.failure("typo")))
        self.assert_nothing_left()

    def test_a_pipe_that_ends_early_has_a_hint_about_its_last_program(self):
        self.pipeline({"early": {"command": "yes | head -1"}, "wrong": {"command": "(exit 141) | false"}, "killed": {"command": "yes | (kill -9 $BASHPID) | true"},
                       "accepted": {"command": "(yes || true) | head -1"}, "all": {"command": "seq 100000 | sed -n 1p"}})
        result = self.run_pipe(code=1)
        self.assertEqual(result.steps(), {"early": "failed", "wrong": "failed", "killed": "failed", "accepted": "succeeded", "all": "succeeded"})
        hint = "a program that ends before it has read all, as `head` does"
        self.assertIn(hint, result.failure("early")["hints"][0])
        for step in ("wrong", "killed"):
            self.assertNotIn(hint, " ".join(result.failure(step).get("hints", [])))

    def test_the_text_for_people_names_the_step_and_its_last_lines(self):
        self.pipeline({"bad": python("print('the reason'); raise SystemExit(3)")})
        result = self.pipe("run", "pipeline.yaml", "-o", self.orchestrator)
        self.assertEqual(result.code, 1)
        for word in ("bad", "the reason", "3"):
            self.assertIn(word, result.text)
        self.assertNotIn("\x1b", result.text, "no colours in a pipe")


class FailuresInContainers(PipeTest):
    def test_the_line_that_fails_is_named_by_images_without_bash(self):
        self.pipeline({"lines": {"command": "x=1\ntest -f /nonexistent\necho never"}, "code": {"command": "true\nexit 4"}, "fine": {"command": "(exit 3) || true"}},
                      {"parent_image": "busybox:musl", "skip_build": True})
        result = self.run_pipe(code=1)
        self.assertEqual(result.steps(), {"lines": "failed", "code": "failed", "fine": "succeeded"})
        told = {step: [event["line"] for event in result.events("step_log") if event["step"] == step] for step in result.steps()}
        self.assertEqual(told, {"lines": ["pipe: line 2 ended with exit code 1"], "code": ["pipe: line 2 ended with exit code 4"], "fine": []})

    def test_too_little_shared_memory_is_advised(self):
        self.pipeline({"bus": python("import mmap; f = open('/dev/shm/y', 'w+b'); f.truncate(200 << 20); m = mmap.mmap(f.fileno(), 0); m[:] = bytes(len(m))"),
                       "worker": python("import sys; sys.exit('RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error')")})
        result = self.run_pipe(code=1)
        for step in ("bus", "worker"):
            self.assertIn("shm_size: 1GiB", " ".join(result.failure(step)["hints"]))


class FailuresLocally(Failures):
    orchestrator = "local"

    def setUp(self):
        super().setUp()
        if "memory" in self._testMethodName and not self.holds_limits():  # The tests about memory limits have the word in their names.
            self.skipTest("this user may not make control groups here")

    def holds_limits(self, **options) -> bool:
        """Returns whether steps of this user can have a limit of memory here. If they cannot, a run says so."""
        self.pipeline({"one": OK | {"settings": {"resources": {"memory": "64MiB"}}}})
        done = subprocess.run([self.command, "run", "pipeline.yaml", "-o", "local"], cwd=self.folder, env=self.environment({"HOME": str(self.folder)}), capture_output=True, text=True, **options)
        self.assertEqual(done.returncode, 0, done)
        return "does not use `memory`" not in done.stderr + done.stdout

    @unittest.skipUnless(os.getuid() == 0, "becoming another user takes root")
    def test_a_run_says_that_a_limit_cannot_be_enforced(self):
        nobody = 65534
        for path in (self.folder, *self.folder.rglob("*")):
            os.chown(path, nobody, nobody)
        self.assertFalse(self.holds_limits(user=nobody, group=nobody, extra_groups=[]))

    def test_a_step_that_changes_its_input_fails_and_the_input_is_made_again(self):
        use = {"command": "cat ${inputs.o}/f > ${outputs.r}", "inputs": {"o": "make.o"}, "outputs": ["r"]}
        for change in ("chmod u+w ${inputs.o}/f; echo more >> ${inputs.o}/f", "rm -f ${inputs.o}/f", "sed -i s/made/more/ ${inputs.o}/f"):
            self.pipeline({
                "make": {"command": "mkdir ${outputs.o}; echo made > ${outputs.o}/f", "outputs": ["o"]},
                "bad": {"command": change, "inputs": {"o": "make.o"}},
                "use": use | {"after": ["bad"], "run_on": "always"},
            })
            result = self.run_pipe(code=1)
            self.assertEqual((result.steps()["bad"], result.steps()["use"]), ("failed", "succeeded"), change)
            self.assertIn("changed its input 'o'", result.failure("bad")["message"])
            self.assertEqual(self.artifact("use.r"), "made\n")
            self.assertEqual(self.pipe("verify").code, 0)

    def test_verify_says_what_happens_to_missing_and_to_damaged_artifacts(self):
        self.pipeline({"make": {"command": "echo made > ${outputs.o}", "outputs": ["o"]}})
        for damage, said, unsaid in ((lambda file: file.unlink(), "the next run makes missing artifacts again", "were moved"),
                                     (lambda file: (file.unlink(), file.write_text("other\n")), "damaged artifacts were moved to artifacts/damaged", "missing")):
            self.run_pipe()
            (file,) = [path for path in (self.state / "artifacts").rglob("*") if path.is_file() and "damaged" not in path.parts]
            damage(file)
            verified = self.pipe("verify")
            self.assertEqual(verified.code, 3, verified)
            self.assertIn(said, verified.out)
            self.assertNotIn(unsaid, verified.out)

    @unittest.skipUnless(os.getuid() == 0, "the files of artifacts are read-only for others")
    def test_a_step_whose_input_another_one_has_changed_is_tried_again(self):
        self.pipeline({
            "make": {"command": "mkdir ${outputs.o}; echo made > ${outputs.o}/f", "outputs": ["o"]},
            "bad": {"command": f"until test -e {self.gate('good')}; do sleep 0.05; done; echo more >> ${{inputs.o}}/f", "inputs": {"o": "make.o"}},
            "good": {"command": f"touch {self.gate('good')}; until test -e {self.gate('bad')}; do sleep 0.05; done; cat ${{inputs.o}}/f > ${{outputs.r}}", "inputs": {"o": "make.o"}, "outputs": ["r"]},
            "after": {"command": f"touch {self.gate('bad')}", "after": ["bad"], "run_on": "always"},
        })
        result = self.run_pipe("--jobs", "3", code=1)
        self.assertEqual({name: status for name, status in result.steps().items() if name != "after"}, {"make": "succeeded", "bad": "failed", "good": "succeeded"})
        self.assertEqual(self.artifact("good.r"), "made\n")

    def gate(self, step: str) -> str:
        return str(self.folder / f"{step}-may-end")

    def open_gate(self, step: str):
        pathlib.Path(self.gate(step)).touch()

    def environment(self, env):
        return super().environment({"DOCKER_HOST": NOWHERE, **env})


class Builds(PipeTest):
    def test_requirements_that_do_not_exist_are_reported_with_the_installers_output_and_advice(self):
        self.pipeline({"needs": OK, "apart": OK | {"settings": {"docker": {"requirements": []}}}},
                      {"requirements": ["no-such-distribution-of-ours==1.0"], "environment": {"E2E": self.mark}})
        result = self.pipe("run", "pipeline.yaml")
        self.assertEqual(result.code, 4, result)
        self.assertIn("no-such-distribution-of-ours", result.text)
        self.assertRegex(result.text, "check the name and version under requirements")
        events = self.run_pipe("--no-cache", code=4)
        self.assertEqual(events.steps()["needs"], "failed")
        self.assertEqual(events.failure("needs")["kind"], "build")
        self.assertTrue(events.failure("needs")["details"])
        self.assert_nothing_left()

    def test_a_parent_image_that_cannot_be_pulled_is_an_environment_failure(self):
        nowhere = "127.0.0.1:1/no-such-image-of-ours:1"  # No registry answers there, with a network or without.
        self.pipeline({"one": OK}, {"parent_image": nowhere})
        result = self.run_pipe(code=3)
        self.assertEqual(result.failure("one")["kind"], "environment")
        self.assertRegex(result.failure("one")["message"], f"^cannot pull the image {nowhere}: .*connection refused")

    def test_apt_packages_on_an_image_without_apt_say_so(self):
        subprocess.run(["docker", "import", "-", f"{self.repository}:empty"], input=b"\0" * 10240, check=True, stdout=subprocess.DEVNULL)
        self.pipeline({"one": OK}, {"parent_image": f"{self.repository}:empty", "apt_packages": ["curl"]})
        result = self.run_pipe(code=4)
        self.assertRegex(result.text, "apt|shell|/bin/sh")


class NoEngine(PipeTest):
    orchestrator = "local"

    def test_the_error_without_an_engine_advises_the_local_orchestrator(self):
        self.pipeline({"one": OK})
        result = self.pipe("run", "pipeline.yaml", DOCKER_HOST=NOWHERE)
        self.assertEqual(result.code, 3, result)
        for words in ("/nonexistent/engine.sock", "--orchestrator local"):
            self.assertIn(words, result.err)
        self.assertEqual(self.pipe("doctor", DOCKER_HOST=NOWHERE).code, 3)

    def test_commands_that_need_no_engine_work_without_one(self):
        self.pipeline({"one": OK}, {"requirements": ["six==1.16.0"]})
        for words in (["validate", "pipeline.yaml"], ["render", "pipeline.yaml"], ["schema"], ["runs"], ["--version"], ["completion", "bash"]):
            self.assertEqual(self.pipe(*words, DOCKER_HOST=NOWHERE).code, 0, words)


@unittest.skipUnless(os.getuid() == 0, "mounting a small file system takes root")
class FullDisk(PipeTest):
    """The state is on a file system of a few megabytes."""

    def setUp(self):
        super().setUp()
        self.state.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", self.state], stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("this machine lets nobody mount a tmpfs")
        self.addCleanup(lambda: subprocess.run(["umount", "-l", self.state], check=False))

    def test_a_full_disk_is_an_environment_error_and_the_state_stays_whole(self):
        self.pipeline({
            "small": {"command": "echo small > ${outputs.x}", "outputs": ["x"]},
            "big": {"command": ["python3", "-c", "import sys; open(sys.argv[1], 'wb').write(b'x' * (8 << 20))", "${outputs.x}"], "outputs": ["x"],
                    "after": ["small"]},
        })
        result = self.run_pipe(code=None)
        failure = result.failure("big")
        # If the disk still has room for the last lines of the step's log, the step fails by itself.
        messages = {"environment": (3, "^cannot write .*: No space left on device$"), "exit_code": (1, "^ended with exit code 1$")}
        self.assertIn(failure["kind"], messages, result)
        code, message = messages[failure["kind"]]
        self.assertRegex(failure["message"], message)
        self.assertEqual(result.code, code, result)
        self.assertIn("No space left on device", result.text)
        self.assert_nothing_left()
        filler = self.state / "filler"
        with open(filler, "wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(b"x" * 4096)
        full = self.pipe("run", "pipeline.yaml", "--orchestrator", self.orchestrator)
        self.assertEqual(full.code, 3, full)
        self.assertRegex(full.text, "[Nn]o space left on device|disk.*full|full.*disk")
        filler.unlink()
        self.pipeline({"small": {"command": "echo small > ${outputs.x}", "outputs": ["x"]}})
        self.assertEqual(self.run_pipe().steps()["small"], "cached", "results of earlier steps are kept")
        self.assert_nothing_left()


class FullDiskLocally(FullDisk):
    orchestrator = "local"

    def environment(self, env):
        return super().environment({"DOCKER_HOST": NOWHERE, **env})


if __name__ == "__main__":
    unittest.main()
