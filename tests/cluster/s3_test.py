"""Artifacts through S3: the pods see no files of this machine, and a real server (scripts/testbed/s3: rclone) is reached over TLS."""

import collections
import hashlib
import json
import shutil
import signal
import time
import unittest

from support_cluster import ROOT, ClusterTest, needs_cluster, needs_test_bed, wait_until
from support_s3 import S3, ScriptedProxy, S3Bucket, needs_s3


@needs_cluster
@needs_test_bed
@needs_s3
class S3Test(S3Bucket, ClusterTest):
    def assert_no_secret_is_kept(self):
        for file in self.folder.rglob("*"):
            if file.is_file() and not file.is_symlink():
                self.assertNotIn(S3["SECRET_KEY"].encode(), file.read_bytes(), file)
                self.assertNotIn(b"X-Amz-Signature", file.read_bytes(), file)

    def test_outputs_are_inputs_of_other_steps(self):
        make = ("mkdir -p ${outputs.many}/deep; for i in 1 2 3; do echo $i > ${outputs.many}/deep/$i; done; ln -s deep/1 ${outputs.many}/link; : > ${outputs.none};"
                "printf '#!/bin/sh\\necho ran\\n' > ${outputs.tool}; chmod +x ${outputs.tool}; cat helper.txt > ${outputs.code}")
        self.write("helper.txt", "from the code\n")
        self.pipeline({
            "make": {"command": make, "code": ["helper.txt"], "outputs": ["many", "none", "tool", "code"]},
            "fan": {"matrix": {"x": [1, 2]}, "command": "echo ${params.x} > ${outputs.y}; mkdir ${outputs.z}; echo ${params.x}${params.x} > ${outputs.z}/f",
                    "outputs": ["y", "z"]},
            "end": {"command": "{ cat ${inputs.many}/deep/* ${inputs.many}/link ${inputs.none} ${inputs.code}; ${inputs.tool}; cat ${inputs.ys}/*fan*; cat ${inputs.zs}/*/f;"
                               " } > ${outputs.all}; grep -c fan ${inputs.ys}/index.json >> ${outputs.all}; touch ${inputs.many}/x 2>> ${outputs.all} || true;"
                               " grep ' /pipe/' /proc/self/mountinfo > ${outputs.mounts}; env > ${outputs.seen}",
                    "inputs": {"many": "make.many", "none": "make.none", "tool": "make.tool", "code": "make.code", "ys": "fan[*].y", "zs": "fan[*].z"},
                    "outputs": ["all", "mounts", "seen"]}})
        result = self.run_pipe()
        self.assertEqual(set(result.steps().values()), {"succeeded"}, result)
        text = self.artifact("end.all")
        self.assertTrue(text.startswith("1\n2\n3\n1\nfrom the code\nran\n1\n2\n11\n22\n2\n"), text)
        self.assertIn("Read-only file system", text)
        for line in self.artifact("end.mounts").splitlines():
            self.assertRegex(line, r"kubernetes\.io~empty-dir/| /pipe/collect ro,.* tmpfs ", "nothing else is mounted")
        self.assertNotIn(S3["ACCESS_KEY"], self.artifact("end.seen"))
        self.assertTrue(self.objects())
        self.assertEqual([name for name in self.objects() if not name.startswith(("team/pipe/artifacts/", "team/pipe/results/"))], [], "objects of attempts are removed")
        self.assert_no_secret_is_kept()
        self.assert_nothing_left()

    def test_large_outputs_are_uploaded_in_parts_and_only_once(self):
        self.pipeline({"big": {"command": "head -c 50000000 /dev/urandom > ${outputs.data}; sha256sum < ${outputs.data}", "outputs": ["data"]},
                       "here": {"orchestrator": "local", "command": "head -c 40000000 /dev/urandom > ${outputs.data}", "outputs": ["data"]},
                       **{f"sum-{name}": {"command": "cat ${inputs.a} ${inputs.b} | wc -c > ${outputs.n}", "inputs": {"a": "big.data", "b": "here.data"},
                                          "outputs": ["n"]} for name in "xy"}})
        proxy = ScriptedProxy(lambda method, path: None)
        self.addCleanup(proxy.end)
        self.profile(endpoint=proxy.url)
        self.run_pipe()
        self.assertEqual(self.artifact("sum-x.n").strip(), "90000000")
        self.assertEqual(self.artifact("sum-y.n").strip(), "90000000")
        # Only answered requests count, because a part is sent again if its connection breaks, as on a busy machine.
        parts = [line for line in proxy.served if line.startswith("PUT") and "/outputs/data" in line]
        self.assertEqual(len(parts), 6, "the pod sends parts of 8 MiB")
        writes = [line for line in proxy.served if line.startswith(("PUT", "POST")) and "/artifacts/" in line]
        made = {one["output"]: one["digest"][2:] for one in json.loads(self.pipe("artifacts", "--output", "json").out)["artifacts"]}

        def count(output: str) -> dict[str, int]:
            return dict(collections.Counter(line.split()[0] for line in writes if line.endswith(made[output])))

        self.assertEqual(count("here.data"), {"POST": 2, "PUT": 5}, "written in five parts, between a beginning and an end")
        self.assertEqual(count("big.data")["POST"], 1, "copied by the server, which copies no parts of it")
        others = [line for line in writes if not line.endswith((made["here.data"], made["big.data"]))]
        self.assertEqual(len(others), len(set(others)), "none is written twice")

    def test_the_second_pod_of_a_node_downloads_nothing(self):
        cache = self.folder / "node-cache"
        proxy = ScriptedProxy(lambda method, path: None)
        self.addCleanup(proxy.end)
        store = {"bucket": f"s3://{self.bucket}/team/pipe", "endpoint": proxy.url}
        self.write("profiles.yaml", json.dumps({"lab": {"orchestrator": "kubernetes", "artifact_store": store, "node_cache": {"path": str(cache), "budget": "1GiB"}}}))

        size = 24 << 20
        digest = hashlib.sha256(bytes(size) + f"{self.mark}\n".encode()).hexdigest()

        def downloads_of(name: str) -> int:
            """Runs a step that reads data of this machine, and returns how many requests its pod has sent for the data."""
            proxy.served.clear()
            self.pipeline({"here": {"orchestrator": "local", "command": f"head -c {size} /dev/zero > ${{outputs.data}}; echo {self.mark} >> ${{outputs.data}}", "outputs": ["data"]},
                           name: {"command": f"sha256sum < ${{inputs.data}}; : {name}", "inputs": {"data": "here.data"}}})
            result = self.run_pipe()
            self.assertIn(digest, self.pipe("logs", "latest", name).text, result)
            self.assertTrue((cache / digest).is_file(), sorted(cache.iterdir()))
            return sum(line.startswith("GET") and line.endswith(f"/artifacts/{digest[:2]}/{digest[2:]}") for line in proxy.served)

        self.assertGreater(downloads_of("first"), 0)
        self.assertIn("inputs: 0 B from the node's cache, ", self.pipe("logs", "latest", "first").text)
        self.assertEqual(downloads_of("second"), 0)
        self.assertIn("inputs: 24 MiB from the node's cache, 0 B downloaded to it", self.pipe("logs", "latest", "second").text)
        (cache / digest).chmod(0o644)
        with (cache / digest).open("r+b") as file:
            file.seek(size // 2)
            file.write(b"x")
        self.assertGreater(downloads_of("third"), 0, "a damaged file of the cache is downloaded again")

    def test_digits_has_the_results_of_containers_of_this_machine(self):
        shutil.copytree(ROOT / "examples/digits", self.folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".pipe", "profiles.yaml"))
        result = self.run_pipe("--no-cache")
        self.assertEqual(set(result.steps().values()), {"succeeded"}, result)
        metrics = self.artifact("evaluate.metrics")
        self.assert_nothing_left()
        self.assertEqual(set(self.run_pipe().steps().values()), {"cached"})
        self.orchestrator = "docker"
        here = self.run_pipe("--no-cache", "--profile", "here", PIPE_PROFILES=str(self.write("more.yaml", "here: {orchestrator: docker}\n")))
        self.assertEqual(set(here.steps().values()), {"succeeded"}, here)
        self.assertEqual(self.artifact("evaluate.metrics"), metrics)

    def chain(self, length: int = 4) -> dict:
        """Writes a pipeline whose steps each add a line to the output of the step before, and returns the steps."""
        steps = {}
        for i in range(length):
            before = {"inputs": {"before": f"{self.mark}{i - 1}.text"}} if i else {}
            steps[f"{self.mark}{i}"] = {"command": f"sleep 0.3; {{ {'cat ${inputs.before};' if i else ''} echo {i}; }} > ${{outputs.text}}", "outputs": ["text"], **before}
        self.pipeline(steps)
        return steps

    def test_requests_are_repeated_if_the_server_is_busy_or_cuts_connections(self):
        count = 0

        def trouble(method, path):
            nonlocal count
            count += 1
            return {0: 503, 4: "cut", 8: 500}.get(count % 13)

        proxy = ScriptedProxy(trouble)
        self.addCleanup(proxy.end)
        self.profile(endpoint=proxy.url)
        steps = self.chain()
        result = self.run_pipe()
        self.assertEqual(set(result.steps().values()), {"succeeded"}, result)
        self.assertEqual(self.artifact(f"{self.mark}3.text"), "0\n1\n2\n3\n")
        self.assertEqual(set(self.pods_made().values()), {1}, "nothing has run twice")
        self.assertEqual(len(self.pods_made()), len(steps))

    def test_a_run_completes_though_the_server_goes_away_twice(self):
        """The server that other tests use stays: a proxy before it closes its connections and its port. chaos/data_kills_cluster_test kills the server itself."""
        is_away = False
        trouble = lambda method, path: "cut" if is_away else None  # noqa: E731
        proxy = ScriptedProxy(trouble)
        self.addCleanup(lambda: proxy.end())
        self.profile(endpoint=proxy.url)
        self.chain(6)
        process = self.start("run", "pipeline.yaml", "--output", "json")

        def disturb():
            wait_until(lambda: any("/artifacts/" in name for name in self.objects()), "a first object")
            nonlocal is_away, proxy
            for _ in range(2):
                is_away = True
                proxy.end()
                time.sleep(3)
                is_away = False
                proxy = ScriptedProxy(trouble, proxy.server_port)

        result = self.finish_beside(process, disturb)
        self.assertEqual(result.code, 0, result)
        self.assertEqual(self.artifact(f"{self.mark}5.text"), "0\n1\n2\n3\n4\n5\n")
        self.assertEqual(set(self.pods_made().values()), {1}, "nothing has run twice")

    def test_a_resumed_run_finds_what_the_pods_of_a_killed_driver_have_made(self):
        self.pipeline({f"{self.mark}x": {"command": "sleep 3; cat /etc/hostname > ${outputs.pod}", "outputs": ["pod"]}})
        process = self.start("run", "pipeline.yaml", "--output", "json")
        wait_until(lambda: self.jobs(), "a Job")
        process.send_signal(signal.SIGKILL)
        process.communicate()
        result = self.pipe("resume", "--output", "json")
        self.assertEqual(result.code, 0, result)
        self.assertIn(f"{self.mark}x", self.artifact(f"{self.mark}x.pod"))
        self.assertEqual(set(self.pods_made().values()), {1})
        self.assertEqual([name for name in self.objects() if "/runs/" in name], [])

    def test_a_failed_step_has_its_reason_and_leaves_no_objects(self):
        self.pipeline({"bad": {"command": "echo x > ${outputs.y}; echo '{\"type\": \"Oops\", \"message\": \"no luck\"}' > $PIPE_FAILURE_FILE; exit 3", "outputs": ["y"]},
                       "odd": {"command": "ln -s /etc/passwd ${outputs.y}", "outputs": ["y"]},
                       "lazy": {"command": "true", "outputs": ["y"]}}, execution_mode="continue_on_failure")
        result = self.run_pipe(code=3)
        self.assertEqual(result.failure("bad")["message"], "threw Oops: no luck")
        self.assertIn("it is a symbolic link", result.failure("odd")["message"])
        self.assertIn("did not write its output 'y'", result.failure("lazy")["message"])
        self.assertEqual([name for name in self.objects() if "/runs/" in name], [])

    def test_errors_of_the_store_are_reported_before_anything_is_built(self):
        self.pipeline({"x": {"command": ["true"]}}, {"parent_image": "debian:bookworm-slim", "environment": {"MARK": self.mark}})

        def refusal(**env):
            result = self.run_pipe(code=None, **env)
            self.assertEqual(result.code, 3, result)
            self.assertEqual(result.events("build_started"), [])
            self.assertNotIn(S3["SECRET_KEY"], result.text)
            return result.text

        text = refusal(AWS_ACCESS_KEY_ID="", AWS_SECRET_ACCESS_KEY="")
        self.assertIn("there are no keys for the remote store", text)
        self.assertIn("aws configure export-credentials", text)
        self.assertIn("the server does not accept the keys from the environment (AWS_ACCESS_KEY_ID)", refusal(AWS_ACCESS_KEY_ID="SOMEBODY"))
        self.assertIn("SignatureDoesNotMatch", refusal(AWS_SECRET_ACCESS_KEY="wrong"))
        self.profile(bucket=f"s3://{self.bucket}-not")
        text = refusal()
        self.assertIn("NoSuchBucket", text)
        self.assertIn("make the bucket (`aws s3 mb", text)
        self.profile(certificate_authority="/etc/ssl/certs/ca-certificates.crt")
        self.assertIn("its certificate is from a CA that this machine does not know", refusal())
        self.profile(endpoint="https://10.213.68.2:1")
        self.assertIn("check `endpoint` under `artifact_store`, the address of the server", refusal())

    def test_the_failure_of_a_pod_that_does_not_reach_the_store_says_so(self):
        self.profile(pod_endpoint="http://no-such-host.invalid:9000")
        self.pipeline({"x": {"command": ["true"], "retry": {"max_infrastructure_retries": 0}}})
        result = self.run_pipe(code=1)
        self.assertIn("could not get its files: cannot find the host no-such-host.invalid", result.failure("x")["message"])
        self.assertIn("`pod_endpoint` under `artifact_store`", " ".join(result.failure("x")["hints"]))


if __name__ == "__main__":
    unittest.main()
