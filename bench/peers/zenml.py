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
IMAGE_PIPELINE = '''import json, os
from zenml import pipeline, step
from zenml.config import DockerSettings

SETTINGS = DockerSettings(parent_image=os.environ.get("BENCH_IMAGE", "none"), requirements=json.loads(os.environ.get("BENCH_REQUIREMENTS", "[]")),
                          environment=json.loads(os.environ.get("BENCH_ENVIRONMENT", "{}")),
                          build_config={"build_options": {"labels": {"pipe-bench-peer": "zenml"}}})

@step(enable_cache=False)
def trivial() -> None:
    pass

@pipeline(enable_cache=False, settings={"docker": SETTINGS})
def bench_environment():
    trivial()

if __name__ == "__main__":
    bench_environment()
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

    def image_project(self, folder: Path, requirements: list[str], mark: str) -> Command:
        """Returns the command that runs one trivial step in an image with these requirements. `mark` tells the environment from every earlier one."""
        self.ensure_stack()
        (folder / "bench_images.py").write_text(IMAGE_PIPELINE)
        settings = {"BENCH_IMAGE": ensure_image(with_ca=True), "BENCH_REQUIREMENTS": json.dumps(requirements), "BENCH_ENVIRONMENT": json.dumps({"BENCH_MARK": mark})}
        return Command([str(self.bin / "python"), "bench_images.py"], folder, {**self.environment, **settings})

    def ensure_stack(self) -> None:
        """Registers a stack with the local Docker orchestrator, which is active from then on; does nothing if that was done before."""
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
        """Removes the containers and images that ZenML leaves behind."""
        images = listed("images", "-q", "--filter", "label=pipe-bench-peer=zenml")
        containers = {one for name in [*images, image_name(False), image_name(True)] for one in listed("ps", "-aq", "--filter", f"ancestor={name}")}
        for command in (["rm", "-f", *containers] if containers else []), (["rmi", "-f", *images] if images else []):
            if command:
                docker(*command, check=False)


def image_name(with_ca: bool) -> str:
    return "pipe-bench-zenml:" + hashlib.sha256((REQUIREMENT + PARENT).encode()).hexdigest()[:12] + ("-ca" if with_ca else "")


def ensure_image(with_ca: bool = False) -> str:
    """Installs ZenML in a container and commits that: the same with every engine, BuildKit or not. (ZenML uploads the pipeline's module to its artifact
    store.) The host's CA is mounted for pip, and pip's settings are given to its process alone, so neither stays in the image; an image that ZenML is to
    build upon has them inside, as it has no other way to hand them to its build."""
    name = image_name(with_ca)
    if docker("image", "inspect", name, check=False).returncode == 0:
        return name
    settings = [f"{key}={value}" for key, value in os.environ.items() if key in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "HTTPS_PROXY", "https_proxy")]
    settings += ["PIP_BREAK_SYSTEM_PACKAGES=1", "UV_BREAK_SYSTEM_PACKAGES=1", "UV_SYSTEM_PYTHON=1"]  # as in ZenML's own images
    if with_ca:
        settings += [f"{key}={HOST_CA}" for key in ("PIP_CERT", "SSL_CERT_FILE") if HOST_CA.exists()]
        container = docker("create", ensure_image()).stdout.strip()
    else:
        ca = ["--volume", f"{HOST_CA}:/tmp/ca.crt:ro"] if HOST_CA.exists() else []
        trust = ["PIP_CERT=/tmp/ca.crt"] if ca else []
        container = docker("create", "--workdir", "/app", *ca, PARENT, "env", *settings, *trust, "pip", "install", "--quiet", "--no-cache-dir", REQUIREMENT).stdout.strip()
    try:
        if not with_ca:
            docker("start", "--attach", container)
        elif HOST_CA.exists():
            docker("cp", "--follow-link", str(HOST_CA), f"{container}:{HOST_CA}")
        changes = [word for setting in (settings if with_ca else []) for word in ("--change", f"ENV {setting}")]
        docker("commit", "--change", 'CMD ["python"]', *changes, container, name)
    finally:
        docker("rm", "-f", container)
    return name


def listed(*arguments: str) -> list[str]:
    return docker(*arguments, check=False).stdout.split()


def docker(*arguments: str, check: bool = True) -> subprocess.CompletedProcess:
    result = subprocess.run(["docker", *arguments], capture_output=True, text=True)
    if check and result.returncode:
        raise Absent(f"`docker {arguments[0]}` failed: {result.stderr.strip()[-300:]}")
    return result
