"""Conditions, `run_on` and inputs from outside of the pipeline, on a cluster with shared files and through a bucket."""

import hashlib
import http.server
import threading
import unittest

from support_cluster import ClusterTest, needs_cluster, needs_test_bed
from support_s3 import S3Bucket, needs_s3


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.server.content)))
        self.end_headers()
        self.wfile.write(self.server.content)

    def log_message(self, *_):
        pass


class Workflows:
    def test_conditions_decide_by_what_pods_have_written(self):
        self.pipeline({
            "evaluate": {"command": "echo '{\"accuracy\": ${params.accuracy}}' > ${outputs.metrics}", "outputs": {"metrics": "metrics.json"}, "parameters": {"accuracy": 0.95}},
            "deploy": {"command": "echo deployed", "when": "${evaluate.metrics.accuracy} > 0.9"},
            "again": {"command": "echo again", "when": "${evaluate.metrics.accuracy} <= 0.9"},
            "after": {"command": "echo after", "after": ["again"]},
            "tell": {"command": "echo told", "run_on": "failure", "after": ["deploy"]},
            "tidy": {"command": "echo tidy", "run_on": "always", "after": ["deploy", "again"]}})
        steps = self.run_pipe().steps()
        self.assertEqual(steps, {"evaluate": "succeeded", "deploy": "succeeded", "again": "skipped", "after": "skipped", "tell": "skipped", "tidy": "succeeded"})
        steps = self.run_pipe("-p", "evaluate.accuracy=0.5").steps()
        self.assertEqual((steps["deploy"], steps["again"], steps["after"]), ("skipped", "succeeded", "succeeded"))

    def test_a_failure_starts_the_steps_with_run_on_failure(self):
        self.pipeline({"work": {"command": "exit 3"}, "next": {"command": "true", "after": ["work"]},
                       "tell": {"command": "echo told > ${outputs.x}", "run_on": "failure", "outputs": ["x"]},
                       "tidy": {"command": "echo tidy > ${outputs.x}", "run_on": "always", "outputs": ["x"]}})
        self.assertEqual(self.run_pipe(code=1).steps(), {"work": "failed", "next": "skipped", "tell": "succeeded", "tidy": "succeeded"})
        self.assertEqual(self.artifact("tell.x") + self.artifact("tidy.x"), "told\ntidy\n")

    def test_data_from_outside_reaches_pods_and_is_in_the_key(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        server.content = b"from a server\n" * 1000
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.write("corpus/a.txt", "a\n")
        self.write("corpus/deep/b.txt", "b\n")
        self.write("labels.csv", "labels\n")
        address = {"url": f"http://127.0.0.1:{server.server_port}/base", "sha256": hashlib.sha256(server.content).hexdigest()}
        self.pipeline({"use": {"command": "cat ${inputs.corpus}/a.txt ${inputs.corpus}/deep/b.txt ${inputs.labels} ${inputs.base} > ${outputs.all};"
                                          " ! touch ${inputs.corpus}/x",
                               "inputs": {"corpus": "./corpus", "labels": {"path": "labels.csv"}, "base": address}, "outputs": ["all"]}})
        self.assertEqual(self.run_pipe().steps(), {"use": "succeeded"})
        self.assertEqual(self.artifact("use.all"), "a\nb\nlabels\n" + server.content.decode())
        self.assertEqual(self.run_pipe().steps(), {"use": "cached"})
        self.write("corpus/deep/b.txt", "c\n")
        self.assertEqual(self.run_pipe().steps(), {"use": "succeeded"})
        self.assertEqual(self.artifact("use.all"), "a\nc\nlabels\n" + server.content.decode())


@needs_cluster
@needs_test_bed
class ThroughSharedFiles(Workflows, ClusterTest):
    pass


@needs_cluster
@needs_test_bed
@needs_s3
class ThroughABucket(Workflows, S3Bucket, ClusterTest):
    pass


if __name__ == "__main__":
    unittest.main()
