"""Measures a large file that a step on a cluster writes and the next one reads, through a bucket: the bytes that the driver receives from the bucket, and
the wall time of the two transfers beside s5cmd's on the same server. Needs `scripts/testbed/kubernetes up` and `scripts/testbed/s3 start`.
Usage: consumer.py [--mebibytes 4096] [--verify consumer|driver] [--rounds 1]; PIPE names the command. Prints a line of JSON for each round."""

import argparse
import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import urllib.parse

from data import BUCKET, ENVIRONMENT, S5CMD
from peers.venv import ensure_venv

ROOT = pathlib.Path(__file__).resolve().parents[1]
PIPE = os.environ.get("PIPE", str(ROOT / "build/release/bin/pipe"))
KUBECONFIG = "/var/lib/pipe-testbed/kubernetes/kubeconfig"


class Relay:
    """Forwards connections to a server, and counts the bytes that pass to the client."""

    def __init__(self, server: tuple[str, int]):
        self.server, self.received, self.lock = server, 0, threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        threading.Thread(target=self.accept, daemon=True).start()

    def url(self) -> str:
        return f"http://127.0.0.1:{self.listener.getsockname()[1]}"

    def accept(self) -> None:
        while True:
            client, _ = self.listener.accept()
            server = socket.create_connection(self.server)
            threading.Thread(target=self.pump, args=(client, server, False), daemon=True).start()
            threading.Thread(target=self.pump, args=(server, client, True), daemon=True).start()

    def pump(self, sender: socket.socket, receiver: socket.socket, is_counted: bool) -> None:
        try:
            while piece := sender.recv(1 << 18):
                with self.lock:
                    self.received += is_counted * len(piece)
                receiver.sendall(piece)
            receiver.shutdown(socket.SHUT_WR)
        except OSError:
            pass


class Round:
    """A run of the two steps through the relay, then s5cmd with a file of the same size."""

    def __init__(self, options: argparse.Namespace, folder: pathlib.Path):
        self.options, self.folder = options, folder
        self.server = dict(line.split("=", 1) for line in ENVIRONMENT.read_text().splitlines())
        self.bucket = pathlib.Path(self.server["DATA"]) / BUCKET
        self.keys = {"AWS_ACCESS_KEY_ID": self.server["ACCESS_KEY"], "AWS_SECRET_ACCESS_KEY": self.server["SECRET_KEY"], "AWS_REGION": "us-east-1"}

    def write_pipeline(self, endpoint: str) -> None:
        store = {"bucket": f"s3://{BUCKET}/pipe", "endpoint": endpoint, "pod_endpoint": self.server["PLAIN"], "verify": self.options.verify}
        profiles = {"lab": {"orchestrator": "kubernetes", "artifact_store": store}}
        (self.folder / "profiles.yaml").write_text(json.dumps(profiles))
        steps = {"make": {"command": f"head -c {self.options.mebibytes}M /dev/urandom > ${{outputs.data}}", "outputs": ["data"]},
                 "use": {"command": "wc -c < ${inputs.data}", "inputs": {"data": "make.data"}}}
        document = {"name": "consumer", "settings": {"docker": {"parent_image": "debian:bookworm-slim"}}, "steps": steps}
        (self.folder / "pipeline.yaml").write_text(json.dumps(document))

    def pipe(self, endpoint: str, *words: str) -> subprocess.CompletedProcess:
        variables = {"AWS_ENDPOINT_URL_S3": endpoint, "KUBECONFIG": KUBECONFIG, "PIPE_HOME": str(self.folder / "state"), "NO_COLOR": "1"}
        return subprocess.run([PIPE, *words], cwd=self.folder, env={**os.environ, **self.keys, **variables}, text=True, timeout=3000, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def run(self) -> dict:
        server = urllib.parse.urlsplit(self.server["PLAIN"])
        link = Relay((server.hostname, server.port))
        self.write_pipeline(link.url())
        began = time.monotonic()
        done = self.pipe(link.url(), "run", "pipeline.yaml", "--profile", "lab", "--no-cache")
        took = time.monotonic() - began
        received = link.received
        shown = self.pipe(link.url(), "show", "--output", "json").stdout
        if done.returncode:
            raise SystemExit(f"`pipe run` ended with {done.returncode}:\n{done.stdout}")
        state = sum(file.stat().st_size for file in (self.folder / "state").rglob("*") if file.is_file() and not file.is_symlink())
        figures = {"run_seconds": round(took, 1), "bytes_received_by_driver": received, "bytes_of_the_state_folder": state, "phases": phases_of(shown)}
        return {**figures, **self.by_s5cmd()}

    def by_s5cmd(self) -> dict:
        program = str(ensure_venv(S5CMD, "s5cmd") / "s5cmd")
        file = self.folder / "large"
        with file.open("wb") as out:
            for _ in range(self.options.mebibytes):
                out.write(os.urandom(1 << 20))
        words, times = [program, "--log", "error", "--endpoint-url", self.server["PLAIN"], "cp"], {}
        for name, ends in (("s5cmd_up", (str(file), f"s3://{BUCKET}/peer")), ("s5cmd_down", (f"s3://{BUCKET}/peer", str(self.folder / "back")))):
            began = time.monotonic()
            subprocess.run([*words, *ends], env={**os.environ, **self.keys}, check=True)
            times[name] = round(time.monotonic() - began, 1)
        return times


def phases_of(shown: str) -> dict:
    """Returns the milliseconds of each phase of each step. The upload is in `transfers_ms` of `make`, the download in `preparing_ms` of `use`."""
    return {step["step"]: step["attempts"][-1]["phases"] for step in json.loads(shown)["steps"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mebibytes", type=int, default=4096)
    parser.add_argument("--verify", default="consumer")
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory() as folder:
            measured = Round(options, pathlib.Path(folder))
            shutil.rmtree(measured.bucket, ignore_errors=True)
            measured.bucket.mkdir(parents=True)
            try:
                print(json.dumps(measured.run()), flush=True)
            finally:
                shutil.rmtree(measured.bucket, ignore_errors=True)


if __name__ == "__main__":
    main()
