"""Three of ten calls of the API server are answered 429, 500 or 503, cut, lost or never answered: the run completes, and no Job has a second pod."""

import base64
import collections
import json
import pathlib
import socket
import ssl
import sys
import unittest
import urllib.parse

from faulty_proxy import FaultyProxy, chosen
from support_chaos import ChaosTest, Watched, figure, rounds

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cluster"))
from support_cluster import ClusterTest, kubectl, needs_cluster  # noqa: E402


@needs_cluster
class FaultyApiServer(ClusterTest, ChaosTest):
    def begin_proxy(self, random) -> FaultyProxy:
        """Starts a proxy before the API server, which it reaches with the kubeconfig's certificate, and a kubeconfig that names the proxy, without TLS."""
        config = json.loads(kubectl("config", "view", "--raw", "--minify", "--flatten", "-o", "json"))
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        if "client-certificate-data" not in user:
            self.skipTest("this kubeconfig has no client certificate")
        context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        pair = self.write("client.pem", base64.b64decode(user["client-certificate-data"]).decode() + base64.b64decode(user["client-key-data"]).decode())
        context.load_cert_chain(pair)
        server = urllib.parse.urlsplit(cluster["server"])

        def connect():
            return context.wrap_socket(socket.create_connection((server.hostname, server.port or 443)), server_hostname=server.hostname)

        listener = socket.create_server(("127.0.0.1", 0))
        proxy = FaultyProxy(listener, connect, chosen(random, answered=lambda method, target: "/log?" in target))
        self.addCleanup(proxy.end)
        config["clusters"][0]["cluster"] = {"server": f"http://127.0.0.1:{listener.getsockname()[1]}"}
        config["users"][0]["user"] = {"token": "of-no-use"}
        self.kubeconfig = str(self.write("kubeconfig", json.dumps(config)))
        return proxy

    def test_a_run_completes_though_three_of_ten_calls_fail(self):
        def step(work: str, **more) -> dict:
            return {"command": f"for i in 1 2 3; do echo line $i; sleep 0.1; done; {work} > ${{outputs.x}}", "outputs": ["x"], **more}

        a, b, c = (f"{self.mark}{letter}" for letter in "abc")
        self.pipeline({a: step("echo ${params.n}", parameters={"n": 0}), b: step("cat ${inputs.x}", inputs={"x": f"{a}.x"}), c: step("cat ${inputs.x}", inputs={"x": f"{a}.x"})})
        calls, faults, count, took = 0, collections.Counter(), 0, []
        for number, random in rounds(20):
            with self.subTest(round=number):
                before = self.pods_made()
                proxy = self.begin_proxy(random)
                run = Watched(self, "run", "pipeline.yaml", "-o", "kubernetes", "--output", "json", "-p", f"{a}.n={number}", KUBECONFIG=self.kubeconfig,
                              PIPE_SERVER_TIMEOUT="3s")
                result = run.end()
                proxy.end()
                calls += len(proxy.asked)
                faults.update(proxy.faults)
                self.assertEqual(result.code, 0, result)
                self.assertEqual({event["attempts"] for event in result.events("step_finished")}, {1}, result)
                made = self.pods_made() - before
                self.assertEqual((len(made), set(made.values())), (3, {1}), made)
                for name in (a, b, c):
                    self.assertEqual(self.pipe("logs", "latest", name).out.split("\n")[:3], ["line 1", "line 2", "line 3"])
                self.assertEqual(self.artifact(f"{c}.x"), f"{number}\n")
                self.assertEqual(self.jobs(), [])
                self.assert_nothing_left()
                took.append(run.events[-1]["after"])
                count += 1
        figure("faulty_cluster", f"{count} runs completed, {sum(faults.values())} of {calls} calls failed ({dict(faults)}), {max(took):.0f} s at most")


del ClusterTest

if __name__ == "__main__":
    unittest.main()
