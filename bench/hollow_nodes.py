"""Stand-ins for the machines of a large cluster: nodes without kubelets. This program acts for all of the kubelets: it renews the nodes' leases, ends each
pod that is scheduled to one of them, with exit code 0, and serves their logs, which are empty. What schedules, creates and deletes is the real cluster.
Usage: kubectl config view --output json | hollow_nodes.py --nodes N [--seconds S] [--gpus G]; prints `ready`, and removes the nodes when it is stopped (SIGTERM)."""

import argparse
import datetime
import http.client
import http.server
import json
import queue
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse


def now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f") + "Z"


class Api:
    """A connection to the API server; not for several threads."""

    def __init__(self, config: dict):
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.address = urllib.parse.urlsplit(cluster["server"]).netloc
        self.tls = ssl.create_default_context(cafile=cluster["certificate-authority"])
        self.tls.load_cert_chain(user["client-certificate"], user["client-key"])
        self.connection: http.client.HTTPSConnection | None = None

    def call(self, method: str, path: str, body=None, kind: str = "application/json") -> tuple[int, dict]:
        for attempt in range(8):
            try:
                if self.connection is None:
                    self.connection = http.client.HTTPSConnection(self.address, context=self.tls, timeout=60)
                self.connection.request(method, path, json.dumps(body) if body is not None else None, {"Content-Type": kind})
                answer = self.connection.getresponse()
                content = json.loads(answer.read() or b"{}")
                if answer.status != 429 and answer.status < 500:
                    return answer.status, content
            except (OSError, http.client.HTTPException):
                self.connection = None
            time.sleep(0.1 * 2**attempt)
        raise RuntimeError(f"{method} {path}: no answer")

    def stream(self, path: str):
        connection = http.client.HTTPSConnection(self.address, context=self.tls, timeout=600)
        connection.request("GET", path)
        yield from (json.loads(line) for line in connection.getresponse())


class Logs(http.server.BaseHTTPRequestHandler):
    """The part of a kubelet's own API that serves a container's log: here the log of an agent whose step has printed nothing."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        text = f"{now()} .0\n".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


def serve_logs() -> int:
    with tempfile.TemporaryDirectory() as folder:
        key, certificate = f"{folder}/key", f"{folder}/certificate"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=hollow"],
                       check=True, stderr=subprocess.DEVNULL)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Logs)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port


class Nodes:
    def __init__(self, options: argparse.Namespace, config: dict):
        self.config, self.options, self.port = config, options, serve_logs()
        self.names = [f"stand-in-{i}" for i in range(options.nodes)]
        self.to_end: queue.Queue[tuple[float, dict]] = queue.Queue()
        self.seen: set[str] = set()

    def api(self) -> Api:
        return Api(self.config)

    def status(self) -> dict:
        room = {"cpu": "64", "memory": "256Gi", "pods": "500", "ephemeral-storage": "1000Gi"}
        if self.options.gpus:
            room["nvidia.com/gpu"] = str(self.options.gpus)
        return {"capacity": room, "allocatable": room, "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
                "daemonEndpoints": {"kubeletEndpoint": {"Port": self.port}}, "nodeInfo": {"kubeletVersion": "stand-in", "operatingSystem": "linux", "architecture": "amd64"},
                "conditions": [{"type": "Ready", "status": "True", "reason": "StandIn", "lastHeartbeatTime": now()[:-8] + "Z", "lastTransitionTime": now()[:-8] + "Z"}]}

    def make(self) -> None:
        api = self.api()
        for name in self.names:
            node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "bench/stand-in": "true"}}}
            api.call("POST", "/api/v1/nodes", node)
            api.call("PATCH", f"/api/v1/nodes/{name}/status", {"status": self.status()}, "application/merge-patch+json")
            lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name, "namespace": "kube-node-lease"},
                     "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": now()}}
            api.call("POST", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", lease)
            # The cluster taints new nodes, which would keep pods away.
            api.call("PATCH", f"/api/v1/nodes/{name}", {"spec": {"taints": None}}, "application/merge-patch+json")

    def renew(self) -> None:
        api = self.api()
        while True:
            time.sleep(10)
            for name in self.names:
                api.call("PATCH", f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{name}", {"spec": {"renewTime": now()}}, "application/merge-patch+json")

    def watch(self) -> None:
        api = self.api()
        while True:
            _, pods = api.call("GET", "/api/v1/pods?labelSelector=app.kubernetes.io/managed-by%3Dpipe")
            for pod in pods["items"]:
                self.take(pod)
            try:
                path = f"/api/v1/pods?watch=true&labelSelector=app.kubernetes.io/managed-by%3Dpipe&resourceVersion={pods['metadata']['resourceVersion']}"
                for change in self.api().stream(path):
                    if change["type"] == "ERROR":
                        break
                    if change["type"] == "DELETED":
                        self.seen.discard(change["object"]["metadata"]["uid"])
                    else:
                        self.take(change["object"])
            except (OSError, http.client.HTTPException, json.JSONDecodeError):
                time.sleep(0.2)

    def take(self, pod: dict) -> None:
        meta = pod["metadata"]
        if not pod["spec"].get("nodeName", "").startswith("stand-in-"):
            return
        if "deletionTimestamp" in meta and meta.get("deletionGracePeriodSeconds"):
            self.to_end.put((0, pod))
        elif meta["uid"] not in self.seen and pod["status"]["phase"] == "Pending":
            self.seen.add(meta["uid"])
            self.to_end.put((time.monotonic() + self.options.seconds, pod))

    def end(self) -> None:
        api = self.api()
        while True:
            due, pod = self.to_end.get()
            time.sleep(max(0.0, due - time.monotonic()))
            meta = pod["metadata"]
            path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
            if "deletionTimestamp" in meta:
                api.call("DELETE", path, {"gracePeriodSeconds": 0, "preconditions": {"uid": meta["uid"]}})
                continue
            container = pod["spec"]["containers"][0]
            ended = {"name": container["name"], "image": container["image"], "imageID": "stand-in", "ready": False, "restartCount": 0,
                     "state": {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": now()[:-8] + "Z", "finishedAt": now()[:-8] + "Z"}}}
            api.call("PATCH", path + "/status", {"status": {"phase": "Succeeded", "containerStatuses": [ended]}}, "application/merge-patch+json")

    def remove(self) -> None:
        api = self.api()
        for name in self.names:
            api.call("DELETE", f"/api/v1/nodes/{name}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=0.0, help="how long a pod takes")
    parser.add_argument("--gpus", type=int, default=0, help="of each node")
    nodes = Nodes(parser.parse_args(), json.load(sys.stdin))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    nodes.make()
    for work in [nodes.renew, nodes.watch] + [nodes.end] * 6:
        threading.Thread(target=work, daemon=True).start()
    print("ready", flush=True)
    try:
        while True:
            time.sleep(60)
    finally:
        nodes.remove()


if __name__ == "__main__":
    main()
