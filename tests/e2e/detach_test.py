"""`pipe run --detach` without a cluster: the driver (the process that executes the run) outlives its terminal, and `pipe attach` shows what it does."""

import hashlib
import json
import os
import pathlib
import pty
import select
import signal
import threading
import unittest

from support import NOWHERE, PipeTest, wait_until
from support_http import Server

BIN = pathlib.Path(os.environ["BUILD_DIR"]) / "bin"

# Prints for three seconds, long enough for a terminal to be closed meanwhile.
SLOW = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do echo line $i; sleep 0.15; done; "
ENDLESS = "trap 'echo asked to stop; exit 1' TERM; echo begun; while :; do sleep 0.1; done"


class Typed:
    """A shell on a terminal of its own. `shown` has all that the terminal has shown so far."""

    def __init__(self, folder, environment: dict):
        self.shown = b""
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe("sh", ["sh"], {**environment, "PS1": "", "TERM": "xterm", "CI": ""})

    def type(self, text: str):
        os.write(self.terminal, text.encode())

    def read(self) -> bytes:
        """Returns all that the terminal has shown so far."""
        if select.select([self.terminal], [], [], 0.05)[0]:
            try:
                self.shown += os.read(self.terminal, 65536)
            except OSError:
                pass
        return self.shown

    def await_text(self, text: str):
        wait_until(lambda: text.encode() in self.read(), f"{text} on the terminal: {self.shown.decode()}")

    def close(self):
        """Closes the terminal, as when its window is closed: its readers get SIGHUP."""
        os.close(self.terminal)
        os.waitpid(self.pid, 0)


class DetachedLocally(PipeTest):
    orchestrator = "local"

    def setUp(self):
        super().setUp()
        self.addCleanup(self.end_all)

    def end_all(self):
        for run in json.loads(self.pipe("runs", "--output", "json").out or "{}").get("runs", []):
            if run["status"] == "running":
                self.pipe("cancel", run["id"], "--now")

    def detach(self, *words, code: int = 0, **env):
        """Executes `pipe run --detach`, and returns its Result. `code` is the expected exit code."""
        result = self.pipe("run", "pipeline.yaml", "-o", self.orchestrator, "--detach", *words, **env)
        self.assertEqual(result.code, code, result)
        return result

    def record(self, run: str = "latest") -> dict:
        """Returns the run as `pipe show` has it in JSON."""
        return json.loads(self.pipe("show", run, "--output", "json").out)

    def driver(self) -> int:
        """Detaches a run, and returns the process id of its driver."""
        (event,) = self.detach("--output", "json").events("detached")
        return event["driver"]["process"]

    def await_log(self, step: str, text: str):
        wait_until(lambda: text in self.pipe("logs", "latest", step).out, f"'{text}' of {step}")

    def await_end(self) -> str:
        """Waits until the latest run has ended, and returns its status."""
        wait_until(lambda: self.record()["status"] != "running", "the run's end")
        return self.record()["status"]

    def test_a_run_outlives_its_terminal(self):
        self.pipeline({"slow": {"command": SLOW + "test -n \"$TOKEN\" && echo -n \"$TOKEN\" | wc -c > ${outputs.x}", "outputs": ["x"], "secrets": ["TOKEN"]},
                       "next": {"command": "cat ${inputs.x} > ${outputs.y}", "inputs": {"x": "slow.x"}, "outputs": ["y"]}})
        terminal = Typed(self.folder, self.environment({"TOKEN": "hush-hush"}))
        terminal.type(f"{self.command} run pipeline.yaml -o {self.orchestrator} --detach; echo code=$?\n")
        terminal.await_text("code=0")
        run = self.record()["id"]
        for command in (f"attach {run}", f"logs {run} -f", f"cancel {run}"):
            self.assertIn(command.encode(), terminal.shown)
        terminal.close()
        self.assertEqual(self.await_end(), "succeeded")
        self.assertEqual(self.artifact("next.y").strip(), "9")
        kept = "".join(path.read_text() for path in (self.state / "logs" / run).iterdir())
        self.assertNotIn("hush-hush", kept)
        self.assert_nothing_left()

    def test_a_hang_up_does_not_end_the_driver(self):
        self.pipeline({"slow": {"command": SLOW}})
        os.kill(self.driver(), signal.SIGHUP)
        self.assertEqual(self.pipe("attach").code, 0)

    def served(self, content: bytes) -> Server:
        """Writes a pipeline whose input is at a server's URL, and returns the server, which has this content."""
        server = Server(content)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.pipeline({"a": {"command": "cat ${inputs.base} > ${outputs.x}", "inputs": {"base": server.url()}, "outputs": ["x"]}})
        return server

    def test_data_at_an_address_is_fetched_locked_and_reused(self):
        server = self.served(b"first\n" * 2_000_000)
        self.detach()
        self.assertEqual(self.await_end(), "succeeded")
        self.assertEqual(self.artifact("a.x"), "first\n" * 2_000_000)
        self.assertIn(server.url(), (self.folder / "pipeline.lock").read_text())
        server.content = b"second\n"
        self.assertIn("changed at the source", self.plan()["a"]["notes"][0])
        self.detach()
        self.assertEqual(self.pipe("attach", "--output", "json").steps(), {"a": "cached"})

    def test_a_driver_that_is_killed_while_it_fetches_is_continued_where_it_was(self):
        content = os.urandom(9 << 20).hex().encode()  # in three ranges
        server = self.served(content)
        digest = hashlib.sha256(content).hexdigest()
        self.pipeline({"a": {"command": "cat ${inputs.base} > ${outputs.x}", "inputs": {"base": {"url": server.url(), "sha256": digest}}, "outputs": ["x"]}})
        is_killed, is_waiting = threading.Event(), threading.Event()

        def hold(request):
            if request.begin > 0 and not is_killed.is_set():
                is_waiting.set()
                is_killed.wait(300)

        server.on_request = hold
        driver = self.driver()
        self.assertTrue(is_waiting.wait(300))
        os.kill(driver, signal.SIGKILL)
        is_killed.set()
        self.assertEqual(self.pipe("attach").code, 3)  # The driver is gone.
        before = len(server.requests)
        self.assertEqual(self.pipe("resume").code, 0)
        self.assertEqual(hashlib.sha256(self.artifact("a.x").encode()).hexdigest(), digest)
        self.assertNotIn(0, [request.begin for request in server.requests[before:] if request.method == "GET"])

    def test_attach_shows_what_run_shows_each_time(self):
        self.pipeline({"slow": {"command": SLOW + "echo x > ${outputs.x}", "outputs": ["x"]}, "next": {"command": "echo more", "after": ["slow"]}})
        self.detach()
        for result in [self.finish(process) for process in [self.start("attach"), self.start("attach", "latest")]]:
            self.assertEqual(result.code, 0, result)
            for text in ("e2e: run ", "[slow] line 20", "[slow] succeeded", "[next] more", "[next] succeeded", "2 succeeded", "slow.x"):
                self.assertIn(text, result.out)
        ended = self.pipe("attach")
        self.assertEqual(ended.code, 0, ended)
        self.assertIn("[next] succeeded", ended.out)
        self.assertIn("2 succeeded", ended.out)
        path = next(line for line in ended.out.splitlines() if line.startswith("slow.x")).split()[-1]
        self.assertEqual((self.folder / path).read_text(), "x\n")

    def test_attach_as_json_is_the_events(self):
        self.pipeline({"slow": {"command": SLOW}})
        detached = json.loads(self.detach("--output", "json").out)
        self.assertEqual((detached["event"], detached["status"]), ("detached", "running"))
        result = self.pipe("attach", detached["run"], "--output", "json")
        self.assertEqual(result.code, 0, result)
        kinds = [event["event"] for event in result.events()]
        self.assertEqual((kinds[0], kinds[-1]), ("run_started", "summary"))
        self.assertEqual(result.steps(), {"slow": "succeeded"})
        self.assertIn("line 20", [event["line"] for event in result.events("step_log")])
        self.assertEqual(result.events("summary")[0]["exit_code"], 0)

    def test_the_exit_code_of_attach_is_that_of_the_run(self):
        self.pipeline({"bad": {"command": "echo what went wrong; exit 7"}, "next": {"command": "true", "after": ["bad"]}})
        self.detach()
        for _ in range(2):
            result = self.pipe("attach")
            self.assertEqual(result.code, 1, result)
            self.assertIn("1 failed, 1 skipped", result.out)
            self.assertIn("what went wrong", result.out)

    def test_wrong_input_is_an_error_at_the_terminal(self):
        self.pipeline({"one": {"comand": "true"}})
        result = self.detach(code=2)
        self.assertIn("did you mean 'command'?", result.err)
        self.assertFalse(self.state.exists())
        self.assertEqual(self.pipe("run", "none.yaml", "--detach", "--output", "json").events("error")[0]["exit_code"], 2)
        self.pipeline({"one": {"command": "true", "secrets": ["NOT_SET_ANYWHERE"]}})
        self.assertIn("NOT_SET_ANYWHERE", self.detach(code=3).err)
        self.assertEqual(json.loads(self.pipe("runs", "--output", "json").out)["runs"], [])

    def test_a_run_with_nothing_to_do_ends_at_once(self):
        self.pipeline({"one": {"command": "true"}})
        self.run_pipe()
        self.detach()
        result = self.pipe("attach")
        self.assertEqual(result.code, 0, result)
        self.assertIn("1 reused", result.out)

    def test_cancel_stops_a_detached_run_gracefully(self):
        self.pipeline({"endless": {"command": ENDLESS}})
        self.detach()
        attached = self.start("attach")
        self.await_log("endless", "begun")
        done = self.pipe("cancel", "latest")
        self.assertEqual(done.code, 0, done)
        self.assertIn("interrupted (stopped)", done.out)
        self.assertIn("asked to stop", self.pipe("logs", "latest", "endless").out)
        result = self.finish(attached)
        self.assertEqual(result.code, 130, result)
        self.assertIn("1 cancelled", result.out)
        self.assert_nothing_left()

    def test_attach_is_live_on_a_terminal_and_ctrl_c_leaves_the_run_alone(self):
        self.pipeline({"endless": {"command": ENDLESS}, "next": {"command": "true", "after": ["endless"]}})
        self.detach()
        self.await_log("endless", "begun")
        terminal = Typed(self.folder, self.environment({}))
        terminal.type(f"{self.command} attach; echo code=$?\n")
        for text in ("0/2 done, 1 running", "begun"):  # in either order
            terminal.await_text(text)
        terminal.type("\x03")
        terminal.await_text("code=130")
        self.assertIn(b"which continues: `pipe attach", terminal.shown)
        terminal.type(f"{self.command} attach; echo code=$?\n")
        wait_until(lambda: terminal.read().count(b"0/2 done, 1 running") > 1, "the second attachment")
        terminal.close()
        self.assertEqual(self.record()["status"], "running")

    def test_attach_reports_a_killed_driver_and_the_run_can_be_resumed(self):
        go = self.folder / "go"
        self.pipeline({"first": {"command": "echo x > ${outputs.x}", "outputs": ["x"]},
                       "slow": {"command": f"cat ${{inputs.x}}; echo line 1; until [ -e {go} ]; do sleep 0.1; done", "inputs": {"x": "first.x"},
                                "settings": {"docker": {"volumes": [f"{self.folder}:{self.folder}"]}}}})
        driver = self.driver()
        attached = self.start("attach")
        self.await_log("slow", "line 1")
        os.kill(driver, signal.SIGKILL)
        result = self.finish(attached)
        self.assertEqual(result.code, 3, result)
        self.assertIn("is gone", result.err)
        self.assertIn("resume", result.err)
        go.touch()
        run = self.record()["id"]
        resumed = self.pipe("resume", run, "--detach")
        self.assertEqual(resumed.code, 0, resumed)
        self.assertIn(f"attach {run}", resumed.out)
        result = self.pipe("attach", run)
        self.assertEqual(result.code, 0, result)
        self.assertIn("1 succeeded", result.out)
        self.assertEqual({step["step"]: len(step["attempts"]) for step in self.record()["steps"]}, {"first": 1, "slow": 2})
        self.assert_nothing_left()

    def test_a_run_that_is_continued_at_a_terminal_can_be_attached_to(self):
        self.pipeline({"slow": {"command": SLOW}})
        os.kill(self.driver(), signal.SIGKILL)
        wait_until(lambda: self.pipe("attach").code == 3, "the driver's end")
        resumed = self.start("resume", "latest")
        self.await_log("slow", "line 2")
        result = self.pipe("attach")
        self.assertEqual(result.code, 0, result)
        self.assertIn("1 succeeded", result.out)
        self.assertEqual(self.finish(resumed).code, 0)

    def test_attach_refuses_a_run_that_was_not_detached(self):
        self.pipeline({"endless": {"command": ENDLESS}})
        process = self.start("run", "pipeline.yaml", "-o", self.orchestrator)
        self.await_log("endless", "begun")
        result = self.pipe("attach")
        self.assertEqual(result.code, 2, result)
        self.assertIn("was not begun with --detach", result.err)
        process.send_signal(signal.SIGINT)
        self.finish(process)
        self.assertIn("has ended: interrupted", self.pipe("attach").err)


class DetachedInContainers(DetachedLocally):
    orchestrator = "docker"

    def test_no_engine_is_an_error_at_the_terminal(self):
        self.pipeline({"one": {"command": "true"}})
        self.assertIn("/nonexistent/engine.sock", self.detach(code=3, DOCKER_HOST=NOWHERE).err)
        self.assertEqual(json.loads(self.pipe("runs", "--output", "json").out)["runs"], [])

    def test_a_failed_build_is_a_failure_of_the_run(self):
        self.write("Dockerfile", f"FROM python:3.11-slim-bookworm\nENV E2E={self.mark}\nRUN echo what went wrong >&2; exit 3\n")
        self.write("pipeline.yaml", json.dumps({"name": "e2e", "settings": {"docker": {"dockerfile": "Dockerfile", "labels": {"e2e": self.mark}, "target_repository": self.repository}},
                                                "steps": {"one": {"command": "true"}}}))
        self.detach()
        result = self.pipe("attach")
        self.assertEqual(result.code, 4, result)
        self.assertIn("what went wrong", result.out)


class DetachedProgram(PipeTest):
    orchestrator = "local"
    command = BIN / "dsl_program"

    def test_a_program_is_its_own_driver(self):
        variables = {"DSL_PROGRAM": "lines"}
        begun = self.pipe("run", "-o", "local", "--detach", **variables)
        self.assertEqual(begun.code, 0, begun)
        self.assertIn(f"{self.command} attach", begun.out)
        self.assertEqual(begun.out.count("continues in the background"), 1)
        result = self.pipe("attach", **variables)
        self.assertEqual(result.code, 0, result)
        self.assertIn("lines succeeded", result.out)


if __name__ == "__main__":
    unittest.main()
