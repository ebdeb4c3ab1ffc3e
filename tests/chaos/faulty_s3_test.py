"""Three of ten calls of the bucket are answered 429, 500 or 503, cut, lost or never answered: the run completes, and another machine reuses all of it."""

import collections
import socket
import unittest

from support_chaos import ChaosTest, Watched, figure, rounds

from faulty_proxy import FaultyProxy, chosen
from support_s3 import S3, S3Bucket, needs_s3  # beside support.py

STEPS = {
    "load": {"command": "seq ${params.n} 20000 > ${outputs.text}; mkdir -p ${outputs.many}/deep; echo ${params.n} > ${outputs.many}/deep/1; ln -s deep/1 ${outputs.many}/link",
             "outputs": ["text", "many"], "parameters": {"n": 0}},
    "fan": {"matrix": {"x": [1, 2]}, "command": "{ cat ${inputs.text}; echo ${params.x}; } > ${outputs.y}", "inputs": {"text": "load.text"}, "outputs": ["y"]},
    "end": {"command": "cat ${inputs.ys}/*fan* ${inputs.many}/link > ${outputs.all}", "inputs": {"ys": "fan[*].y", "many": "load.many"}, "outputs": ["all"]},
}


@needs_s3
class FaultyBucket(S3Bucket, ChaosTest):
    orchestrator = "local"

    def begin_proxy(self, random) -> FaultyProxy:
        address = S3["PLAIN"].removeprefix("http://").rstrip("/")
        host, port = address.rsplit(":", 1)
        listener = socket.create_server((host, 0))
        proxy = FaultyProxy(listener, lambda: socket.create_connection((host, int(port))), chosen(random))
        proxy.url = f"http://{host}:{listener.getsockname()[1]}"
        self.addCleanup(proxy.end)
        return proxy

    def run_on(self, machine: str, number: int):
        """Runs the pipeline with the state folder of a machine. Returns the watched command and its Result."""
        self.state = self.folder / machine
        run = Watched(self, "run", "pipeline.yaml", "--output", "json", "-p", f"load.n={number}", PIPE_SERVER_TIMEOUT="3s")
        result = run.end()
        self.assertEqual(result.code, 0, result)
        return run, result

    def test_a_run_and_its_reuse_complete_though_three_of_ten_calls_fail(self):
        self.pipeline(STEPS)
        calls, faults, count, took, notices = 0, collections.Counter(), 0, [], 0
        for number, random in rounds(40):
            with self.subTest(round=number):
                proxy = self.begin_proxy(random)
                self.profile(endpoint=proxy.url)
                _, made = self.run_on(f"here{number}", number)
                self.assertEqual(set(made.steps().values()), {"succeeded"}, made)
                run, reused = self.run_on(f"there{number}", number)
                self.assertEqual(set(reused.steps().values()), {"cached"}, reused)
                notices += len([event for event in made.events("notice") + reused.events("notice") if "s3://" in event["text"]])
                proxy.end()
                calls += len(proxy.asked)
                faults.update(proxy.faults)
                took.append(run.events[-1]["after"])
                for machine in ("here", "there"):
                    self.state = self.folder / f"{machine}{number}"
                    self.assertEqual(self.pipe("verify").code, 0)
                    self.assert_nothing_left()
                count += 1
        self.assertEqual(notices, 0)
        self.assertGreater(sum(faults.values()), 0)
        figure("faulty_s3", f"{count} times a run and its reuse on another machine completed, {sum(faults.values())} of {calls} calls failed ({dict(faults)}), "
               f"{max(took):.0f} s at most")


if __name__ == "__main__":
    unittest.main()
