"""Faults of the API server during a run: restarts, cut connections, a compacted history, a full queue. The run completes, and no step runs twice."""

import unittest

from support_cluster import KUBECONFIG, ClusterTest, needs_cluster, needs_test_bed, test_bed, wait_until


@needs_cluster
@needs_test_bed
class FaultsTest(ClusterTest):
    def setUp(self):
        super().setUp()
        self.write("count.sh", "for i in 1 2 3 4; do echo $1 $i; sleep 1; done; echo $1 > $2\n")

    def run_beside(self, disturb) -> None:
        """Runs nine steps in three rows, calls disturb() once the second row has begun, and checks that each step has run once and has its whole log."""
        steps = {}
        for row in range(3):
            for lane in "abc":
                name = f"{self.mark}{lane}{row}"
                steps[name] = {"command": f"sh count.sh {name} ${{outputs.x}}", "outputs": ["x"], "code": "count.sh"}
                if row:
                    steps[name]["inputs"] = {"before": f"{self.mark}{lane}{row - 1}.x"}
        self.pipeline(steps)
        process = self.start("run", "pipeline.yaml", "-o", "kubernetes", "--output", "json")

        def later():
            wait_until(lambda: len(self.pods_made()) > 3, "a pod of the second row", 240)
            disturb()

        result = self.finish_beside(process, later)
        self.assertEqual(result.code, 0, result)
        self.assertEqual(set(result.steps().values()), {"succeeded"}, result)
        self.assertEqual({event["attempts"] for event in result.events("step_finished")}, {1}, result)
        made = self.pods_made()  # May lack pods: a controller gives up an event that the server refuses too often.
        self.assertEqual(set(made.values()), {1}, made)
        for name in steps:
            self.assertEqual([line for line in self.pipe("logs", "latest", name).out.splitlines() if name in line],
                             [f"{name} {i}" for i in range(1, 5)], "each line of the log once")
        self.assertEqual(self.jobs(), [])

    def answers(self) -> bool:
        """Returns whether the API server is ready."""
        return test_bed("kubectl", "--kubeconfig", KUBECONFIG, "get", "--raw", "/readyz", check=False) == "ok"

    def test_a_run_completes_though_the_api_server_restarts_and_compacts_its_history(self):
        def disturb():
            test_bed("restart-api")
            wait_until(self.answers, "an answer of the API server")
            test_bed("compact")
            test_bed("restart-api")
            test_bed("compact")

        self.run_beside(disturb)

    def test_requests_to_a_server_that_is_too_busy_are_repeated_later(self):
        self.addCleanup(test_bed, "restart-api")

        def disturb():
            test_bed("restart-api", "--enable-priority-and-fairness=false", "--max-requests-inflight=2", "--max-mutating-requests-inflight=1")

        self.run_beside(disturb)


if __name__ == "__main__":
    unittest.main()
