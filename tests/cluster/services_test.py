"""Services of a step in its pod: the step reaches them by their names, they are ready before it starts, and they end with it even without a driver."""

import json
import os
import signal
import unittest

from support_cluster import ClusterTest, kubectl, needs_cluster, needs_test_bed, wait_until
from support_s3 import S3Bucket, needs_s3

PARENT = "python:3.11-slim-bookworm"
SERVE = "import http.server, os\nos.chdir('/tmp')\nopen('index.html', 'w').write(open(os.environ['PIPE_INPUT_MODEL']).read() + os.environ['TOKEN'])\n" \
        "print('serves', flush=True)\nhttp.server.test(http.server.SimpleHTTPRequestHandler, port=8000)\n"
ASK = ["python3", "-c", "import urllib.request; print(urllib.request.urlopen('http://web:8000/').read().decode().replace('hush', 'known'))"]
# A server that ends when it is asked to, and a step that asks it and runs on.
ENDS = """
import http.server, os
class Handler(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        if self.path == '/end':
            print('disk full', flush=True)
            os._exit(4)
        super().do_GET()
http.server.HTTPServer(('', 8000), Handler).serve_forever()
"""
END_IT = ["python3", "-c", "import time, urllib.request\ntry: urllib.request.urlopen('http://db:8000/end')\nexcept OSError: pass\ntime.sleep(600)"]


def web(**more) -> dict:
    """Returns a service that is an HTTP server. `more` replaces keys of the service."""
    return {"image": PARENT, "command": ["python3", "-u", "-m", "http.server", "8000"], "ready": {"port": 8000, "http": "/"}, **more}


class Reached:
    def log(self, step: str) -> str:
        return self.pipe("logs", "latest", step).out

    def test_a_step_reaches_its_service(self):
        self.write("serve.py", SERVE)
        self.pipeline({
            "train": {"command": "echo trained > ${outputs.model}", "outputs": ["model"]},
            "ask": {"command": ASK, "inputs": {"model": "train.model"}, "code": ["serve.py"], "secrets": ["TOKEN"],
                    "services": {"web": web(command=["python3", "/pipe/code/serve.py"], environment={"TOKEN": None}),
                                 "second": {"image": PARENT, "command": ["sleep", "600"],
                                            "ready": {"command": ["python3", "-c", "import socket; socket.create_connection(('web', 8000))"]}}}},
        }, {"parent_image": PARENT})
        self.run_pipe(TOKEN="hush")
        own = [line for line in self.log("ask").splitlines() if not line.startswith("[")]  # A line of a service may come between two of the step.
        self.assertIn("trained\nknown", "\n".join(own))
        self.assertIn("[web] serves", self.log("ask"))
        self.assertEqual(self.jobs(), [])
        self.assertNotIn("Traceback", self.log("ask"), "the check whether the service is ready reads the whole answer")
        self.assertEqual(self.run_pipe(TOKEN="hush").steps()["ask"], "cached")


@needs_cluster
@needs_test_bed
@needs_s3
class ThroughABucket(Reached, S3Bucket, ClusterTest):
    pass


@needs_cluster
class ServicesTest(Reached, ClusterTest):
    def pods(self) -> list[dict]:
        return json.loads(kubectl("get", "pods", "-l", f"pipe.pipeline={self.mark}", "-o", "json"))["items"]

    def test_a_service_that_is_not_ready_or_ends_fails_the_step(self):
        def service(text: str, **more) -> dict:
            return {"db": web(command=["python3", "-u", "-c", text], **more)}

        self.pipeline({
            "slow": {"command": "echo never", "services": service("print('loading'); import time; time.sleep(600)", ready={"port": 8000, "timeout": "3s"})},
            "early": {"command": "echo never", "services": service("print('no password'); exit(3)")},
            "late": {"command": END_IT, "services": service(ENDS)},
        }, {"parent_image": PARENT})
        result = self.run_pipe(code=1)
        slow, early, late = (result.failure(step) for step in ("slow", "early", "late"))
        self.assertIn("was not ready within 3.0s", slow["message"])
        self.assertIn("ended with exit code 3 before it was ready", early["message"])
        self.assertIn("[db] no password", early["details"])
        self.assertIn("ended with exit code 4", late["message"])
        self.assertIn("[db] disk full", late["details"])
        self.assertEqual(self.jobs(), [])

    def test_two_services_with_one_port_are_refused_before_the_run(self):
        self.pipeline({"ask": {"command": "true", "services": {"web": web(), "other": web()}}})
        refused = self.pipe("run", "pipeline.yaml", "--orchestrator", "kubernetes")
        self.assertEqual(refused.code, 2, refused)
        self.assertRegex(refused.err, r"pipeline.yaml:\d+:\d+: error: step 'ask': the services 'other' and 'web' have the same port 8000, and in a pod all services share one network")

    def test_services_end_with_the_step_of_a_killed_driver(self):
        self.pipeline({"ask": {"command": "echo begun; until [ -e /tmp/go ]; do sleep 0.1; done; echo made > ${outputs.o}", "outputs": ["o"], "services": {"web": web()}}})
        process = self.start("run", "pipeline.yaml", "--orchestrator", "kubernetes")
        wait_until(lambda: "begun" in self.log("ask"), "a first line of the step")
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        (pod,) = self.pods()
        self.release_pod("pod/" + pod["metadata"]["name"])
        wait_until(lambda: all(pod["status"]["phase"] in ("Failed", "Succeeded") for pod in self.pods()), "the end of all containers of the pod")
        resumed = self.pipe("resume", "latest", "--output", "json")
        self.assertEqual(resumed.code, 0, resumed)
        self.assertEqual(self.artifact("ask.o"), "made\n")


if __name__ == "__main__":
    unittest.main()
