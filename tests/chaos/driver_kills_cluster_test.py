"""The driver (`pipe run`) of a cluster's Jobs is killed, at any moment and at each change of its state: the Jobs continue, the next driver joins them, and no
Job has a second pod."""

import json
import pathlib
import signal
import sys
import unittest

from support_chaos import ChaosTest, Watched, figure, in_words, places, rounds_at

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cluster"))
from support_cluster import ClusterTest, needs_cluster  # noqa: E402


@needs_cluster
class DriverKillsOnACluster(ClusterTest, ChaosTest):
    def write_pipeline(self):
        def step(name: str, work: str, *before: str, **more) -> dict:
            inputs = {each: f"{self.mark}{each}.x" for each in before}
            return {"command": f"sleep 0.3; {work} > ${{outputs.x}}", "outputs": ["x"], **({"inputs": inputs} if inputs else {}), **more}

        self.pipeline({f"{self.mark}a": step("a", "echo ${params.n}", parameters={"n": 0}), f"{self.mark}b": step("b", "cat ${inputs.a}", "a"),
                       f"{self.mark}c": step("c", "cat ${inputs.a}", "a"), f"{self.mark}d": step("d", "cat ${inputs.b} ${inputs.c}", "b", "c")})

    def begin(self, number: int, **env) -> Watched:
        return Watched(self, "run", "pipeline.yaml", "-o", "kubernetes", "--output", "json", "-p", f"{self.mark}a.n={number}", **env)

    def test_no_job_has_a_second_pod_when_drivers_are_killed(self):
        self.write_pipeline()
        rehearsal = self.begin(0, **self.disk())
        self.assertEqual((result := rehearsal.end()).code, 0, result)
        changes, span = len(self.changes()), rehearsal.events[-1]["after"]
        kills, continued = 0, []
        for number, random, place in rounds_at(changes, places("kill", "killed", "torn"), 40, elsewhere=0.5):
            with self.subTest(round=number, place=place):
                before = self.pods_made()
                if place:
                    self.fresh_state()
                    run = self.begin(number, **self.disk(*place))
                else:
                    run = self.begin(number)
                    run.kill_after(random.uniform(0, span))
                in_this, safe = 0, set()
                while (result := run.end()).code == -signal.SIGKILL:
                    in_this += 1
                    safe |= run.steps("step_finished", "succeeded")
                    latest = self.pipe("show", "latest", "--output", "json")
                    goes_on = latest.code == 0 and json.loads(latest.out)["status"] in ("running", "died", "unknown", "interrupted")
                    run = Watched(self, "resume", "--output", "json") if goes_on else self.begin(number)
                    if in_this < 3 and random.random() < 0.4:
                        run.kill_after(random.uniform(0, span))
                self.assertEqual(result.code, 0, result)
                self.assertEqual(run.steps("step_started") & safe, set(), result)
                if in_this:
                    continued.append(run.events[0]["after"])
                kills += in_this
                made = self.pods_made() - before
                self.assertEqual(set(made.values()) - {1}, set(), made)
                self.assertEqual(self.artifact(f"{self.mark}d.x"), f"{number}\n" * 2)
                self.assertEqual(self.jobs(), [])
                self.assert_no_work_left()
                self.assert_database_whole()
        figure("driver_kills_cluster", f"{kills} kills among {changes} changes of the state: no Job had a second pod; the next driver went on after {in_words(continued)}")


del ClusterTest

if __name__ == "__main__":
    unittest.main()
