"""Webhooks that the driver of a detached run calls from the cluster."""

import sys
import threading
import unittest

import detach_test
from support_cluster import ROOT, needs_cluster, needs_test_bed, wait_until

sys.path.insert(0, str(ROOT / "tests/e2e"))
from notify_test import Hook  # noqa: E402

BRIDGE = "172.17.0.1"  # This machine as pods reach it.


@needs_cluster
@needs_test_bed
class DetachedNotifications(detach_test.DetachedTest):
    def hook(self) -> Hook:
        hook = Hook(address=BRIDGE)
        threading.Thread(target=hook.serve_forever, daemon=True).start()
        self.addCleanup(hook.server_close)
        self.addCleanup(hook.shutdown)
        return hook

    def test_the_driver_calls_the_webhook_when_the_run_has_ended(self):
        for command, status, code in (("true", "succeeded", 0), ("echo no such column; exit 3", "failed", 3)):
            hook = self.hook()
            self.pipeline({"work": {"command": "sleep 2; " + command}}, notify={"url": {"env": "HOOK"}, "on": ["failed", "succeeded"]})
            run = self.detached(HOOK=hook.url)["run"]
            self.wait_for(status)
            wait_until(lambda: hook.bodies, "the webhook being called")
            ((_, body),) = hook.bodies
            self.assertEqual((body["run"], body["status"]), (run, status))
            if code:
                (failed,) = body["failed"]
                self.assertEqual((failed["step"], failed["message"], failed["details"][0]), ("work", "ended with exit code 3", "no such column"))
            for file in self.folder.rglob("*"):
                if file.is_file() and not file.is_symlink() and file.name != "pipeline.yaml":
                    self.assertNotIn(b"canary-in-the-path", file.read_bytes(), f"{file}: the address is a secret")
            self.assert_nothing_in_the_cluster()


if __name__ == "__main__":
    unittest.main()
