"""Detached runs, whose driver (the process that executes the run) is a pod of the cluster: they outlive their terminal and the driver's pod, and can be stopped
from outside."""

import hashlib
import json
import os
import pathlib
import signal
import subprocess
import unittest

from support_cluster import NamespaceTest, needs_cluster, needs_test_bed, wait_until


class DetachedTest(NamespaceTest):
    """A test whose namespace has the service account of drivers with its rights."""

    def setUp(self):
        super().setUp()
        self.grant()

    def grant(self):
        role = self.pipe("kubernetes", "rbac", "--namespace", self.namespace, "--subject", "ServiceAccount:pipe")
        self.in_namespace("apply", "-f", "-", input=role.out)

    def write_chain(self, length: int = 3, seconds: float = 1.5, waits: tuple = (), **more) -> list[str]:
        """Writes a pipeline of steps that run one after the other and output the name of their pod, and returns the steps' names. Steps whose numbers, from 0,
        are in `waits` end once the test calls release_step(). `more` has further keys of each step."""
        steps = {}
        for number in range(length):
            before = {} if number == 0 else {"inputs": {"before": f"s{number - 1}.pod"}}
            pause = "until [ -e /tmp/go ]; do sleep 0.1; done" if number in waits else f"sleep {seconds}"
            steps[f"s{number}"] = {"command": f"echo began; {pause}; cat /etc/hostname > ${{outputs.pod}}; echo ended", "outputs": ["pod"], **before, **more}
        self.pipeline(steps)
        return list(steps)

    def release_step(self, step: str):
        shown = ("get", "pods", "-l", f"pipe.step={step}", "--field-selector", "status.phase=Running", "-o", "name")
        (pod,) = wait_until(lambda: self.in_namespace(*shown).split(), f"a pod of {step}")
        self.release_pod(pod, "-n", self.namespace)

    def detach(self, *words, code: int = 0, **env):
        """Executes `pipe run --detach`, and returns its Result. `code` is the expected exit code."""
        result = self.pipe("run", "pipeline.yaml", "-o", "kubernetes", "--namespace", self.namespace, "--detach", "--output", "json", *words, **env)
        self.assertEqual(result.code, code, result)
        return result

    def detached(self, *words, **env) -> dict:
        """Detaches a run, and returns the event that names the run and its driver."""
        (event,) = self.detach(*words, **env).events("detached")
        return event

    def show(self, run: str = "latest") -> dict:
        result = self.pipe("show", run, "--output", "json")
        self.assertEqual(result.code, 0, result)
        return json.loads(result.out)

    def status(self) -> str:
        return self.show()["status"]

    def wait_for(self, status: str):
        wait_until(lambda: self.status() == status, f"the run being {status}: {self.pipe('show').out}")

    def steps(self) -> dict[str, str]:
        return {step["step"]: step["status"] for step in self.show()["steps"]}

    def cluster_objects(self) -> list[str]:
        """Returns this test's objects that are not being deleted."""
        items = json.loads(self.in_namespace("get", "jobs,pods,leases,secrets", "-o", "json"))["items"]
        return [f"{item['kind']} {item['metadata']['name']}" for item in items
                if item["metadata"]["name"].startswith("pipe-") and "token" not in item["metadata"]["name"] and "deletionTimestamp" not in item["metadata"]]

    def driver_pods(self) -> list[dict]:
        """Returns the pods of drivers that wait or run."""
        return [pod for pod in json.loads(self.in_namespace("get", "pods", "-l", "pipe.driver", "-o", "json"))["items"]
                if "deletionTimestamp" not in pod["metadata"] and pod["status"]["phase"] in ("Pending", "Running")]

    def lose_driver_twice(self):
        """Deletes the driver's pod while the step s0 runs, and kills the container of the next pod while s2 runs. Both steps end only afterwards."""
        wait_until(lambda: self.steps()["s0"] == "running", "s0 running")
        (pod,) = self.driver_pods()
        self.in_namespace("delete", "pod", "--wait=false", pod["metadata"]["name"])
        self.assertIn("running", self.pipe("runs").out, "between two of its pods, too")
        self.release_step("s0")
        wait_until(lambda: self.steps()["s2"] == "running", "s2 running")
        # The kubelet reports a container's ID some time after the container has started.
        containers = lambda: [status.get("containerID", "") for pod in self.driver_pods() for status in pod["status"].get("containerStatuses", [])]
        container = wait_until(lambda: "".join(containers()[:1]), "the container's name").removeprefix("docker://")
        subprocess.run(["docker", "kill", "--signal", "KILL", container], check=True, stdout=subprocess.DEVNULL)
        self.release_step("s2")

    def assert_each_step_had_one_pod(self, steps: list[str]):
        """Fails if the cluster's events say that a step has had more than one pod."""
        made = {}
        for event in json.loads(self.in_namespace("get", "events", "--field-selector", "reason=SuccessfulCreate,involvedObject.kind=Job", "-o", "json"))["items"]:
            name = event["involvedObject"]["name"]
            made[name] = made.get(name, 0) + (event.get("count") or 1)
        for step in steps:
            self.assertEqual([count for name, count in made.items() if name.startswith(f"pipe-{step}-")], [1], made)

    def assert_nothing_in_the_cluster(self):
        wait_until(lambda: self.cluster_objects() == [], f"the cluster being as before: {self.cluster_objects()}")
        self.assert_nothing_left()


class StopsAnywhere:
    """A mixin before DetachedTest: tests that hold with shared files and with a bucket."""

    def test_a_run_that_is_cancelled_from_outside_leaves_nothing(self):
        self.write_chain(3, 30)
        self.detached()
        wait_until(lambda: self.steps()["s0"] == "running", "s0 running")
        result = self.pipe("cancel", "latest")
        self.assertEqual(result.code, 0, result)
        self.assertIn("interrupted (stopped)", result.out)
        self.assertEqual(set(self.steps().values()), {"cancelled"})
        self.assert_nothing_in_the_cluster()

    def test_attach_shows_what_a_driver_there_does(self):
        steps = self.write_chain(2)
        run = self.detached()["run"]
        followed = self.start("logs", run, "s1", "-f")
        result = self.pipe("attach", run, "--output", "json")
        self.assertEqual(result.code, 0, result)
        self.assertEqual(self.finish(followed).out, "began\nended\n")
        self.assertEqual(result.steps(), dict.fromkeys(steps, "succeeded"))
        self.assertEqual([event["line"] for event in result.events("step_log") if event["step"] == "s1"], ["began", "ended"])
        self.assertEqual((result.events()[0]["event"], result.events()[-1]["event"]), ("run_started", "summary"))
        ended = self.pipe("attach")
        self.assertEqual(ended.code, 0, ended)
        self.assertIn("2 succeeded", ended.out)

    def test_a_run_whose_drivers_job_was_deleted_is_resumed_at_the_terminal(self):
        steps = self.write_chain(3, 1, waits=(1,))
        event = self.detached()
        wait_until(lambda: self.steps()["s1"] == "running", "s1 running")
        refused = self.pipe("resume")
        self.assertEqual(refused.code, 2, refused)
        self.assertIn(f"is still running: the Job {event['driver']['job']} in the namespace {self.namespace} drives it", refused.err)
        self.in_namespace("delete", "job", event["driver"]["job"])
        self.assertIn("died", self.pipe("runs").out)
        resuming = self.start("resume", "--output", "json")
        self.wait_for("running")
        self.release_step("s1")
        resumed = self.finish(resuming)
        self.assertEqual(resumed.code, 0, resumed)
        self.assertEqual(self.steps(), {step: "succeeded" for step in steps})
        self.assert_each_step_had_one_pod(steps)
        self.assert_nothing_in_the_cluster()


@needs_cluster
@needs_test_bed
class GoesOnTest(DetachedTest):
    def test_the_driver_has_included_files_and_expands_the_graph(self):
        self.write("shared/common.yaml", "steps:\n  make: {command: 'sh make.sh ${outputs.list} ${outputs.n}', outputs: {list: list.json, n: n}}\n")
        self.write("shared/make.sh", "echo '[\"a\", \"b\"]' > $1; echo 0 > $2\n")
        self.pipeline({
            "work": {"matrix": {"item": "${c-make.list[*]}"}, "command": "echo ${params.item} > ${outputs.made}", "outputs": ["made"]},
            "count": {"repeat": {"until": "${count.n} >= 2", "max": 5}, "command": "n=$(cat ${inputs.n}); echo $((n + 1)) > ${outputs.n}",
                      "inputs": {"n": {"first": "c-make.n", "then": "count.n"}}, "outputs": ["n"]},
            "all": {"command": "cat ${inputs.parts}/*-work* ${inputs.n} > ${outputs.text}", "inputs": {"parts": "work[*].made", "n": "count.n"}, "outputs": ["text"]},
        }, include=[{"file": "shared/common.yaml", "prefix": "c"}])
        self.detached()
        self.write("shared/make.sh", "exit 1\n")  # The driver uses a copy of the file as it was.
        self.wait_for("succeeded")
        self.assertEqual(self.steps(), dict.fromkeys(("c-make", "work.item-a", "work.item-b", "count.round-0", "count.round-1", "all"), "succeeded"))
        self.assertEqual(self.artifact("all.text"), "a\nb\n2\n")
        self.assert_nothing_in_the_cluster()

    def test_run_completes_without_its_terminal(self):
        steps = self.write_chain()
        process = self.start("run", "pipeline.yaml", "-o", "kubernetes", "--namespace", self.namespace, "--detach", "--output", "json")
        wait_until(lambda: self.driver_pods(), "a driver")
        process.send_signal(signal.SIGKILL)
        process.communicate()
        self.wait_for("succeeded")
        self.assertEqual(self.steps(), {step: "succeeded" for step in steps})
        self.assertIn("pipe-s2-", self.artifact("s2.pod"), "the pod's own name")
        self.assert_each_step_had_one_pod(steps)
        self.assert_nothing_in_the_cluster()
        # A run with its driver on this machine reuses the steps, because their keys are the same.
        again = self.run_pipe("--namespace", self.namespace)
        self.assertEqual(again.steps(), {step: "cached" for step in steps})

    def test_a_step_of_a_detached_run_has_its_services(self):
        serve = ["python3", "-u", "-m", "http.server", "8000"]
        image = "python:3.11-slim-bookworm"
        self.pipeline({"ask": {"command": ["python3", "-c", "import urllib.request; print(urllib.request.urlopen('http://web:8000/').status)"],
                               "services": {"web": {"image": image, "command": serve, "ready": {"port": 8000}}}}}, {"parent_image": image})
        self.detached()
        self.wait_for("succeeded")
        log = self.pipe("logs", "latest", "ask").out
        self.assertRegex(log, "(?m)^200$")
        self.assertIn("[web] ", log)
        self.assert_nothing_in_the_cluster()

    def test_run_completes_though_its_driver_is_deleted_and_then_killed(self):
        steps = self.write_chain(4, 1, waits=(0, 2))
        event = self.detached()
        self.assertTrue(event["driver"]["holder"].startswith(event["driver"]["job"]), event)
        self.lose_driver_twice()
        self.wait_for("succeeded")
        self.assertEqual(self.steps(), {step: "succeeded" for step in steps})
        self.assert_each_step_had_one_pod(steps)
        self.assert_nothing_in_the_cluster()

    def test_the_lease_of_a_driver_is_removed_with_its_job(self):
        steps = self.write_chain(2, 1, waits=(0,))
        job = self.detached()["driver"]["job"]
        wait_until(lambda: self.steps()["s0"] == "running", "s0 running")

        def owners() -> list:
            found = self.in_namespace("get", "lease", job, "--ignore-not-found", "-o", "json")
            return [(owner["kind"], owner["name"]) for owner in json.loads(found)["metadata"].get("ownerReferences", [])] if found else []

        self.assertEqual(owners(), [("Job", job)])
        self.in_namespace("delete", "lease", job)
        wait_until(lambda: owners() == [("Job", job)], "a Lease of the driver's own")
        self.in_namespace("delete", "job", job, "--wait=false")
        self.in_namespace("delete", "pod", "-l", "pipe.driver", "--wait=false", "--grace-period=0", "--force")
        wait_until(lambda: not self.in_namespace("get", "lease", job, "--ignore-not-found", "-o", "json"), "the Lease having gone")
        resuming = self.start("resume", "--output", "json")
        self.wait_for("running")
        self.release_step("s0")
        resumed = self.finish(resuming)
        self.assertEqual(resumed.code, 0, resumed)
        self.assert_each_step_had_one_pod(steps)
        self.assert_nothing_in_the_cluster()

    def test_files_variables_and_secrets_are_those_of_the_runs_start_and_secrets_are_in_no_file(self):
        self.write("say.sh", "echo first\n")
        self.write("lib/words.txt", "second\n")
        self.write("password", "from-a-file\n")
        self.pipeline({"show": {"command": 'echo "$COLOUR $(printf %s "$TOKEN$PASSWORD" | sha256sum)" > ${outputs.seen}; sleep 2',
                                "environment": {"COLOUR": None}, "secrets": ["TOKEN", {"name": "PASSWORD", "file": "password"}], "outputs": ["seen"]},
                       "say": {"command": "sh say.sh > ${outputs.said}; cat lib/words.txt >> ${outputs.said}", "inputs": {"seen": "show.seen"},
                               "outputs": ["said"]}})
        self.detached(COLOUR="blue", TOKEN="hush-hush")
        self.write("say.sh", "echo other\n")
        (self.folder / "lib/words.txt").unlink()
        (self.folder / "pipeline.yaml").write_text("changed")
        self.wait_for("succeeded")
        self.assertEqual(self.artifact("say.said"), "first\nsecond\n")
        self.assertEqual(self.artifact("show.seen"), f"blue {hashlib.sha256(b'hush-hushfrom-a-file').hexdigest()}  -\n")
        told = [file for file in self.state.rglob("*") if file.is_file() for word in (b"hush-hush", b"from-a-file") if word in file.read_bytes()]
        self.assertEqual(told, [])
        self.assert_nothing_in_the_cluster()

    def test_a_detached_run_shares_its_state_through_a_claim(self):
        shared = self.folder / "shared"
        shared.mkdir()
        self.state = shared / "pipe"
        volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"v{self.mark}"},
                  "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"], "storageClassName": self.mark, "hostPath": {"path": str(shared)}}}
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "artifacts"},
                 "spec": {"accessModes": ["ReadWriteMany"], "storageClassName": self.mark, "resources": {"requests": {"storage": "1Gi"}}}}
        self.addCleanup(self.in_namespace, "delete", "--ignore-not-found", "--wait=false", f"pv/v{self.mark}")
        self.in_namespace("apply", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": [volume, claim]}))
        self.write("profiles.yaml", json.dumps({"lab": {"claim": {"name": "artifacts", "path": "shared"}, "settings": {"resources": {"memory": "64MiB"}}}}))
        steps = self.write_chain(2, 1)
        self.detached("--profile", "lab")
        self.wait_for("succeeded")
        self.assert_each_step_had_one_pod(steps)
        self.assertFalse((self.state / "pipe.db-wal").exists(), "other machines cannot read a write-ahead log")
        self.assert_nothing_in_the_cluster()


@needs_cluster
@needs_test_bed
class ProgramTest(DetachedTest):
    command = pathlib.Path(os.environ["BUILD_DIR"]) / "bin/dsl_program"

    def run_there(self, *words):
        result = self.pipe("run", "-o", "kubernetes", "--namespace", self.namespace, "--output", "json", *words)
        self.assertEqual(result.code, 0, result)
        return result

    def test_program_is_its_own_driver_and_its_keys_are_the_same_there(self):
        self.run_there("--detach")
        self.wait_for("succeeded")
        steps = self.steps()
        self.assertEqual((len(steps), set(steps.values())), (9, {"succeeded"}), steps)
        self.assertEqual(self.artifact("count_lines.result"), "2\n")
        self.assertEqual(set(self.run_there().steps().values()), {"cached"})
        self.assert_nothing_in_the_cluster()


@needs_cluster
@needs_test_bed
class StopsTest(StopsAnywhere, DetachedTest):
    def test_a_run_that_is_cancelled_while_its_driver_is_lost_leaves_nothing(self):
        self.write_chain(3, 60)
        self.detached()
        wait_until(lambda: self.steps()["s0"] == "running", "s0 running")
        (pod,) = self.driver_pods()
        self.in_namespace("delete", "pod", "--wait=false", "--grace-period=0", "--force", pod["metadata"]["name"])
        result = self.pipe("cancel", "latest", "--now")
        self.assertEqual(result.code, 0, result)
        self.assertEqual(self.status(), "interrupted")
        self.assert_nothing_in_the_cluster()

    def test_a_second_driver_waits_for_the_lease(self):
        steps = self.write_chain(2, 1, waits=(0,))
        event = self.detached()
        second = self.start("__drive", event["run"], "--state", self.state)
        told = second.stderr.readline()
        self.assertIn(f"waiting for the run's Lease {event['driver']['job']}, which {event['driver']['holder']} holds", told)
        self.release_step("s0")
        self.wait_for("succeeded")
        self.assertEqual(self.finish(second).code, 0, "the second driver finds that the run has ended")
        self.assert_each_step_had_one_pod(steps)
        self.assert_nothing_in_the_cluster()


@needs_cluster
@needs_test_bed
class RefusedTest(DetachedTest):
    def refusal(self, *words, **env) -> str:
        """Returns the error of a detached run that is refused before anything is built or made."""
        result = self.pipe("run", "pipeline.yaml", "-o", "kubernetes", "--namespace", self.namespace, "--detach", *words, **env)
        self.assertNotEqual(result.code, 0, result)
        self.assertEqual(self.cluster_objects(), [])
        self.assertNotIn("build", result.out)
        self.assertEqual(json.loads(self.pipe("runs", "--output", "json").out)["runs"], [])
        return result.err

    def test_missing_rights_of_the_drivers_account_are_an_error_before_anything_is_built(self):
        self.write_chain(1)
        told = self.refusal("--service-account", "nobody")
        self.assertIn(f"there is no service account 'nobody' in the namespace {self.namespace}", told)
        self.in_namespace("delete", "rolebinding", "pipe")
        told = self.refusal()
        self.assertIn(f"the service account 'pipe' of the namespace {self.namespace} may not drive a run: these permissions are missing:", told)
        self.assertIn("create leases.coordination.k8s.io", told)
        self.assertIn(f"`pipe kubernetes rbac --namespace {self.namespace} --subject ServiceAccount:pipe | kubectl apply -f -`", told)

    def test_a_run_with_a_local_step_cannot_be_detached(self):
        self.pipeline({"here": {"command": "true", "orchestrator": "local"}, "there": {"command": "true"}})
        self.assertIn("step 'here' runs on 'local', which a driver in the cluster does not have", self.refusal())

    def test_a_run_that_needs_an_answer_or_a_folder_of_this_machine_cannot_be_detached(self):
        self.pipeline({"deploy": {"command": "true", "wait": "Deploy?"}})
        self.assertIn("step 'deploy' has a `wait`, and nobody can answer a driver that is elsewhere", self.refusal())
        self.pipeline({"deploy": {"command": "echo 1 > ${outputs.o}", "outputs": ["o"], "publish_to": "./results"}})
        self.assertIn("step 'deploy' has a `publish_to`, which names a folder of this machine", self.refusal())


if __name__ == "__main__":
    unittest.main()
