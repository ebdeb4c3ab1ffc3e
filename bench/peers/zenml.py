"""ZenML with its local Docker orchestrator, in an image that is ready (skip_build); it runs one step after another."""

import hashlib
import json
import os
import subprocess
from pathlib import Path

from model import Absent, Command, Peer, Work
from peers.venv import CACHE, ensure_venv, first_line

REQUIREMENT = "zenml[local]==0.98.0"
PARENT = "python:3.11-slim-bookworm"
HOST_CA = Path("/etc/ssl/certs/ca-certificates.crt")
PIPELINE = '''import json, os
from zenml import pipeline, step
from zenml.config import DockerSettings

@step(enable_cache=False)
def trivial() -> None:
    pass

@pipeline(enable_cache=False, settings={"docker": DockerSettings(parent_image=os.environ.get("BENCH_IMAGE", "none"), skip_build=True)})
def bench():
    done = {}
    for name, needs in json.loads(os.environ["BENCH_STEPS"]):
        done[name] = trivial(id=name, after=[done[need] for need in needs])

if __name__ == "__main__":
    bench()
'''


class ZenML(Peer):
    name = "zenml"

    def version(self) -> str:
        self.bin = ensure_venv(REQUIREMENT, "zenml")
        self.environment = {
            **dict.fromkeys(("ZENML_ANALYTICS_OPT_IN", "AUTO_OPEN_DASHBOARD", "ZENML_ENABLE_RICH_TRACEBACK"), "false"),
            "ZENML_CONFIG_PATH": str(CACHE / "zenml-config"), "ZENML_LOGGING_VERBOSITY": "WARN", "PATH": f"{self.bin}:{os.environ['PATH']}",
        }
        return first_line([str(self.bin / "python"), "-c", "import importlib.metadata as m; print(m.version('zenml'))"])

    def version_command(self) -> list[str]:
        return [str(self.bin / "zenml"), "version"]

    def project(self, work: Work, folder: Path) -> Command:
        assert work.kind == "container"
        self.ensure_stack()
        (folder / "bench_pipeline.py").write_text(PIPELINE)
        steps = json.dumps([[step.name, step.needs] for step in work.steps])
        return Command([str(self.bin / "python"), "bench_pipeline.py"], folder, {**self.environment, "BENCH_STEPS": steps, "BENCH_IMAGE": ensure_image()})

    def ensure_stack(self) -> None:
        """A stack with the local Docker orchestrator, registered once and active from then on."""
        registered = Path(self.environment["ZENML_CONFIG_PATH"]) / "bench-stack"
        if registered.exists():
            return
        for command in ("orchestrator register bench --flavor=local_docker", "image-builder register bench --flavor=local",
                        "stack register bench -o bench -a default -i bench", "stack set bench"):
            result = subprocess.run([str(self.bin / "zenml"), *command.split()], env={**os.environ, **self.environment}, capture_output=True, text=True)
            if result.returncode:
                raise Absent(f"`zenml {command}` failed: {(result.stderr + result.stdout).strip()[-300:]}")
        registered.touch()

    def clean_up(self) -> None:
        """It leaves its containers behind."""
        ids = subprocess.run(["docker", "ps", "-aq", "--filter", f"ancestor={image_name()}"], capture_output=True, text=True).stdout.split()
        if ids:
            subprocess.run(["docker", "rm", "-f", *ids], capture_output=True)


def image_name() -> str:
    return "pipe-bench-zenml:" + hashlib.sha256((REQUIREMENT + PARENT).encode()).hexdigest()[:12]


def ensure_image() -> str:
    """Installs ZenML in a container and commits that: the same with every engine, BuildKit or not. (ZenML uploads the pipeline's module to its artifact
    store.) The host's CA is mounted for pip, and pip's settings are given to its process alone, so neither stays in the image."""
    name = image_name()
    if docker("image", "inspect", name, check=False).returncode == 0:
        return name
    settings = [f"{key}={value}" for key, value in os.environ.items() if key in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "HTTPS_PROXY", "https_proxy")]
    ca = ["--volume", f"{HOST_CA}:/tmp/ca.crt:ro"] if HOST_CA.exists() else []
    settings += ["PIP_CERT=/tmp/ca.crt"] if ca else []
    container = docker("create", "--workdir", "/app", *ca, PARENT, "env", *settings, "PIP_BREAK_SYSTEM_PACKAGES=1", "pip", "install", "--quiet", "--no-cache-dir",
                       REQUIREMENT).stdout.strip()
    try:
        docker("start", "--attach", container)
        docker("commit", "--change", 'CMD ["python"]', container, name)
    finally:
        docker("rm", "-f", container)
    return name


def docker(*arguments: str, check: bool = True) -> subprocess.CompletedProcess:
    result = subprocess.run(["docker", *arguments], capture_output=True, text=True)
    if check and result.returncode:
        raise Absent(f"`docker {arguments[0]}` failed: {result.stderr.strip()[-300:]}")
    return result
