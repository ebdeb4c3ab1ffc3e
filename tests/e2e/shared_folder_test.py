"""Results and published artifacts that machines share through a folder, such as one of NFS. A machine is simulated by a state folder."""

import json
import os
import stat
import unittest

from support import PipeTest

STEPS = {
    "load": {"command": "cat notes.txt > ${outputs.text}; mkdir -p ${outputs.many}/deep; echo 1 > ${outputs.many}/deep/1; ln -s deep/1 ${outputs.many}/link;"
                        " printf '#!/bin/sh\\necho ran\\n' > ${outputs.tool}; chmod +x ${outputs.tool}",
             "code": ["notes.txt"], "outputs": ["text", "many", "tool"]},
    "end": {"command": "cat ${inputs.text} ${inputs.many}/link > ${outputs.all}; ${inputs.tool} >> ${outputs.all}",
            "inputs": {"text": "load.text", "many": "load.many", "tool": "load.tool"}, "outputs": ["all"]},
}
TRAIN = {"train": {"command": "cat notes.txt > ${outputs.model}", "code": ["notes.txt"], "outputs": ["model"], "publish": {"model": "production"}}}
PREDICT = {"predict": {"command": "cat ${inputs.model} > ${outputs.table}", "inputs": {"model": "artifact:production"}, "outputs": ["table"]}}


class Locally(PipeTest):
    orchestrator = "local"

    def setUp(self):
        super().setUp()
        self.shared = self.folder / "mnt" / "team pipe"
        self.shared.mkdir(parents=True)
        self.url = f"file://{self.shared}"
        self.profile(self.url)
        self.write("notes.txt", "first\n")
        self.pipeline(STEPS)
        self.on("one")

    def on(self, machine: str):
        """Continues as another machine."""
        self.state = self.folder / machine

    def profile(self, address: str, **more):
        self.write("profiles.yaml", json.dumps({"team": {"orchestrator": self.orchestrator, "artifact_store": address, **more}}))

    def environment(self, env: dict) -> dict:
        return super().environment({"PIPE_PROFILE": "team", **env})

    def kinds(self) -> dict[str, int]:
        """Returns how many files the shared folder has in each of its folders, such as `results`, without hidden ones."""
        names = [path.relative_to(self.shared).parts[0] for path in self.shared.rglob("*") if path.is_file()]
        return {name: names.count(name) for name in names if not name.startswith(".")}

    def notices(self, result) -> list[str]:
        """Returns the texts of the run's notices about the shared folder."""
        return [event["text"] for event in result.events("notice") if self.url in event["text"]]

    def test_other_machines_reuse_what_one_machine_has_made(self):
        result = self.run_pipe()
        self.assertEqual(result.steps(), {"load": "succeeded", "end": "succeeded"}, result)
        run = result.events("run_started")[0]["run"]
        self.assertEqual(self.kinds(), {"artifacts": 4, "results": 2})
        made = self.artifact("end.all")
        self.assertEqual(made, "first\n1\nran\n")

        self.on("two")
        self.assertEqual({plan["reused_from"] for plan in self.plan().values()}, {f"{self.url}, run {run}"})
        result = self.run_pipe()
        self.assertEqual(result.steps(), {"load": "cached", "end": "cached"}, result)
        self.assertEqual(self.notices(result), [])
        self.assertEqual(self.artifact("end.all"), made)
        self.write("notes.txt", "second\n")
        self.assertEqual(self.run_pipe().steps(), {"load": "succeeded", "end": "succeeded"})
        self.on("one")
        self.assertEqual(self.run_pipe().steps(), {"load": "cached", "end": "cached"})

    def test_a_path_is_an_address_and_is_relative_to_the_file_of_profiles(self):
        self.profile("./mnt/team pipe")
        self.run_pipe()
        self.profile(str(self.shared))
        self.on("two")
        self.assertEqual(self.run_pipe().steps(), {"load": "cached", "end": "cached"})
        profiles = json.loads(self.pipe("profiles", "--output", "json").out)
        self.assertIn(self.url, json.dumps(profiles))

    def test_a_step_whose_shared_output_is_damaged_runs_again_and_replaces_it(self):
        self.run_pipe()
        damaged = [path for path in self.shared.rglob("artifacts/*/*") if path.read_bytes() == b"first\n1\nran\n" or path.suffix == ".tar"]
        self.assertEqual(len(damaged), 2)
        for path in damaged:
            path.write_text("of no use")
        self.on("two")
        result = self.run_pipe()
        self.assertEqual(result.steps(), {"load": "succeeded", "end": "succeeded"}, result)
        self.assertEqual(len(self.notices(result)), 2, result)
        self.on("three")
        self.assertEqual(self.run_pipe().steps(), {"load": "cached", "end": "cached"})

    def test_a_removed_temporary_output_is_downloaded_from_the_folder_and_not_made_again(self):
        steps = {"align": {"command": "mkdir ${outputs.bam}; seq 1000 > ${outputs.bam}/x; echo few > ${outputs.stats}", "outputs": {"bam": {"file": "bam", "temp": True}, "stats": "stats"}},
                 "sort": {"command": "sort -rn ${inputs.bam}/x > ${outputs.sorted}", "inputs": {"bam": "align.bam"}, "outputs": ["sorted"]}}
        self.pipeline(steps)
        self.run_pipe()
        self.assertIn("temporary, removed", self.pipe("artifacts", "latest").out)
        steps["sort"]["command"] = "sort -n ${inputs.bam}/x > ${outputs.sorted}"
        self.pipeline(steps)
        plan = self.plan()["align"]
        self.assertEqual((plan["action"], plan["changes"]), ("depends", [f"its temporary output 'bam' was removed, and 'sort' needs it: runs unless {self.url} has it"]))
        again = self.run_pipe()
        self.assertEqual(again.steps(), {"align": "cached", "sort": "succeeded"})
        self.assertEqual([event["step"] for event in again.events("step_started")], ["sort"])
        self.assertEqual(self.notices(again), [f"outputs downloaded again from {self.url}, because 'sort' needs its temporary output"])
        self.assertIn("temporary, removed", self.pipe("artifacts", "latest").out)
        for file in sorted(self.shared.rglob("*"), reverse=True):
            file.rmdir() if file.is_dir() and not file.is_symlink() else file.unlink()
        steps["sort"]["command"] = "sort ${inputs.bam}/x > ${outputs.sorted}"
        self.pipeline(steps)
        alone = self.run_pipe()
        self.assertEqual([event["step"] for event in alone.events("step_started")], ["align", "sort"], "the folder was emptied")

    def test_all_machines_share_published_names(self):
        self.pipeline(PREDICT)
        self.assertIn(f"nothing is published as 'production' in {self.url}", self.run_pipe(code=3).text)
        self.pipeline(TRAIN)
        self.run_pipe()
        self.on("two")
        self.pipeline(PREDICT)
        self.run_pipe()
        self.assertEqual(self.artifact("predict.table"), "first\n")

        self.pipeline(TRAIN)
        machines = [f"machine-{number}" for number in range(4)]
        for machine in machines:
            self.on(machine)
            self.write("notes.txt", machine)
            self.run_pipe()
        processes = []
        for machine in machines:
            self.on(machine)
            processes.append(self.start("artifacts", "latest", "train.model", "--publish", "candidate"))
        for process in processes:
            self.assertEqual(self.finish(process).code, 0)
        versions = json.loads(self.pipe("artifacts", "--name", "candidate", "--output", "json").out)["versions"]
        self.assertEqual(sorted(version["version"] for version in versions), [1, 2, 3, 4])

    def test_a_folder_that_is_not_mounted_is_an_error_before_the_run_begins(self):
        self.profile(f"{self.url}-gone")
        result = self.run_pipe(code=3)
        self.assertEqual(result.events("run_started"), [])
        self.assertIn(f"there is no folder {self.shared}-gone, which is the remote store", result.text)
        self.assertFalse(self.shared.with_name(self.shared.name + "-gone").exists())

    def test_a_folder_that_disappears_during_the_run_fails_no_step(self):
        self.pipeline({"load": {"command": f"mv '{self.shared}' '{self.shared}-gone'; echo 1 > ${{outputs.o}}", "outputs": ["o"]},
                       "end": {"command": "cat ${inputs.o} > ${outputs.o}", "inputs": {"o": "load.o"}, "outputs": ["o"]}})
        if self.orchestrator != "local":
            self.skipTest("a container does not see the folder")
        result = self.run_pipe()
        self.assertEqual(result.steps(), {"load": "succeeded", "end": "succeeded"}, result)
        self.assertIn(f"{self.url} lacks the results of '", " ".join(self.notices(result)))

    def test_users_of_a_group_can_write_all_files_of_a_setgid_folder(self):
        os.chmod(self.shared, 0o2770)
        umask = os.umask(0o077)
        self.addCleanup(os.umask, umask)
        self.run_pipe()
        for path in self.shared.rglob("*"):
            if ".new" not in path.parts:
                self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o2770 if path.is_dir() else 0o660, path)

    def test_a_detached_run_in_a_cluster_refuses_a_folder_that_its_driver_cannot_see(self):
        self.write("kubeconfig", json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "c", "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
            "users": [{"name": "u", "user": {"token": "x"}}], "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}))
        result = self.pipe("run", "pipeline.yaml", "-o", "kubernetes", "--detach", KUBECONFIG=str(self.folder / "kubeconfig"))
        self.assertNotEqual(result.code, 0)
        self.assertIn(f"a driver in the cluster cannot reach the remote store {self.url}", result.text)
        self.assertIn("leave out --detach", result.text)


class OnDocker(Locally):
    orchestrator = "docker"


if __name__ == "__main__":
    unittest.main()
