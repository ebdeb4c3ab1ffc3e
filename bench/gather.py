#!/usr/bin/env python3
"""Measures what a gather costs the driver: its peak memory (VmHWM) in a run in which all makers are reused, with a last step that gathers their outputs and
with one that does not; the difference is the gather's. The makers are processes of this machine, and their outputs a few bytes each.

    bench/gather.py [--pieces 2000,10000,100000] [--orchestrator local|kubernetes] [--pipe PROGRAM]

With `kubernetes`, the last step is a pod of the test bed, and the pieces go to it through a bucket (scripts/testbed/kubernetes up, scripts/testbed/s3
start): 100,000 of them are as many uploads first. The program is $PIPE if that is set."""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
S3_ENVIRONMENT = pathlib.Path("/var/lib/pipe-s3/environment")
KUBECONFIG = "/var/lib/pipe-testbed/kubernetes/kubeconfig"
BUCKET = "pipe-bench-gather"
TARGET_MB = 150


def high_water(process: int) -> int:
    """Returns the peak memory of a process in bytes; 0 once it has ended."""
    try:
        lines = pathlib.Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:")), 0)


class Place:
    """A folder with the pipeline, and the orchestrator of its last step."""

    def __init__(self, pipe: str, orchestrator: str):
        self.pipe, self.orchestrator, self.bucket = pipe, orchestrator, None
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="gather-"))
        self.environment = dict(os.environ)
        if orchestrator == "kubernetes":
            self.name_bucket()

    def name_bucket(self) -> None:
        server = dict(line.split("=", 1) for line in S3_ENVIRONMENT.read_text().splitlines())
        self.bucket = pathlib.Path(server["DATA"]) / BUCKET
        shutil.rmtree(self.bucket, ignore_errors=True)
        self.bucket.mkdir()
        store = {"bucket": f"s3://{BUCKET}", "endpoint": server["PLAIN"]}
        (self.folder / "profiles.yaml").write_text(json.dumps({"bench": {"orchestrator": "kubernetes", "artifact_store": store}}))
        self.environment |= {"AWS_ACCESS_KEY_ID": server["ACCESS_KEY"], "AWS_SECRET_ACCESS_KEY": server["SECRET_KEY"], "PIPE_PROFILE": "bench",
                             "AWS_ENDPOINT_URL_S3": server["PLAIN"]}
        self.environment.setdefault("KUBECONFIG", KUBECONFIG)

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        if self.bucket:
            shutil.rmtree(self.bucket, ignore_errors=True)

    def run(self, pieces: int, is_gathered: bool) -> tuple[int, float]:
        """Returns the driver's peak memory in bytes, and the seconds that the run took."""
        make = {"matrix": {"i": list(range(pieces))}, "command": "echo ${params.i} > ${outputs.y}", "outputs": ["y"], "orchestrator": "local"}
        last = {"command": "echo none > ${outputs.n}", "outputs": ["n"], "cache": False, "orchestrator": self.orchestrator, "after": ["make"]}
        if is_gathered:
            last |= {"command": "find -L ${inputs.all} -type f -name '*make*' | wc -l > ${outputs.n}", "inputs": {"all": "make[*].y"}}
        settings = {"docker": {"parent_image": "debian:bookworm-slim"}} if self.orchestrator == "kubernetes" else {}
        (self.folder / "pipeline.yaml").write_text(json.dumps({"name": "gather", "settings": settings, "steps": {"make": make, "last": last}}))
        begin, peak = time.monotonic(), 0
        with (self.folder / "log").open("wb") as log:
            process = subprocess.Popen([self.pipe, "run", "pipeline.yaml", "--orchestrator", self.orchestrator, "--output", "json"], cwd=self.folder,
                                       env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
            while process.poll() is None:
                peak = max(peak, high_water(process.pid))
                time.sleep(0.02)
        if process.returncode:
            raise SystemExit((self.folder / "log").read_text(errors="replace")[-2000:])
        if is_gathered:
            self.check(pieces)
        return peak, time.monotonic() - begin

    def check(self, pieces: int) -> None:
        found = subprocess.run([self.pipe, "artifacts", "latest", "last.n", "--copy", "n"], cwd=self.folder, env=self.environment, check=True, capture_output=True)
        file = self.folder / "n"
        count = int(file.read_text())
        file.unlink()
        if count != pieces:
            raise SystemExit(f"the last step has found {count} pieces, not {pieces}: {found.stdout.decode()}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pieces", default="2000,10000,100000")
    parser.add_argument("--orchestrator", choices=("local", "kubernetes"), default="local")
    parser.add_argument("--pipe", default=os.environ.get("PIPE") or str(ROOT / "build/release/bin/pipe"))
    arguments = parser.parse_args()
    print(f"pieces  made in  peak without the gather  peak with it  a piece  with it in  (target: at most {TARGET_MB} MB)")
    for pieces in map(int, arguments.pieces.split(",")):
        place = Place(arguments.pipe, arguments.orchestrator)
        try:
            _, make_seconds = place.run(pieces, is_gathered=False)
            without, _ = place.run(pieces, is_gathered=False)
            peak, seconds = place.run(pieces, is_gathered=True)
        finally:
            place.close()
        verdict = "met" if peak <= TARGET_MB * 1_000_000 else "missed"
        print(f"{pieces:,}  {make_seconds:.0f} s  {without / 1e6:.1f} MB  {peak / 1e6:.1f} MB  {(peak - without) / pieces:,.0f} B  {seconds:.1f} s  ({verdict})", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
