"""Policies of steps (allowed failures, retries, limits, ages of results, answers, published and temporary outputs) in one pipeline on a cluster, through a
bucket."""

import json
import unittest

from support_cluster import ClusterTest, needs_cluster, needs_test_bed
from support_s3 import S3Bucket, needs_s3

A, B, C = (f"align.sample-{sample}.lane-{lane}" for sample, lane in (("a", "01"), ("b", "2"), ("c", "3")))
BEGIN, END = 'echo "begin $(date +%s%N)"', 'echo "end $(date +%s%N)"'
# The first attempt of b ends with 75, which is tried again; c fails for good.
ALIGN = f"""{BEGIN}; sleep 3; {END}
case ${{params.sample}}$PIPE_ATTEMPT in b1) exit 75;; c*) exit 1;; esac
cat ${{inputs.reads}} > ${{outputs.bam}}
echo lane ${{params.lane}} > ${{outputs.stats}}"""


def max_at_once(logs: list[str]) -> int:
    """Returns how many of the programs ran at the same time at most, by the times that they have printed."""
    changes = []
    for log in logs:
        changes += [(int(line.split()[1]), 1 if line.startswith("begin") else -1) for line in log.splitlines() if line.startswith(("begin ", "end "))]
    running = max_running = 0
    for _, change in sorted(changes):
        running += change
        max_running = max(max_running, running)
    return max_running


@needs_cluster
@needs_test_bed
@needs_s3
class PoliciesTest(S3Bucket, ClusterTest):
    def profile(self, **store):
        super().profile(**store)
        profiles = json.loads((self.folder / "profiles.yaml").read_text())
        profiles["lab"]["limits"] = {"license": 1}
        self.write("profiles.yaml", json.dumps(profiles))

    def steps(self, merge: str = "cat ${inputs.bams}/?-* > ${outputs.all}", max_age: str = "1h") -> dict:
        licensed = {"command": f"{BEGIN}; sleep 2; {END}", "uses": {"license": 1}, "cache": {"max_age": max_age}}
        return {
            "align": {"matrix": {"include": "samples.csv"}, "command": ALIGN, "inputs": {"reads": "./data/${params.sample}.txt"},
                      "outputs": {"bam": {"file": "x.bam", "temp": True}, "stats": "stats.txt"}, "publish_to": "./results/${params.sample}",
                      "retry": {"on": ["exit 75"], "max_retries": 1}, "max_parallel": 2, "allow_failure": True},
            "merge": {"command": merge, "inputs": {"bams": {"from": "align[*].bam", "missing": "allow"}}, "outputs": {"all": "all.txt"}, "publish_to": "./results"},
            "one": licensed, "two": licensed | {"environment": {"OTHER": "yes"}},
            "deploy": {"wait": "Deploy?", "command": "cat ${inputs.all}", "inputs": {"all": "merge.all"}},
        }

    def events_until_asked(self, process) -> list[dict]:
        """Returns the events of a run until it waits for an answer."""
        events = []
        for line in process.stdout:
            events.append(json.loads(line))
            if events[-1]["event"] == "step_waits" and events[-1]["reason"] == "an answer: Deploy?":
                return events
        return self.fail(f"it has not asked: {events}")

    def finish_with(self, process, answer: str, code: int) -> dict[str, dict]:
        """Answers the run's question, and returns the event of each step's end. `code` is the expected exit code."""
        events = self.events_until_asked(process)
        self.assertEqual(self.pipe("answer", "latest", "deploy", answer).code, 0)
        ended = self.finish(process, timeout=600)
        self.assertEqual(ended.code, code, ended)
        return {event["step"]: event for event in events + ended.events() if event["event"] == "step_finished"}

    def result(self, name: str) -> str:
        return (self.folder / "results" / name).read_text()

    def log(self, step: str) -> str:
        return self.pipe("logs", "latest", step).out

    def test_all_policies_hold_together_in_pods(self):
        for sample in "abc":
            self.write(f"data/{sample}.txt", f"reads of {sample}\n")
        self.write("samples.csv", "sample,lane\na,01\nb,2\nc,3\n")
        self.pipeline(self.steps())
        words = ("run", "pipeline.yaml", "--orchestrator", "kubernetes", "--jobs", "8", "--output", "json")
        process = self.start(*words, PIPE_GPU_LOCKS=str(self.folder / "locks"))
        events = self.events_until_asked(process)
        attempts = [event["step"] for event in events if event["event"] == "step_started"]
        self.assertEqual([attempts.count(step) for step in (A, B, C)], [1, 2, 1], "only what ends with 75 is tried again")
        process.kill()
        process.wait()
        ended = self.finish_with(self.start("resume", "latest", "--output", "json"), "yes", 0)
        self.assertEqual(ended["deploy"]["status"], "succeeded", ended)
        self.check_the_first_run()
        self.write("data/b.txt", "other reads\n")
        self.pipeline(self.steps(merge="cat ${inputs.bams}/?-* | tr a-z A-Z > ${outputs.all}"))
        ended = self.finish_with(self.start(*words), "no", 1)
        statuses = {name: event["status"] for name, event in ended.items()}
        self.assertEqual(statuses, {A: "cached", B: "succeeded", C: "failed", "merge": "succeeded", "one": "cached", "two": "cached", "deploy": "failed"},
                         "the temporary output of A comes from the bucket, B has another input")
        self.assertIn("was rejected by", ended["deploy"]["failure"]["message"])
        self.assertEqual(self.result("all.txt"), "READS OF A\nOTHER READS\n")
        self.assertEqual(self.jobs(), [])
        self.assert_nothing_left()

    def check_the_first_run(self):
        steps = {step["step"]: step for step in json.loads(self.pipe("show", "latest", "--output", "json").out)["steps"]}
        self.assertEqual({name: step["status"] for name, step in steps.items()},
                         {A: "succeeded", B: "succeeded", C: "failed", "merge": "succeeded", "one": "succeeded", "two": "succeeded", "deploy": "succeeded"})
        self.assertEqual(len(steps[C]["attempts"]), 2, "a resumed run tries again what has failed")
        self.assertEqual((self.result("a/stats.txt"), self.result("b/stats.txt")), ("lane 01\n", "lane 2\n"))
        self.assertEqual(sorted(file.name for file in (self.folder / "results").rglob("*")), ["a", "all.txt", "b", "stats.txt", "stats.txt"])
        self.assertEqual(self.result("all.txt"), "reads of a\nreads of b\n")
        self.assertIn("temporary, removed", self.pipe("artifacts", "latest").out)
        self.assertLessEqual(max_at_once([self.log(name) for name in (A, B, C)]), 2)
        self.assertEqual(max_at_once([self.log("one"), self.log("two")]), 1)
        self.assertEqual(self.plan()["one"]["action"], "reuse")
        self.pipeline(self.steps(max_age="1s"))
        plan = self.plan()
        self.assertEqual(plan["one"]["changes"], ["its earlier result is older than `max_age: 1.0s`"])
        self.assertEqual([plan[name]["action"] for name in (A, B, C, "merge", "two")], ["depends", "depends", "run", "depends", "run"], plan)


if __name__ == "__main__":
    unittest.main()
