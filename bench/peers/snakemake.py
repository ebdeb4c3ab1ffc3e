"""Snakemake, driving `cat` or `docker run`: one rule with a wildcard, the form that it handles fastest."""

import json
from collections.abc import Callable
from pathlib import Path

from model import IMAGE, Command, Peer, Work
from peers.venv import ensure_venv, first_line

SHELL = {"container": f"docker run --rm --network none {IMAGE} true && touch {{output}}", "process": "touch {output}", "extend": "cat {input} > {output}; echo {wildcards.step} >> {output}"}
SNAKEFILE = """import json
NEEDS = json.load(open("needs.json"))
rule all:
    input: expand("out/{{step}}", step=NEEDS)
rule step:
    input: lambda wildcards: [f"out/{{name}}" for name in NEEDS[wildcards.step]] or ["seed"]
    output: "out/{{step}}"
    shell: "{shell}"
"""


class Snakemake(Peer):
    name = "snakemake"

    def version(self) -> str:
        self.program = str(ensure_venv("snakemake==9.27.1", "snakemake") / "snakemake")
        return first_line(self.version_command())

    def version_command(self) -> list[str]:
        return [self.program, "--version"]

    def project(self, work: Work, folder: Path) -> Command:
        (folder / "seed").write_text("seed\n")
        (folder / "needs.json").write_text(json.dumps({step.name: step.needs for step in work.steps}))
        (folder / "Snakefile").write_text(SNAKEFILE.format(shell=SHELL[work.kind]))
        return Command([self.program, "--cores", str(work.jobs), "--quiet", "all"], folder)

    def make_done(self, work: Work, folder: Path, run: Callable[[Command], object]) -> Command:
        """Snakemake's first run of 10,000 jobs would take many minutes, so the files of more than 1,000 are written here, in order. The second run takes the same
        time either way."""
        if len(work.steps) <= 1000:
            return super().make_done(work, folder, run)
        command = self.project(work, folder)
        (folder / "out").mkdir()
        for step in work.steps:
            (folder / "out" / step.name).write_text("seed\n")
        return command
