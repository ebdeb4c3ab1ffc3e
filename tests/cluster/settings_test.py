"""Settings of steps on a real cluster: errors in them are reported before anything is built, and the settings reach the pod."""

import json
import signal
import unittest

from support_cluster import NamespaceTest, kubectl, needs_cluster, needs_test_bed, test_bed
from support import Result, wait_until


@needs_cluster
class OwnNamespaceTest(NamespaceTest):
    def setUp(self):
        super().setUp()
        self.in_namespace("create", "serviceaccount", "default", check=False)  # A controller makes it as well, but only after a moment.

    def apply(self, *objects: dict):
        self.in_namespace("apply", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))

    def write_steps(self, steps: dict):
        self.write("pipeline.yaml", json.dumps({"name": "e2e", "settings": {"docker": {"parent_image": "debian:bookworm-slim"}}, "steps": steps}, indent=2))

    def run_there(self, *words, code: int = 0, as_json: bool = True, **env) -> Result:
        """Runs the pipeline in the test's namespace. `code` is the expected exit code."""
        result = self.pipe("run", "pipeline.yaml", "-o", "kubernetes", "--namespace", self.namespace, *(("--output", "json") if as_json else ()), *words, **env)
        self.assertEqual(result.code, code, result)
        return result

    def output_of(self, step: str) -> str:
        return self.pipe("logs", "latest", step).out

    def assert_nothing_was_made(self, result: Result):
        self.assertNotIn("build_started", result.out)
        self.assertEqual(json.loads(self.in_namespace("get", "jobs,pods", "-o", "json"))["items"], [])


class PreflightTest(OwnNamespaceTest):
    def refusal(self, steps: dict) -> str:
        """Returns the error for these steps, for which nothing is built or made."""
        self.write_steps(steps)
        result = self.run_there(code=2)
        self.assert_nothing_was_made(result)
        return self.run_there(code=2, as_json=False).err

    def test_more_gpus_than_any_node_has_are_refused_before_anything_is_built_with_the_nodes_listed(self):
        nodes = json.loads(kubectl("get", "nodes", "-o", "json"))["items"]
        gpus = {node["metadata"]["name"]: int(node["status"]["allocatable"].get("nvidia.com/gpu", 0)) for node in nodes}
        if not any(gpus.values()):
            self.skipTest("no node advertises nvidia.com/gpu")
        told = self.refusal({"train": {"command": ["true"], "settings": {"docker": {"requirements": ["six"]}, "resources": {"gpu_count": 2 * max(gpus.values())}}}})
        self.assertIn(f"step 'train': no node of the cluster can ever take it: it asks for {2 * max(gpus.values())} nvidia.com/gpu", told)
        for name, count in gpus.items():
            self.assertIn(name, told)
            self.assertIn(f"{count} of {2 * max(gpus.values())} nvidia.com/gpu", told)
        self.assertRegex(told, r"pipeline.yaml:\d+:\d+: error")

    def test_all_missing_objects_are_reported_together_with_similar_names(self):
        self.in_namespace("create", "secret", "generic", "hugging-face", "--from-literal=token=hush")
        told = self.refusal({"train": {"command": ["true"], "settings": {"kubernetes": {
            "env": ["HF_TOKEN=secret/huging-face/token"], "volumes": ["pvc/datasets:/data"], "service_account_name": "trainer",
            "priority_class_name": "no-such-class", "queue_name": "training"}}}})
        self.assertIn(f"there is no Secret 'huging-face' in the namespace {self.namespace}, which `kubernetes.env` names", told)
        self.assertIn("did you mean 'hugging-face'?", told)
        self.assertIn("there is no PersistentVolumeClaim 'datasets'", told)
        self.assertIn("there is no ServiceAccount 'trainer'", told)
        self.assertIn("there is no PriorityClass 'no-such-class' in the cluster", told)
        self.assertIn("Kueue" if "kueue" not in kubectl("api-versions") else "LocalQueue", told)
        self.assertNotIn("hush", told)

    def test_the_settings_for_which_the_cluster_refuses_a_job_are_named(self):
        self.in_namespace("create", "configmap", "conf")
        told = self.refusal({"train": {"command": ["true"], "settings": {"kubernetes": {
            "volumes": ["configmap/conf:/etc/x", "configmap/conf:/etc/x"], "tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]}}}})
        self.assertIn("the cluster does not take `kubernetes.volume_mounts` or `kubernetes.volumes`", told)
        self.assertIn("must be unique", told)
        self.assertIn("the cluster does not take `kubernetes.tolerations`", told)

    def test_the_rights_of_the_printed_role_are_enough_for_a_run(self):
        role = self.pipe("kubernetes", "rbac", "--namespace", self.namespace, "--subject", "User:ann").out
        self.in_namespace("apply", "-f", "-", input=role)
        self.in_namespace("create", "configmap", "conf", "--from-literal=mode=fast")
        config = json.loads(kubectl("config", "view", "--raw", "--flatten", "-o", "json"))
        for user in config["users"]:
            user["user"]["as"] = "ann"
        as_ann = str(self.write("ann", json.dumps(config)))
        self.write_steps({"show": {"command": "echo $MODE", "settings": {"kubernetes": {"env": ["MODE=configmap/conf/mode"]}}}})
        self.run_there(KUBECONFIG=as_ann)
        self.assertIn("fast", self.output_of("show"))
        self.in_namespace("delete", "rolebinding", "pipe")
        self.write_steps({"show": {"command": "echo other"}})
        self.assertIn("these permissions are missing:", self.run_there(code=3, KUBECONFIG=as_ann).text)


class HonouredTest(OwnNamespaceTest):
    def test_secrets_config_maps_and_settings_reach_the_step(self):
        self.in_namespace("create", "secret", "generic", "hugging-face", "--from-literal=token=hush")
        self.in_namespace("create", "secret", "generic", "database", "--from-literal=DB_HOST=db.example.org")
        self.in_namespace("create", "configmap", "conf", "--from-literal=mode=fast")
        self.in_namespace("create", "serviceaccount", "trainer")
        self.write_steps({"show": {
            "command": "test $TOKEN = hush && echo $DB_HOST $NODE $(cat /etc/conf/mode) && test -s /var/run/secrets/kubernetes.io/serviceaccount/token"
                       " && id -u && grep -c x /etc/hostname; ulimit -c",
            "settings": {"kubernetes": {
                "env": ["TOKEN=secret/hugging-face/token", {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
                "env_from": ["secret/database"], "volumes": ["configmap/conf:/etc/conf"], "service_account_name": "trainer",
                "resources": {"requests": {"cpu": "10m"}, "limits": {"memory": "256Mi"}}, "container_security_context": {"runAsUser": 4321},
                "labels": {"team": "ml"}, "annotations": {"example.org/note": "a b"}, "pod_security_context": {"fsGroup": 4321},
                "additional_pod_spec_args": {"hostname": "box"}, "job_patch": {"metadata": {"annotations": {"patched": "yes"}}},
                "active_deadline_seconds": 120, "ttl_seconds_after_finished": 60}}}})
        self.run_there()
        lines = self.output_of("show")
        self.assertRegex(lines, r"db\.example\.org \S+ fast")
        self.assertIn("4321", lines)
        self.assertIn("1", lines)

    def test_a_step_can_write_to_a_claim(self):
        folder = self.folder / "volume"
        folder.mkdir()
        capacity = {"storage": "1Mi"}
        volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": self.namespace},
                  "spec": {"capacity": capacity, "accessModes": ["ReadWriteOnce"], "storageClassName": "", "hostPath": {"path": str(folder)},
                           "claimRef": {"name": "datasets", "namespace": self.namespace}}}
        kubectl("apply", "-f", "-", input=json.dumps(volume))
        self.addCleanup(kubectl, "delete", "pv", self.namespace, "--wait=false")
        self.apply({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "datasets"},
                    "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": {"requests": capacity}, "volumeName": self.namespace}})
        self.write_steps({"save": {"command": "echo kept > /data/x", "settings": {"kubernetes": {"volumes": ["pvc/datasets:/data"]}}}})
        self.run_there()
        self.assertEqual((folder / "x").read_text(), "kept\n")

    def test_the_failure_by_a_deadline_of_the_job_names_the_deadline(self):
        self.write_steps({"wait": {"command": ["sleep", "1000"], "settings": {"kubernetes": {"active_deadline_seconds": 2}}}})
        failure = self.run_there(code=1).failure("wait")
        self.assertEqual(failure["kind"], "timed_out", failure)
        self.assertIn("its Job has a deadline of 2.0s", failure["message"])

    def test_pod_that_no_node_takes_fails_after_pod_startup_timeout(self):
        self.write_steps({"train": {"command": ["true"], "settings": {"resources": {"gpu_count": 1000},
                                                                       "kubernetes": {"autoscaling": True, "pod_startup_timeout": "8s"}}}})
        failure = self.run_there(code=1).failure("train")
        self.assertIn("no node takes it", failure["message"])

    @needs_test_bed
    def test_nodes_of_a_mixed_cluster_are_chosen_by_what_the_step_says(self):
        test_bed("hollow", "2", "8")
        self.addCleanup(test_bed, "unhollow")
        kubectl("label", "node", "hollow-1", "node.kubernetes.io/instance-type=p4d.24xlarge", "nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB")
        kubectl("label", "node", "hollow-2", "pool=spare", "nvidia.com/gpu.product=Tesla-T4")
        tolerated = {"tolerations": ["testbed/hollow"]}

        def step(resources: dict, **kubernetes) -> dict:
            return {"command": ["true"], "cache": False, "settings": {"resources": {"gpu_count": 8, **resources}, "kubernetes": {**tolerated, **kubernetes}}}

        self.write_steps({"by-type": step({"instance_type": "p4d.24xlarge"}), "by-constraint": step({"placement_constraints": ["attribute:pool == spare"]})})
        self.assert_nodes({"by-type": "hollow-1", "by-constraint": "hollow-2"})
        self.write_steps({"by-label": step({}, node_selectors={"pool": "spare"}), "by-model": step({"gpu_class": "A100"})})
        self.assert_nodes({"by-label": "hollow-2", "by-model": "hollow-1"})
        self.write_steps({"none": step({"gpu_class": "H100"}), "unasked": {"command": ["true"], "settings": {"resources": {"gpu_count": 8}}}})
        told = self.run_there(code=2, as_json=False).err
        self.assertIn("label nvidia.com/gpu.product Tesla-T4, not H100", told)
        self.assertIn("hollow-1 (8 nvidia.com/gpu, NVIDIA-A100-SXM4-40GB) has the taint testbed/hollow=true:NoSchedule", told)

    def assert_nodes(self, expected: dict):
        """Runs the steps until each pod has a node, compares the nodes, and stops the run: containers on stand-ins for nodes never end."""
        run = self.start("run", "pipeline.yaml", "-o", "kubernetes", "--namespace", self.namespace, "--jobs", "4")

        def placed() -> dict:
            if run.poll() is not None:
                self.fail(self.finish(run))
            pods = json.loads(self.in_namespace("get", "pods", "-o", "json"))["items"]
            return {pod["metadata"]["labels"]["pipe.step"]: pod["spec"].get("nodeName") for pod in pods}

        wait_until(lambda: len([node for node in placed().values() if node]) == len(expected), "a node for each pod")
        self.assertEqual(placed(), expected)
        run.send_signal(signal.SIGINT)
        self.finish(run)
        self.in_namespace("delete", "pods", "--all", "--force", "--grace-period=0", check=False)


if __name__ == "__main__":
    unittest.main()
