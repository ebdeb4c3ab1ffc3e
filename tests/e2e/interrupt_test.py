"""Ctrl-C once and twice, in a run, in a build and in waits; a driver (`pipe run`) that is killed; several runs at once."""

import contextlib
import fcntl
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import threading
import time
import unittest

from support import NOWHERE, PARENT, PipeTest, docker, engine_is_podman, wait_until

# Prints that it has begun, and a line for each SIGTERM. It ends after a SIGTERM if its argument is `polite`, and not by itself.
STUBBORN = """
import os, signal, sys, time
def stop(number, frame):
    print('asked to stop', flush=True)
    if sys.argv[1] == 'polite': sys.exit(1)
signal.signal(signal.SIGTERM, stop)
print('begun', flush=True)
while True: time.sleep(0.1)
"""


class Interrupted(PipeTest):
    def setUp(self):
        super().setUp()
        self.write("wait.py", STUBBORN)

    def steps(self, manner: str) -> dict:
        return {"wait": {"command": ["python3", "wait.py", manner], "outputs": ["never"]}, "next": {"command": ["python3", "-c", ""], "after": ["wait"]}}

    def begin(self, manner: str) -> subprocess.Popen:
        """Starts a run whose step executes STUBBORN with this argument, and returns once the step has begun."""
        self.pipeline(self.steps(manner))
        process = self.start("run", "pipeline.yaml", "--orchestrator", self.orchestrator, "--output", "json")
        wait_until(lambda: "begun" in self.pipe("logs", "latest", "wait").out or process.poll() is not None, "a first line of the step")
        self.assertIsNone(process.poll(), process.poll() is not None and self.finish(process))
        return process

    def test_ctrl_c_once_stops_gracefully(self):
        process = self.begin("polite")
        process.send_signal(signal.SIGINT)
        result = self.finish(process)
        self.assertEqual(result.code, 130, result)
        self.assertEqual(result.steps()["wait"], "cancelled", result)
        self.assertIn(result.steps()["next"], ("skipped", "cancelled"))
        self.assertEqual(result.events("run_finished")[0]["status"], "interrupted")
        self.assertIn("asked to stop", self.pipe("logs", "latest", "wait").out)
        self.assert_nothing_left()

    def test_the_run_says_how_it_is_continued(self):
        self.pipeline({"wait": {"command": ["python3", "wait.py", "polite"]}})
        process = self.start("run", "pipeline.yaml", "--orchestrator", self.orchestrator)
        wait_until(lambda: "begun" in self.pipe("logs", "latest", "wait").out or process.poll() is not None, "a first line of the step")
        process.send_signal(signal.SIGINT)
        interrupted = self.finish(process)
        said = re.search(r"^Continue it: pipe (resume \S+)$", interrupted.out, re.MULTILINE)
        self.assertIsNotNone(said, interrupted)
        self.write("wait.py", "print('done')")
        continued = self.pipe(*said[1].split())
        self.assertEqual(continued.code, 0, continued)
        self.assertNotIn("Continue it", continued.out)

    def test_ctrl_c_twice_stops_at_once(self):
        process = self.begin("stubborn")
        process.send_signal(signal.SIGINT)
        wait_until(lambda: "asked to stop" in self.pipe("logs", "latest", "wait").out, "the request to stop")
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        result = self.finish(process)
        self.assertEqual(result.code, 130, result)
        self.assert_nothing_left()

    def test_a_running_step_is_shown_with_the_time_that_it_has_run(self):
        process = self.begin("polite")
        wait_until(lambda: re.search(r"^wait +running +[1-9][0-9.]*m?s", self.pipe("show", "latest").out, re.MULTILINE), "the time of the running step")
        process.send_signal(signal.SIGINT)
        self.finish(process)

    def test_sigterm_has_the_effect_of_ctrl_c(self):
        process = self.begin("polite")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(self.finish(process).code, 130)
        self.assert_nothing_left()

    def test_cancel_stops_a_run_from_elsewhere(self):
        process = self.begin("polite")
        done = self.pipe("cancel", "latest")
        self.assertEqual(done.code, 0, done)
        self.assertEqual(self.finish(process).code, 130)
        self.assert_nothing_left()

    def test_cancel_now_stops_at_once_also_if_repeated(self):
        process = self.begin("stubborn")
        cancels = []
        for words in ([], ["--now"], ["--now"], []):
            cancels.append(self.start("cancel", "latest", *words))
            wait_until(lambda: process.poll() is not None or "asked to stop" in self.pipe("logs", "latest", "wait").out, "a stop that has arrived")
        stopped = self.finish(process)
        for cancel in cancels:
            self.finish(cancel)
        self.assertEqual(stopped.code, 130, stopped)
        self.assertEqual(stopped.steps()["wait"], "cancelled", stopped)
        self.assertEqual(stopped.events("run_finished")[0]["status"], "interrupted")
        self.assertNotIn("gave up", stopped.err)
        self.assert_nothing_left()

    def test_a_killed_driver_leaves_a_run_that_the_next_one_cleans_up(self):
        process = self.begin("polite")
        process.send_signal(signal.SIGKILL)
        process.wait()
        killed = json.loads(self.pipe("show", "latest", "--output", "json").out)["id"]
        wait_until(lambda: json.loads(self.pipe("show", killed, "--output", "json").out)["status"] == "died", "a dead driver")
        self.pipeline({"next": {"command": ["python3", "-c", "print(1)"]}})
        self.run_pipe()
        self.assertNotRegex(self.pipe("show", killed).out, r"(?m)^wait +\w+ +[0-9.]+m?s", "the time that the step ran is not known")
        wait_until(lambda: self.orchestrator == "local" or not self.containers(), "an end of the dead run's container")
        self.assertRegex(self.pipe("runs").out, rf"(?m)^{killed} +\S+ +interrupted +\S+ \S+Z +\d+ +\d+ +\d+ *$", "nor the run")
        self.assertNotIn(" in ", self.pipe("show", killed).out.splitlines()[0])
        self.assertNotIn("took_ms", json.loads(self.pipe("show", killed, "--output", "json").out))
        self.assert_nothing_left()

    def test_a_container_that_the_engine_creates_after_its_driver_died_is_removed_too(self):
        """An engine under load may create a container seconds after it was asked to, when the dead run has been recovered."""
        process = self.begin("polite")
        labels = json.loads(docker("inspect", self.containers()[0]))[0]["Config"]["Labels"]
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.pipeline({"next": {"command": "until [ -e /tmp/go ]; do sleep 0.1; done"}})
        following = self.start("run", "pipeline.yaml", "--orchestrator", self.orchestrator, "--output", "json")
        old = labels["pipe.run"]
        shown = lambda: docker("ps", "--filter", f"label=e2e={self.mark}", "--format", '{{.ID}} {{.Label "pipe.run"}}').splitlines()
        (step,) = wait_until(lambda: [line.split()[0] for line in shown() if line.split()[1] != old], "the next step's container")
        late = docker("create", *(f"--label={name}={value}" for name, value in labels.items()), PARENT, "true")
        subprocess.run(["docker", "exec", step, "touch", "/tmp/go"], check=False)  # The step may end before this program, which is then killed.
        self.assertEqual(self.finish(following).code, 0)
        self.assertNotEqual(subprocess.run(["docker", "inspect", late], capture_output=True).returncode, 0, "the late container is left")
        self.assert_nothing_left()

    def test_two_runs_at_once_both_finish(self):
        self.pipeline({name: {"command": f"sleep 0.2; echo {name} > ${{outputs.x}}", "outputs": ["x"]} for name in "abcd"})
        words = ("run", "pipeline.yaml", "--orchestrator", self.orchestrator, "--output", "json", "--no-cache")
        runs = [self.finish(process) for process in [self.start(*words) for _ in range(3)]]
        for result in runs:
            self.assertEqual(result.code, 0, result)
            self.assertEqual(set(result.steps().values()), {"succeeded"})
        self.assertEqual(len({result.events("run_started")[0]["run"] for result in runs}), 3)
        self.assertEqual(set(self.run_pipe().steps().values()), {"cached"})
        self.assert_nothing_left()


class InterruptedLocally(Interrupted):
    orchestrator = "local"
    test_a_container_that_the_engine_creates_after_its_driver_died_is_removed_too = None  # There is no engine.

    def test_ctrl_c_twice_ends_a_driver_that_reads_a_large_file(self):
        with open(self.write("code/x", ""), "ab") as code, open(self.write("large", ""), "ab") as large:
            for file in (code, large):
                file.truncate(60 << 30)
        for steps in ({"a": {"command": ["true"], "inputs": {"d": "./large"}}}, {"a": {"command": ["true"], "code": ["code"]}},
                      {"a": {"command": "truncate -s 60G ${outputs.o}", "outputs": ["o"]}}):
            with self.subTest(steps):
                self.pipeline(steps)
                process = self.start("run", "pipeline.yaml", "--orchestrator", "local")
                wait_until(lambda: process.poll() is not None or self.bytes_read(process) > 1 << 27, "a part of the file")
                for _ in range(2):
                    process.send_signal(signal.SIGINT)
                    time.sleep(0.2)
                read = 0
                while process.poll() is None:
                    read = max(read, self.bytes_read(process))
                    time.sleep(0.1)
                self.assertEqual(self.finish(process).code, 130)
                self.assertLess(read, 50 << 30)

    @staticmethod
    def bytes_read(process: subprocess.Popen) -> int:
        """Returns how many bytes the process has read so far; 0 after its end."""
        with contextlib.suppress(OSError):
            return int(re.search(r"^rchar: (\d+)", pathlib.Path(f"/proc/{process.pid}/io").read_text(), re.MULTILINE)[1])
        return 0

    def environment(self, env):
        return super().environment({"DOCKER_HOST": NOWHERE, **env})


class SilentServer:
    """Accepts connections and never answers, until the `with` block ends."""

    def __init__(self, path: str | None = None):
        self.socket = socket.socket(socket.AF_UNIX if path else socket.AF_INET)
        self.socket.bind(path or ("127.0.0.1", 0))
        self.socket.listen()
        self.url = f"unix://{path}" if path else f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        self.connections = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                self.connections.append(self.socket.accept()[0])

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for each in (self.socket, *self.connections):
            each.close()


class InterruptedWaits(PipeTest):
    """Ctrl-C ends waits for a server or for another user, before a run, during a command, and after a run. The names of the tests say what `pipe` waits for."""

    orchestrator = "local"
    steps = {"a": {"command": "echo > ${outputs.o}", "outputs": ["o"]}}

    def end_of(self, words: list[str], is_waiting, **env):
        """Starts a command, sends SIGINT once is_waiting(process) is true, and returns the command's Result."""
        process = self.start(*words, **{"DOCKER_HOST": NOWHERE, **env})
        wait_until(lambda: process.poll() is not None or is_waiting(process), "the wait")
        self.assertIsNone(process.poll(), process.poll() is not None and self.finish(process))
        process.send_signal(signal.SIGINT)
        return self.finish(process, timeout=50)

    def test_for_a_bucket_before_the_run(self):
        with SilentServer() as server:
            self.pipeline(self.steps)
            self.write("profiles.yaml", json.dumps({"p": {"artifact_store": "s3://bucket/x"}}))
            result = self.end_of(["run", "-o", "local", "--profile", "p"], lambda _: server.connections,
                                 AWS_ENDPOINT_URL_S3=server.url, AWS_ACCESS_KEY_ID="a", AWS_SECRET_ACCESS_KEY="b")
        self.assertEqual(result.code, 130, result)

    def test_for_a_webhook_after_the_run(self):
        with SilentServer() as server:
            self.pipeline(self.steps, notify={"url": server.url})
            result = self.end_of(["run", "-o", "local"], lambda _: server.connections)
        self.assertEqual(result.code, 0, result)
        self.assertIn("was not sent: it did not answer until Ctrl-C", result.out)

    def test_for_an_engine_that_locks(self):
        path = f"/tmp/pipe-e2e-{self.mark}"
        self.addCleanup(os.unlink, path)
        with SilentServer(path) as server:
            self.pipeline(self.steps, {"requirements": ["six"]})
            # The first connection is the look whether anybody listens.
            result = self.end_of(["lock", "-o", "docker"], lambda _: len(server.connections) > 1, DOCKER_HOST=server.url)
        self.assertEqual(result.code, 130, result)

    @staticmethod
    def is_at_the_locks(process: subprocess.Popen) -> bool:
        """Returns whether the process has opened the file by which it locks the machine's limits."""
        with contextlib.suppress(OSError):
            return any(os.readlink(each).endswith("/locks/mutex") for each in pathlib.Path(f"/proc/{process.pid}/fd").iterdir())
        return False

    def test_for_the_machines_limits_which_another_user_keeps(self):
        locks = self.folder / "locks"
        locks.mkdir()
        locks.chmod(0o1777)
        with open(locks / "mutex", "w") as mutex:
            fcntl.flock(mutex, fcntl.LOCK_EX)
            self.pipeline({"a": {"command": "true", "uses": {"license": 1}}})
            self.write("profiles.yaml", json.dumps({"p": {"limits": {"license": 1}}}))
            result = self.end_of(["run", "-o", "local", "--profile", "p"], self.is_at_the_locks, PIPE_GPU_LOCKS=str(locks))
        self.assertEqual(result.code, 130, result)


class InterruptedBuild(PipeTest):
    def begin(self) -> subprocess.Popen:
        """Starts a run that builds an image, and returns once the build executes its `sleep`."""
        seconds = 20 if engine_is_podman() else 900  # Podman does not stop an instruction; it only begins no further one.
        self.write("Dockerfile", f"FROM python:3.11-slim-bookworm\nENV E2E={self.mark}\nRUN echo building-{self.mark} && sleep {seconds}\nRUN touch /after\n")
        self.pipeline({"one": {"command": ["python3", "-c", ""]}}, {"dockerfile": "Dockerfile", "parent_image": None})
        text = (self.folder / "pipeline.yaml").read_text().replace('"parent_image": null,', "")
        self.write("pipeline.yaml", text)
        process = self.start("run", "pipeline.yaml", "--output", "json")
        wait_until(lambda: process.poll() is not None or self.sleeping(), "the build's sleep")
        self.assertIsNone(process.poll(), process.poll() is not None and self.finish(process))
        return process

    def sleeping(self) -> bool:
        """Returns whether the build executes its `sleep`."""
        return subprocess.run(["pgrep", "-f", f"building-{self.mark}"], stdout=subprocess.DEVNULL, check=False).returncode == 0

    def test_ctrl_c_once_ends_the_build(self):
        process = self.begin()
        process.send_signal(signal.SIGINT)
        result = self.finish(process)
        self.assertEqual(result.code, 130, result)
        wait_until(lambda: not self.sleeping(), "an end of the build in the engine")
        self.assertEqual(self.images(), [])
        self.assert_nothing_left()

    def test_ctrl_c_twice_ends_the_build_too(self):
        process = self.begin()
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(process).code, 130)
        wait_until(lambda: not self.sleeping(), "an end of the build in the engine")
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
