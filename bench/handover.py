#!/usr/bin/env python3
"""Measures a large file on its way from one step to the next on one machine: the time from the last line of the step that writes it to the first line
of the step that reads it, beside one SHA-256 of the file by OpenSSL, in each round; whether both steps see one file; by how much the disk fills, also
for a copy that is asked for.

    bench/handover.py [--size GIB] [--rounds N] [--orchestrators local,docker] [--folder FOLDER] [--pipe PROGRAM]

--folder chooses the file system: on XFS and Btrfs a copy shares its blocks. With `settled`, the step waits until its file is on the disk; without,
that wait is a part of the time, because an artifact survives a power failure."""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def used_bytes(folder: pathlib.Path) -> int:
    """Returns the bytes in use on the folder's file system."""
    os.sync()
    about = os.statvfs(folder)
    return (about.f_blocks - about.f_bfree) * about.f_frsize


def digest_time(file: pathlib.Path) -> float:
    begin = time.monotonic()
    subprocess.run(["openssl", "dgst", "-sha256", file], check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - begin


def measure(pipe: str, folder: pathlib.Path, orchestrator: str, size: int, is_settled: bool) -> dict:
    settle = "sync; " if is_settled else ""
    steps = {"make": {"command": f"head -c {size} /dev/zero > ${{outputs.data}}; {settle}date +%s.%N > ${{outputs.end}}", "outputs": ["data", "end"]},
             "use": {"command": "date +%s.%N > ${outputs.begin}; stat -L -c %i ${inputs.data} > ${outputs.inode}", "inputs": {"data": "make.data"},
                     "outputs": ["begin", "inode"]}}
    settings = {"docker": {"parent_image": "debian:bookworm-slim"}} if orchestrator == "docker" else {}
    (folder / "pipeline.yaml").write_text(json.dumps({"name": "handover", "settings": settings, "steps": steps}))

    def run(*words: str) -> str:
        return subprocess.run([pipe, *words], cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout

    before = used_bytes(folder)
    run("run", "pipeline.yaml", "--no-cache", "--orchestrator", orchestrator)
    run("artifacts", "latest")  # Makes the links.
    made = {name: next(folder.glob(f".pipe/outputs/*/*/{name}")) for name in ("data", "end", "begin", "inode")}
    text = {name: path.read_text() for name, path in made.items() if name != "data"}
    data = made["data"].resolve()
    grown = used_bytes(folder) - before
    begin = time.monotonic()
    run("artifacts", "latest", "make.data", "--copy", "copy")
    copied = time.monotonic() - begin
    copy_grown = used_bytes(folder) - before - grown
    return {"seconds": float(text["begin"]) - float(text["end"]), "digest": digest_time(data), "one file": data.stat().st_ino == int(text["inode"]),
            "disk": grown / size, "copy": copied, "disk of copy": copy_grown / size}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=float, default=4, help="GiB")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--orchestrators", default="local,docker")
    parser.add_argument("--folder", type=pathlib.Path, default=None)
    parser.add_argument("--pipe", default=str(ROOT / "build/release/bin/pipe"))
    arguments = parser.parse_args()
    print("orchestrator  written  handover  SHA-256  times  one file  disk  copy  disk of copy")
    for orchestrator in arguments.orchestrators.split(","):
        for is_settled in (False, True):
            rounds = []
            for _ in range(arguments.rounds):
                folder = pathlib.Path(tempfile.mkdtemp(prefix="handover-", dir=arguments.folder))
                try:
                    size = int(arguments.size * (1 << 30))
                    rounds.append(measure(arguments.pipe, folder, orchestrator, size, is_settled))
                finally:
                    subprocess.run(["chmod", "-R", "u+w", folder], check=False)
                    shutil.rmtree(folder)
            middle = {key: statistics.median(each[key] for each in rounds) for key in rounds[0]}
            times = statistics.median(each["seconds"] / each["digest"] for each in rounds)
            shared = "yes" if all(each["one file"] for each in rounds) else "no"
            print(f"{orchestrator:12}  {'settled' if is_settled else 'now':7}  {middle['seconds']:6.2f} s  {middle['digest']:5.2f} s  {times:5.2f}  "
                  f"{shared:8}  {middle['disk']:4.2f}  {middle['copy']:.2f} s  {middle['disk of copy']:.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
