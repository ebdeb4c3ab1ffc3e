"""The bare Engine API calls, by bench/raw_engine.cpp: the floor. With a `body` made by body_like(), its containers have the options that
`pipe` uses, as `docker inspect` shows them for a container of pipe's; without one they have none but the command and `network: none`."""

import json
from pathlib import Path

from model import IMAGE, Command, Peer, Work
from peers.venv import first_line

MINIMAL = {"Image": IMAGE, "Cmd": ["true"], "HostConfig": {"NetworkMode": "none"}}


class RawEngine(Peer):
    def __init__(self, tools: Path, name: str = "raw API", body: dict | None = None):
        self.name = name
        self.program = str(tools / "bench_raw_engine")
        self.body = body or MINIMAL

    def version(self) -> str:
        return first_line(["docker", "version", "--format", "engine {{.Server.Version}}, API {{.Server.APIVersion}}"])

    def project(self, work: Work, folder: Path) -> Command:
        assert work.kind == "container" and work.shape in ("chain", "wide")
        (folder / "body.json").write_text(json.dumps(self.body))
        jobs = 1 if work.shape == "chain" else work.jobs
        return Command([self.program, str(len(work.steps)), str(jobs), "body.json"], folder)


def body_like(inspected: dict, scratch: Path, words: list[str]) -> dict:
    """Returns the body of POST /containers/create for an equal container that runs `words`; its mounts come from folders below `scratch`."""
    config = {key: value for key, value in inspected["Config"].items() if key not in ("Hostname", "Entrypoint", "Cmd", "Labels") and value}
    host = {key: value for key, value in inspected["HostConfig"].items() if value}
    host["Binds"] = [rebase(bind.split(":"), scratch) for bind in host.get("Binds", [])]
    host["Mounts"] = [{**mount, "Source": str(scratch_folder(mount["Source"], scratch))} if mount["Type"] == "bind" else mount for mount in host.get("Mounts", [])]
    labels = {f"bench.{name}": value for name, value in (inspected["Config"].get("Labels") or {}).items()}  # or pipe would take them for its own orphans
    return {**config, "Entrypoint": words, "Labels": labels, "HostConfig": host}


def rebase(bind: list[str], scratch: Path) -> str:
    return ":".join([str(scratch_folder(bind[0], scratch)), *bind[1:]])


def scratch_folder(source: str, scratch: Path) -> Path:
    """Returns a folder in place of `source`, which is removed once pipe's step has ended."""
    folder = scratch / source.strip("/").replace("/", "_")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
