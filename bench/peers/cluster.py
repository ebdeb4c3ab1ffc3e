"""The test bed's cluster with stand-ins for many nodes, the number of requests to its API, and the same Jobs made with kubectl."""

import base64
import json
import subprocess
import time
from pathlib import Path

from model import IMAGE, Absent, Command, Peer

ROOT = Path(__file__).resolve().parents[2]
TEST_BED = ROOT / "scripts/testbed/kubernetes"
NAMESPACE, USER = "pipe-bench", "runner"
AUDIT = f"""apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {{level: Metadata, users: ["system:serviceaccount:{NAMESPACE}:{USER}"]}}
- {{level: None}}
"""


def test_bed(*words: str, given: str | None = None) -> str:
    done = subprocess.run([TEST_BED, *words], input=given, capture_output=True, text=True)
    if done.returncode:
        raise Absent(f"{' '.join(words[:3])}: {(done.stderr.strip().splitlines() or ['failed'])[-1]}")
    return done.stdout


class StandInCluster:
    """A real API server, scheduler and controllers, with stand-ins for nodes (bench/hollow_nodes.py). The contestants act as a service account with the Role that
    `pipe kubernetes rbac` prints, so that the server's own audit log tells their requests from all others."""

    def __init__(self, pipe: str, folder: Path, nodes: int):
        self.pipe, self.folder, self.nodes = pipe, folder, nodes
        self.kubeconfig, self.audit = folder / "kubeconfig", folder / "audit.log"
        self.read = 0

    def __enter__(self):
        if not Path("/var/cache/pipe-testbed/kubernetes/bin/kubelet").exists():
            raise Absent("no cluster has been built: `scripts/testbed/kubernetes build`")
        test_bed("up")
        policy = self.folder / "policy.yaml"
        policy.write_text(AUDIT)
        test_bed("restart-api", f"--audit-policy-file={policy}", f"--audit-log-path={self.audit}", "--audit-log-mode=batch")
        test_bed("kubectl", "cordon", "node1")
        self.remove_namespace()
        test_bed("kubectl", "create", "namespace", NAMESPACE)
        test_bed("kubectl", "-n", NAMESPACE, "create", "serviceaccount", USER)
        role = subprocess.run([self.pipe, "kubernetes", "rbac", "--namespace", NAMESPACE, "--subject", f"ServiceAccount:{USER}"], check=True, capture_output=True, text=True)
        test_bed("kubectl", "apply", "-f", "-", given=role.stdout)
        self.write_kubeconfig()
        config = test_bed("kubectl", "config", "view", "--raw", "-o", "json")
        self.players = subprocess.Popen(["python3", ROOT / "bench/hollow_nodes.py", "--nodes", str(self.nodes)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.players.stdin.write(config)
        self.players.stdin.close()
        if self.players.stdout.readline() != "ready\n":
            raise Absent("the stand-ins for nodes did not start")
        time.sleep(5)  # the scheduler's view of them
        return self

    def __exit__(self, *_):
        self.players.terminate()
        self.players.wait()
        self.remove_namespace()
        test_bed("kubectl", "uncordon", "node1")
        test_bed("restart-api")

    @staticmethod
    def remove_namespace() -> None:
        test_bed("kubectl", "delete", "namespace", NAMESPACE, "--ignore-not-found", "--wait")

    def write_kubeconfig(self) -> None:
        config = json.loads(test_bed("kubectl", "config", "view", "--raw", "-o", "json"))
        for _ in range(100):
            secrets = json.loads(test_bed("kubectl", "-n", NAMESPACE, "get", "secrets", "-o", "json"))["items"]
            tokens = [one["data"]["token"] for one in secrets if one["metadata"].get("annotations", {}).get("kubernetes.io/service-account.name") == USER]
            if tokens:
                break
            time.sleep(0.1)
        config["users"][0]["user"] = {"token": base64.b64decode(tokens[0]).decode()}
        config["contexts"][0]["context"]["namespace"] = NAMESPACE
        self.kubeconfig.write_text(json.dumps(config))

    def requests(self) -> int:
        """Returns the number of requests that the contestants have made since the last call; a watch counts once."""
        time.sleep(2)  # the log is written in batches
        with self.audit.open() as log:
            log.seek(self.read)
            ids = {json.loads(line)["auditID"] for line in log}
            self.read = log.tell()
        return len(ids)


class PipeOnCluster(Peer):
    name = "pipe"

    def __init__(self, program: str, cluster: StandInCluster, jobs: int = 100):
        self.program, self.cluster, self.jobs = program, cluster, jobs

    def fan_out(self, count: int, folder: Path) -> Command:
        step = {"command": ["true"], "matrix": {"i": list(range(count))}}
        (folder / "pipeline.yaml").write_text(json.dumps({"name": "bench", "settings": {"docker": {"parent_image": IMAGE}}, "steps": {"work": step}}))
        argv = [self.program, "run", "pipeline.yaml", "-o", "kubernetes", "--jobs", str(self.jobs), "--state", ".pipe", "--no-cache"]
        return Command(argv, folder, {"KUBECONFIG": str(self.cluster.kubeconfig)})


class Kubectl(Peer):
    """Creates all Jobs from one file and waits for all of them: without logs, results or an order."""

    name = "kubectl create, wait, delete"

    def __init__(self, cluster: StandInCluster):
        self.cluster = cluster

    def fan_out(self, count: int, folder: Path) -> Command:
        pod = {"restartPolicy": "Never", "containers": [{"name": "step", "image": IMAGE, "command": ["true"]}]}
        labels = {"app.kubernetes.io/managed-by": "pipe"}  # by which the stand-ins know what to end
        jobs = [{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": f"work-{i}"},
                 "spec": {"backoffLimit": 0, "template": {"metadata": {"labels": labels}, "spec": pod}}} for i in range(count)]
        (folder / "jobs.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": jobs}))
        script = f"'{TEST_BED}' kubectl --kubeconfig kubeconfig create -f jobs.json && '{TEST_BED}' kubectl --kubeconfig kubeconfig wait jobs --all " \
                 f"--for condition=complete --timeout 3600s && '{TEST_BED}' kubectl --kubeconfig kubeconfig delete jobs --all --wait=false"
        (folder / "kubeconfig").write_text(self.cluster.kubeconfig.read_text())
        return Command(["sh", "-c", script], folder)
