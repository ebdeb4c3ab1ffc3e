"""Services of a step: they are ready before the step starts, the step reaches them by their names, and nothing is left of them however the step ends."""

import os
import signal
import unittest

from support import PARENT, PipeTest, docker, wait_until

WEB = ["python3", "-u", "-m", "http.server", "8000"]
ASK = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())"  # prints what a URL has


def web(**more) -> dict:
    """Returns a service that is an HTTP server. `more` replaces keys of the service."""
    return {"image": PARENT, "command": WEB, "ready": {"port": 8000, "http": "/"}, **more}


def script(text: str, **more) -> dict:
    """Returns a service that executes this Python code, and should be ready as web() is."""
    return web(command=["python3", "-u", "-c", text], **more)


class Services(PipeTest):
    def networks(self) -> list[str]:
        """Returns the ids of the networks that carry the test's mark."""
        return docker("network", "ls", "-q", "--filter", f"label=e2e={self.mark}").split()

    def remove_everything(self):
        super().remove_everything()
        if left := self.networks():
            docker("network", "rm", *left)

    def assert_nothing_left(self):
        super().assert_nothing_left()
        self.assertEqual(self.networks(), [])

    def log(self, step: str) -> str:
        return self.pipe("logs", "latest", step).out

    def test_a_step_reaches_its_services_by_their_names(self):
        ask = {"command": ["python3", "-c", ASK + "; print(urllib.request.urlopen('http://second:8000/').status)", "http://web:8000/"],
               "services": {"web": web(), "second": web(ready={"command": ["python3", "-c", "import socket; socket.create_connection(('web', 8000))"]})}}
        self.pipeline({"ask": ask})
        self.run_pipe()
        log = self.log("ask")
        self.assertIn("Directory listing", log)
        self.assertRegex(log, r"(?m)^200$")
        self.assertRegex(log, r"(?m)^\[web\] .*\"GET / HTTP/1.1\" 200")
        self.assert_nothing_left()
        self.assertEqual(self.run_pipe().steps(), {"ask": "cached"})
        ask["services"]["web"]["environment"] = {"MODE": "2"}
        self.pipeline({"ask": ask})
        plan = self.plan()["ask"]
        self.assertEqual((plan["action"], plan["changes"]), ("run", ["service web command changed"]), plan)
        self.assertIn(f"beside it runs the service web ({PARENT})", plan["notes"])

    def test_the_check_of_a_service_reads_an_answer_with_pauses_to_its_end(self):
        """The log of a server has an error if its answer is cut off."""
        self.pipeline({"ask": {"command": "true", "services": {"web": script(
            "import http.server, time\n"
            "class Slow(http.server.BaseHTTPRequestHandler):\n"
            "    def do_GET(self):\n"
            "        self.send_response(200)\n"
            "        self.end_headers()\n"
            "        for part in (b'one', b'two'):\n"
            "            time.sleep(1)\n"
            "            self.wfile.write(part)\n"
            "        print('whole', flush=True)\n"
            "http.server.HTTPServer(('', 8000), Slow).serve_forever()")}}})
        self.run_pipe()
        self.assertIn("[web] whole", self.log("ask"))
        self.assertNotIn("Traceback", self.log("ask"))

    def test_a_service_sees_inputs_code_and_values_of_its_step(self):
        self.write("serve.py", "import http.server, os\nopen('/tmp/index.html', 'w').write(open(os.environ['PIPE_INPUT_MODEL']).read() + os.environ['TOKEN'] + os.environ['SIZE'])\n"
                   "os.chdir('/tmp')\nprint('token', os.environ['TOKEN'], flush=True)\nhttp.server.test(http.server.SimpleHTTPRequestHandler, port=8000)\n")
        self.pipeline({
            "train": {"command": "echo trained > ${outputs.model}", "outputs": ["model"]},
            "ask": {"command": ["python3", "-c", "import os, urllib.request; print(urllib.request.urlopen('http://web:8000/').read().decode().replace(os.environ['TOKEN'], 'known'))"],
                    "inputs": {"model": "train.model"}, "code": ["serve.py"], "secrets": ["TOKEN"],
                    "services": {"web": web(command=["python3", "/pipe/code/serve.py"], environment={"TOKEN": None, "SIZE": "${params.size}"})}},
        }, parameters={"size": 3})
        self.run_pipe(TOKEN="hush-hush-4711")
        log = self.log("ask")
        own = [line for line in log.splitlines() if not line.startswith("[")]  # A line of a service may come between two of the step.
        self.assertIn("trained\nknown3", "\n".join(own))
        self.assertIn("[web] token ", log)
        self.assertNotIn("4711", log)

    def test_a_service_that_is_not_ready_in_time_fails_the_step(self):
        self.pipeline({"ask": {"command": "echo never", "services": {"web": script("print('loading weights'); import time; time.sleep(600)", ready={"port": 8000, "timeout": "4s"})}}})
        failure = self.run_pipe(code=1).failure("ask")
        self.assertEqual(failure["kind"], "not_started", failure)
        self.assertEqual(failure["message"], f"its service 'web' ({PARENT}) was not ready within 4.0s: port 8000: Connection refused")
        self.assertIn("[web] loading weights", failure["details"])
        self.assertNotIn("never", self.log("ask").replace("[web]", ""))
        self.assert_nothing_left()

    def test_a_failed_check_shows_both_of_its_outputs(self):
        check = ["python3", "-c", "import sys; print('looked', flush=True); sys.exit('no such database')"]
        self.pipeline({"ask": {"command": "true", "services": {"db": script("import time; time.sleep(600)", ready={"command": check, "timeout": "4s"})}}})
        failure = self.run_pipe(code=1).failure("ask")
        self.assertTrue(failure["message"].endswith("was not ready within 4.0s: no such database"), failure)
        self.assertEqual(failure["details"][:2], ["[db check] looked", "[db check] no such database"], failure)
        self.assert_nothing_left()

    def test_a_service_that_ends_fails_the_step(self):
        ends = """
import http.server, os
class Handler(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        if self.path == '/end':
            print('disk full', flush=True)
            os._exit(4)
        super().do_GET()
http.server.HTTPServer(('', 8000), Handler).serve_forever()
"""
        ask = "import time, urllib.request\n"
        self.pipeline({
            "early": {"command": "echo never", "services": {"db": script("print('no password'); exit(3)")}},
            "late": {"command": ["python3", "-c", ask + "try: urllib.request.urlopen('http://db:8000/end')\nexcept OSError: pass\ntime.sleep(600)"],
                     "services": {"db": script(ends)}},
            "both": {"command": ["python3", "-c", ask + "urllib.request.urlopen('http://db:8000/end')"], "services": {"db": script(ends)}},
        })
        result = self.run_pipe(code=1)
        early, late, both = (result.failure(step) for step in ("early", "late", "both"))
        self.assertEqual(early["message"], f"its service 'db' ({PARENT}) ended with exit code 3 before it was ready")
        self.assertIn("[db] no password", early["details"])
        self.assertEqual(late["message"], f"its service 'db' ({PARENT}) ended with exit code 4 while the step ran")
        self.assertIn("[db] disk full", late["details"])
        self.assertEqual(both["message"], late["message"])
        self.assert_nothing_left()

    def test_no_failure_of_a_service_shows_a_secret(self):
        talks = {"environment": {"TOKEN": None}, "ready": {"command": ["python3", "-c", "import os; print('not ready:', os.environ['TOKEN']); exit(1)"], "timeout": "4s"}}
        self.pipeline({"ask": {"command": "true", "secrets": ["TOKEN"],
                               "services": {"db": {**script("import os, time; print('with', os.environ['TOKEN'], flush=True); time.sleep(600)"), **talks}}}})
        result = self.run_pipe(code=1, TOKEN="hush-hush-4711")
        failure = result.failure("ask")
        self.assertTrue(failure["message"].endswith("not ready: ***"), failure)
        self.assertIn("[db] with ***", failure["details"])
        self.assertNotIn("4711", result.text)
        self.assertEqual([path for path in self.state.rglob("*") if path.is_file() and b"4711" in path.read_bytes()], [])

    def test_ctrl_c_and_a_killed_driver_leave_nothing(self):
        self.pipeline({"ask": {"command": "echo begun; sleep 600", "services": {"web": web()}}})
        process = self.start("run", "pipeline.yaml", "--orchestrator", "docker")
        wait_until(lambda: "begun" in self.log("ask"), "a first line of the step")
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(process).code, 130)
        self.assert_nothing_left()
        process = self.start("run", "pipeline.yaml", "--orchestrator", "docker")
        wait_until(lambda: len(self.containers()) == 2, "the containers of service and step")
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self.assertEqual((len(self.containers()), len(self.networks())), (2, 1))
        self.pipeline({"other": {"command": "true"}})
        self.run_pipe()
        self.assert_nothing_left()

    def test_ctrl_c_while_a_service_starts_leaves_nothing(self):
        self.pipeline({"ask": {"command": "true", "services": {"web": script("print('starts'); import time; time.sleep(600)")}}})
        process = self.start("run", "pipeline.yaml", "--orchestrator", "docker")
        wait_until(lambda: "[web] starts" in self.log("ask"), "a first line of the service")
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(process).code, 130)
        self.assert_nothing_left()

    def test_a_step_has_its_own_network_beside_that_of_its_services(self):
        own = f"pipe-e2e-{self.mark}"
        docker("network", "create", "--label", f"e2e={self.mark}", own)
        self.pipeline({"ask": {"command": ["python3", "-c", ASK + "; import socket; print(len(socket.if_nameindex()))", "http://web:8000/"], "services": {"web": web()},
                               "settings": {"docker": {"network": own}}}})
        self.run_pipe()
        self.assertRegex(self.log("ask"), r"(?m)^3$", "lo, the step's network, and that of its services")
        self.assertEqual(len(self.networks()), 1)

    def test_services_of_a_step_that_is_a_process_are_an_error(self):
        self.pipeline({"ask": {"command": "true", "services": {"web": web()}}})
        for command in ("plan", "run"):
            refused = self.pipe(command, "pipeline.yaml", "--orchestrator", "local")
            self.assertEqual(refused.code, 2, refused)
            self.assertIn("step 'ask': has services, which are containers, and the orchestrator 'local' runs none beside a step", refused.err)
            self.assertIn("orchestrator: docker", refused.err)


if __name__ == "__main__":
    unittest.main()
