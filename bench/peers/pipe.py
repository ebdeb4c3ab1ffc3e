"""`pipe` itself."""

from pathlib import Path

from model import IMAGE, Command, Peer, Step, Work
from peers.venv import first_line

HEADERS = {
    "container": f"name: bench\nsettings: {{docker: {{parent_image: '{IMAGE}', network: none}}}}\nsteps:\n",
    "process": "name: bench\nsteps:\n",
    "copy": "name: bench\nsteps:\n",
}


class Pipe(Peer):
    name = "pipe"

    def __init__(self, program: Path, build_type: str):
        self.program = str(program)
        self.build_type = build_type

    def version(self) -> str:
        return f"{first_line(self.version_command())} ({self.build_type} build)"

    def version_command(self) -> list[str]:
        return [self.program, "--version"]

    def project(self, work: Work, folder: Path) -> Command:
        entry = copy_entry if work.kind == "copy" else true_entry
        (folder / "pipeline.yaml").write_text(HEADERS[work.kind] + "".join(map(entry, work.steps)))
        (folder / "seed").write_text("seed\n")
        place = "docker" if work.kind == "container" else "local"
        cache = [] if work.kind == "copy" else ["--no-cache"]
        return Command([self.program, "run", "pipeline.yaml", "--orchestrator", place, "--jobs", str(work.jobs), "--state", ".pipe", *cache], folder)


def true_entry(step: Step) -> str:
    after = f"\n    after: [{', '.join(step.needs)}]" if step.needs else ""
    return f'  {step.name}:\n    command: ["true"]{after}\n'


def copy_entry(step: Step) -> str:
    if not step.needs:
        return f'  {step.name}:\n    command: [cp, seed, "${{outputs.file}}"]\n    outputs: [file]\n'
    return f'  {step.name}:\n    command: [cp, "${{inputs.file}}", "${{outputs.file}}"]\n    inputs: {{file: {step.needs[0]}.file}}\n    outputs: [file]\n'
