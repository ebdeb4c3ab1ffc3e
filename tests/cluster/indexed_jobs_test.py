"""A step with nodes in a queue is one Indexed Job. The Job passes the tests of gang_test.py, in which each node has a Job. The test bed's server, 1.20, has no
Indexed Jobs: support_indexed_jobs.py makes their pods. Nodes, volumes, logs and streams are real."""

import unittest

import gang_test
from support_cluster import kubectl, needs_test_bed
from support_indexed_jobs import IndexedJobs


@needs_test_bed
class IndexedJobsTest(gang_test.NodesTest):
    test_ctrl_c_ends_all_pods = test_another_driver_joins_the_ranks_of_a_killed_one = None  # They take a minute each.

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = IndexedJobs(kubectl)

    def environment(self, env: dict) -> dict:
        return super().environment({**env, "KUBECONFIG": str(self.write("kubeconfig", self.server.kubeconfig))})

    def pipeline(self, steps: dict, docker_settings: dict | None = None, **top):
        self.server.made.clear()
        for step in steps.values():
            if "nodes" in step:
                step["settings"] = {"kubernetes": {"queue_name": "training", "topology": {"preferred": "kubernetes.io/hostname"}}}
        return super().pipeline(steps, docker_settings, **top)

    def tearDown(self):
        for job in self.server.made:
            self.assertGreaterEqual(job["spec"]["completions"], 2)  # A single Job for all nodes.
            self.assertTrue(job["spec"]["suspend"])
        self.assertTrue(self.server.made)
        super().tearDown()


if __name__ == "__main__":
    unittest.main()
