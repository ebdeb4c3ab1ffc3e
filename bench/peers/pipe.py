"""`pipe` itself."""

import json
import subprocess
from pathlib import Path

from model import IMAGE, Command, Peer, Step, Work
from peers.venv import first_line

REPOSITORY = "pipe-bench"  # of the images that it builds here
HEADERS = {
    "container": f"name: bench\nsettings: {{docker: {{parent_image: '{IMAGE}', network: none}}}}\nsteps:\n",
    "process": "name: bench\nsteps:\n",
    "extend": "name: bench\nsteps:\n",
}


class Pipe(Peer):
    name = "pipe"
    orchestrator = "docker"
    environment: dict[str, str] = {}

    def __init__(self, program: Path, build_type: str):
        self.program = str(program)
        self.build_type = build_type

    def version(self) -> str:
        return f"{first_line(self.version_command())} ({self.build_type} build)"

    def version_command(self) -> list[str]:
        return [self.program, "--version"]

    def project(self, work: Work, folder: Path) -> Command:
        entry = extend_entry if work.kind == "extend" else true_entry
        (folder / "pipeline.yaml").write_text(HEADERS[work.kind] + "".join(map(entry, work.steps)))
        (folder / "seed").write_text("seed\n")
        place = "docker" if work.kind == "container" else "local"
        cache = [] if work.kind == "extend" else ["--no-cache"]
        return Command([self.program, "run", "pipeline.yaml", "--orchestrator", place, "--jobs", str(work.jobs), "--state", ".pipe", *cache], folder)

    def plan(self, work: Work, folder: Path) -> Command:
        self.project(work, folder)
        if work.shape == "matrix":
            rows = ", ".join(map(str, range(len(work.steps) // 100)))
            columns = ", ".join(map(str, range(100)))
            (folder / "pipeline.yaml").write_text(
                HEADERS[work.kind] + f"  step:\n    matrix: {{row: [{rows}], column: [{columns}]}}\n    command: ['true']\n")
        return Command([self.program, "plan", "pipeline.yaml", "--orchestrator", "local", "--state", ".pipe"], folder)

    def image_project(self, folder: Path, requirements: list[str], mark: str) -> Command:
        """Returns the command that runs one trivial step in an image with these requirements. `mark` tells the environment from every earlier one; if it ends
        with `cold`, nothing is taken from the package cache."""
        # uv installs in both cases: it is the default, and the second setting only fills the line.
        installer = "python_package_installer_args: {no-cache: true}" if mark.endswith("cold") else "python_package_installer: uv"
        (folder / "pipeline.yaml").write_text(f"""name: bench
settings:
  docker:
    parent_image: python:3.11-slim-bookworm
    target_repository: {REPOSITORY}
    {installer}
    environment: {{BENCH_MARK: "{mark}"}}
    requirements: {json.dumps(requirements)}
steps:
  trivial:
    command: ["true"]
""")
        return Command([self.program, "run", "pipeline.yaml", "--orchestrator", self.orchestrator, "--state", ".pipe", "--no-cache"], folder, self.environment)

    def image_of(self, command: Command) -> str:
        """Returns the image of image_project's step."""
        plan = subprocess.run([self.program, "plan", "pipeline.yaml", "--orchestrator", "docker", "--state", ".pipe", "--output", "json"], cwd=command.cwd,
                              check=True, capture_output=True, text=True).stdout
        return json.loads(plan)["steps"][0]["environment"]

    def clean_up(self) -> None:
        """Removes the images of image_project and of dsl_program.cpp."""
        images = subprocess.run(["docker", "images", "-q", REPOSITORY], capture_output=True, text=True).stdout.split()
        if images:
            subprocess.run(["docker", "rmi", "-f", *images], capture_output=True)


class PipeLocal(Pipe):
    """Runs steps as processes in virtual environments, whose caches are in a folder of the benchmark's."""

    name = "pipe, local"
    orchestrator = "local"

    def __init__(self, pipe: Pipe, cache: Path):
        super().__init__(Path(pipe.program), pipe.build_type)
        self.environment = {"PIPE_CACHE_DIR": str(cache / "pipe"), "UV_CACHE_DIR": str(cache / "uv")}


def true_entry(step: Step) -> str:
    after = f"\n    after: [{', '.join(step.needs)}]" if step.needs else ""
    return f'  {step.name}:\n    command: ["true"]{after}\n'


def extend_entry(step: Step) -> str:
    before = "${inputs.file}" if step.needs else "seed"
    inputs = f"    inputs: {{file: {step.needs[0]}.file}}\n" if step.needs else ""
    return f"  {step.name}:\n    command: cat {before} > ${{outputs.file}}; echo {step.name} >> ${{outputs.file}}\n{inputs}    outputs: [file]\n"
