"""Artifacts through a persistent volume claim: pods see the state folder in the claim's volume, and no folder of a node."""

import json
import subprocess
import unittest

from support_cluster import ROOT, ClusterTest, kubectl, needs_cluster, needs_test_bed


@needs_cluster
@needs_test_bed
class ClaimTest(ClusterTest):
    def setUp(self):
        super().setUp()
        (self.folder / "shared").mkdir()
        # The volume is a folder of this machine, which is the only node. On another cluster it is a network file system that this machine has mounted.
        volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"v{self.mark}"},
                  "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"], "storageClassName": self.mark,
                           "persistentVolumeReclaimPolicy": "Retain", "hostPath": {"path": str(self.folder / "shared")}}}
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": f"c{self.mark}"},
                 "spec": {"accessModes": ["ReadWriteMany"], "storageClassName": self.mark, "resources": {"requests": {"storage": "1Gi"}}}}
        self.addCleanup(kubectl, "delete", "--ignore-not-found", "--wait=false", f"pvc/c{self.mark}", f"pv/v{self.mark}")
        for each in (volume, claim):
            subprocess.run([ROOT / "scripts/testbed/kubernetes", "kubectl", "create", "-f", "-"], input=json.dumps(each), text=True, check=True,
                           stdout=subprocess.DEVNULL)
        self.state = self.folder / "shared/pipe"
        self.profile("shared")

    def profile(self, path: str, name: str = ""):
        self.write("profiles.yaml", json.dumps({"lab": {"orchestrator": "kubernetes", "claim": {"name": name or f"c{self.mark}", "path": path}}}))

    def steps(self) -> dict:
        return {"make": {"command": "mkdir ${outputs.many}; for i in 1 2 3; do echo $i > ${outputs.many}/$i; done; echo one > ${outputs.one}",
                         "outputs": ["many", "one"]},
                "sum": {"command": "cat ${inputs.many}/* ${inputs.one} > ${outputs.all}", "inputs": {"many": "make.many", "one": "make.one"}, "outputs": ["all"]}}

    def test_a_claim_that_does_not_hold_the_state_is_refused(self):
        self.profile("elsewhere")
        self.pipeline(self.steps())
        result = self.pipe("run", "--profile", "lab", "--output", "json")
        self.assertNotEqual(result.code, 0)
        self.assertIn(f"the claim 'c{self.mark}' does not hold", result.text)

    def test_outputs_are_inputs_of_other_steps(self):
        self.pipeline(self.steps())
        result = self.pipe("run", "--profile", "lab", "--output", "json")
        self.assertEqual(result.code, 0, result)
        self.assertEqual(self.artifact("sum.all"), "1\n2\n3\none\n")
        self.assert_nothing_left()

    def test_no_path_of_a_node_is_in_the_job(self):
        self.pipeline(self.steps())
        jobs = json.loads(self.pipe("render", "--profile", "lab").out)["items"]
        volumes = [volume for job in jobs for volume in job["spec"]["template"]["spec"]["volumes"]]
        self.assertNotIn("hostPath", json.dumps(volumes))
        self.assertEqual({volume["persistentVolumeClaim"]["claimName"] for volume in volumes if "persistentVolumeClaim" in volume}, {f"c{self.mark}"})


if __name__ == "__main__":
    unittest.main()
