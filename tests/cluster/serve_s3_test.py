"""`pipe serve --bucket` shows runs that drivers in a cluster save to a bucket, to a user who has not started them and cannot reach the cluster."""

import http.client
import json
import pathlib
import sys
import tempfile
import unittest
import urllib.parse

import detach_test
from support_cluster import ROOT, needs_cluster, needs_test_bed, wait_until
from support_s3 import S3Bucket, needs_s3

sys.path.insert(0, str(ROOT / "tests/e2e"))
from support_browser import BROWSER, Browser  # noqa: E402


@needs_cluster
@needs_test_bed
@needs_s3
class ServedFromABucket(S3Bucket, detach_test.DetachedTest):
    def serve(self) -> str:
        """Starts the server as another user, who has the profile, but neither a state folder nor a kubeconfig. Returns its address with the token."""
        self.elsewhere = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        (self.elsewhere / "profiles.yaml").write_text((self.folder / "profiles.yaml").read_text())
        folder, self.folder = self.folder, self.elsewhere
        self.server = self.start("serve", "--port", "0", "--bucket", "lab", KUBECONFIG="/dev/null", PIPE_HOME="", TMPDIR=str(self.elsewhere))
        self.folder = folder
        address = self.server.stdout.readline().strip()
        self.assertTrue(address.startswith("http://127.0.0.1:"), address)
        return address

    def ask(self, address: str, path: str) -> dict:
        """Returns the JSON at a path of the server."""
        parts = urllib.parse.urlsplit(address)
        connection = http.client.HTTPConnection("127.0.0.1", parts.port, timeout=30)
        connection.request("GET", path, headers={"Authorization": "Bearer " + urllib.parse.parse_qs(parts.query)["token"][0]})
        answer = connection.getresponse()
        self.assertEqual(answer.status, 200, path)
        found = json.loads(answer.read())
        connection.close()
        return found

    def test_a_run_is_listed_opened_and_followed(self):
        self.write_chain(3, 1, waits=(0, 2))
        run = self.detached()["run"]
        wait_until(lambda: self.steps()["s0"] == "running", "s0 running")
        before = self.objects()
        address = self.serve()
        (listed,) = self.ask(address, "/api/runs")["runs"]
        self.assertEqual((listed["id"], listed["status"]), (run, "running"))
        self.assertEqual([step["n"] for step in self.ask(address, f"/api/run?run={run}")["steps"]], ["s0", "s1", "s2"])
        self.release_step("s0")
        wait_until(lambda: self.ask(address, f"/api/run?run={run}")["steps"][0]["s"] == "succeeded", "s0 ended, on the page")
        self.assertEqual(self.ask(address, f"/api/log?run={run}&step=s0")["text"], "began\nended\n")
        if BROWSER:
            browser = Browser()
            self.addCleanup(browser.close)
            browser.open(address, "document.querySelector('.badge.s-running')")
            browser.click("table.runs a")
            browser.wait("[...document.querySelectorAll('.badge')].filter((one) => one.textContent === 'succeeded').length >= 2")
            self.assertEqual(browser.complaints, [])
        missing = [name for name in before if name not in self.objects() and not name.startswith("team/pipe/attempts/")]
        self.assertEqual([name for name in missing if "/drivers/" in name], [], "the page only reads the bucket")
        self.server.terminate()
        self.assertEqual(self.finish(self.server).code, 0)
        self.assertEqual([path.name for path in self.elsewhere.iterdir()], ["profiles.yaml"], "nothing is imported")
        self.release_step("s2")
        self.wait_for("succeeded")
        self.assert_nothing_in_the_cluster()

    def test_a_profile_without_a_bucket_and_an_unknown_one_are_errors(self):
        self.assertEqual(self.pipe("serve", "--bucket", "labb").code, 2)
        self.write("profiles.yaml", json.dumps({"lab": {"orchestrator": "local"}}))
        without = self.pipe("serve", "--bucket", "lab")
        self.assertEqual(without.code, 2)
        self.assertIn("the profile 'lab' has no remote store", without.err)


if __name__ == "__main__":
    unittest.main()
