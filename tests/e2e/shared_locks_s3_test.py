"""Two machines with one bucket share a result if their locks are equal, and do not if they differ. A machine is simulated by a state folder and a lock."""

import json
import unittest

from lock_test import LockTest
from support_s3 import S3Bucket, needs_s3


class Machines(LockTest):
    """Tests of a pipeline that requires `top`, which two_locks() locks to two versions."""

    def on(self, machine: str, lock: str = ""):
        """Continues as another machine, with this content of pipeline.lock; without the file if `lock` is empty."""
        self.state = self.folder / machine
        (self.folder / "pipeline.lock").unlink(missing_ok=True)
        if lock:
            self.write("pipeline.lock", lock)

    def declare(self, *requirements, **settings):
        super().declare(*requirements, **settings)
        document = json.loads((self.folder / "pipeline.yaml").read_text())
        document["steps"]["one"].update(command="python3 show.py > ${outputs.versions}", outputs=["versions"])
        self.write("pipeline.yaml", json.dumps(document))

    def lock_now(self) -> str:
        """Returns the content of a new lock with the newest versions."""
        locked = self.pipe("lock", "pipeline.yaml", "--orchestrator", self.orchestrator, "--upgrade")
        self.assertEqual(locked.code, 0, locked)
        return self.lock()

    def two_locks(self) -> tuple[str, str]:
        """Returns the contents of two locks, the second with newer versions."""
        self.on("here")
        self.declare("top")
        first = self.lock_now()
        self.newer_versions()
        self.on("there")
        second = self.lock_now()
        self.assertNotEqual(first, second)
        return first, second


@needs_s3
class OnDocker(S3Bucket, Machines):
    def test_machines_that_locked_differently_share_no_result(self):
        first, second = self.two_locks()
        self.on("here", first)
        self.assertEqual(self.run_pipe("--locked").steps(), {"one": "succeeded"})
        self.assertIn("('top', '1.0')", self.artifact("one.versions"))
        self.on("there", second)
        self.assertEqual(self.run_pipe("--locked").steps(), {"one": "succeeded"})
        self.assertIn("('top', '1.1')", self.artifact("one.versions"))
        self.on("elsewhere", first)
        self.assertEqual(self.run_pipe("--locked").steps(), {"one": "cached"})
        self.assertIn("('top', '1.0')", self.artifact("one.versions"))


@needs_s3
class OnLocal(OnDocker):
    orchestrator = "local"


class OnKubernetes(Machines):
    """The locks are made on `docker`; on Kubernetes there are only plans, which have the step's key and need no cluster."""

    def environment(self, env: dict) -> dict:
        cluster = {"clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}], "users": [{"name": "u", "user": {"token": "t"}}],
                   "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}], "current-context": "x"}
        return super().environment({"KUBECONFIG": str(self.write("kubeconfig", json.dumps(cluster))), **env})

    def key(self, lock: str) -> str:
        self.on("here", lock)
        planned = self.pipe("plan", "pipeline.yaml", "--orchestrator", "kubernetes", "--locked", "--output", "json")
        self.assertEqual(planned.code, 0, planned)
        return json.loads(planned.out)["steps"][0]["key"]

    def test_a_lock_is_a_part_of_the_key(self):
        first, second = self.two_locks()
        self.assertEqual(self.key(first), self.key(first))
        self.assertNotEqual(self.key(first), self.key(second))


if __name__ == "__main__":
    unittest.main()
