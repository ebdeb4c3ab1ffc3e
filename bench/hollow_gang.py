"""Measures how long a cluster takes to give nodes to all pods of one step with nodes. The nodes are hollow ones of a test bed (scripts/testbed/kubernetes hollow 8): scheduling is real,
containers are none.
Usage: hollow_gang.py [--bed kubernetes|kubernetes-newer] [--pods 64] [--rounds 3]; PIPE names the command. Prints a line of JSON for each round, with seconds since the start of
`pipe run` to the first pod, to the last pod that has a node, and to the last that runs, and from Ctrl-C to the end of `pipe`; and the number of Jobs."""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
PIPE = os.environ.get("PIPE", str(ROOT / "build/release/bin/pipe"))


class Round:
    def __init__(self, bed: str, pods: int, folder: str):
        self.kubeconfig = f"/var/lib/pipe-testbed/{bed}/kubeconfig"
        self.kubectl = [str(ROOT / "scripts/testbed" / bed), "kubectl", "--kubeconfig", self.kubeconfig]
        self.pods, self.folder = pods, folder
        self.first = self.scheduled = self.running = None
        self.seen: dict[str, dict] = {}

    def watch(self) -> None:
        decoder, text = json.JSONDecoder(), ""
        words = ["get", "pods", "-l", "pipe.pipeline=hollow-gang", "--watch", "-o", "json"]
        self.watching = subprocess.Popen(self.kubectl + words, stdout=subprocess.PIPE, text=True)
        for line in self.watching.stdout:
            text += line
            if line == "}\n":
                pod, _ = decoder.raw_decode(text)
                text = ""
                self.take(pod)

    def take(self, pod: dict) -> None:
        now = time.monotonic()
        self.first = self.first or now
        self.seen[pod["metadata"]["name"]] = pod
        pods = list(self.seen.values())
        if not self.scheduled and sum(bool(each["spec"].get("nodeName")) for each in pods) == self.pods:
            self.scheduled = now
        if not self.running and sum(each["status"]["phase"] == "Running" for each in pods) == self.pods:
            self.running = now

    def run(self) -> dict:
        toleration = {"key": "testbed/hollow", "operator": "Exists"}
        settings = {"docker": {"parent_image": "debian:bookworm-slim"}, "kubernetes": {"node_selectors": {"testbed/hollow": "true"}, "tolerations": [toleration]}}
        step = {"command": "sleep 1000", "nodes": self.pods}
        pathlib.Path(self.folder, "pipeline.yaml").write_text(json.dumps({"name": "hollow-gang", "settings": settings, "steps": {"train": step}}))
        threading.Thread(target=self.watch, daemon=True).start()
        time.sleep(1)
        began = time.monotonic()
        pipe = subprocess.Popen([PIPE, "run", "pipeline.yaml", "-o", "kubernetes", "--state", self.folder + "/state", "--no-cache"], cwd=self.folder,
                                env={**os.environ, "KUBECONFIG": self.kubeconfig}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not self.running and time.monotonic() < (self.scheduled or began + 100) + 30 and pipe.poll() is None:
            time.sleep(0.05)
        jobs = subprocess.run(self.kubectl + ["get", "jobs", "-l", "pipe.pipeline=hollow-gang", "-o", "name"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
        stopped = time.monotonic()
        pipe.send_signal(signal.SIGINT)
        time.sleep(2)
        pipe.send_signal(signal.SIGINT)
        pipe.wait()
        self.watching.terminate()
        since = {name: round(at - began, 2) if at else None for name, at in (("first_pod", self.first), ("all_scheduled", self.scheduled), ("all_running", self.running))}
        return {"pods": self.pods, "jobs": len(jobs), **since, "end": round(time.monotonic() - stopped, 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bed", default="kubernetes")
    parser.add_argument("--pods", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(Round(options.bed, options.pods, folder).run()), flush=True)


if __name__ == "__main__":
    main()
