"""A C++ program whose functions are the steps (bench/dsl_program.cpp), and what its parts are compared with."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from model import Absent, Command, Peer
from peers.venv import first_line

EMPTY = "int main() {}\n"
JSON = "#include <nlohmann/json.hpp>\n" + EMPTY
HEADER = "#include <pipeline/pipeline.hpp>\n" + EMPTY
PIPELINE = """#include <pipeline/pipeline.hpp>
namespace pl = pipeline;
std::vector<double> load(const std::string& file);
double mean(const std::vector<double>& values);
int main(int argc, char** argv) {
  pl::Pipeline numbers{"numbers"};
  auto values = numbers.add(pl::step<load>(), "numbers.csv");
  numbers.add(pl::step<mean>(), values);
  return pl::run_main(numbers, argc, argv);
}
"""
GIB = 1 << 30


def standard_headers(include: Path) -> str:
    """A program with all that the public headers include of the standard library: what no header of ours can be read faster than."""
    lines = {line for header in include.glob("pipeline/*.hpp") for line in header.read_text().splitlines() if re.fullmatch(r"#include <[a-z_]+>", line)}
    return "\n".join(sorted(lines)) + "\n" + EMPTY


class Dsl(Peer):
    name = "pipe, C++ program"

    def __init__(self, tools: Path):
        self.program = str(tools / "bench_dsl_program")

    def version(self) -> str:
        if not Path(self.program).exists():
            raise Absent("bench_dsl_program is not built")
        return "its compiler: " + first_line([compiler(), "--version"])

    def run(self, which: str, folder: Path, place: str = "local", steps: int = 0, limits: list[str] = []) -> Command:
        words = [self.program, "run", "--orchestrator", place, "--jobs", "1", "--no-cache", "--state", ".pipe"]
        return Command([*limits, *words], folder, {"DSL_BENCH": which, "DSL_BENCH_STEPS": str(steps)})

    def spawn(self, count: int, folder: Path) -> Command:
        return Command([self.program, "--spawn", str(count)], folder)


def compiler() -> str:
    return os.environ.get("CXX", "c++")


def compile_command(text: str, flags: list[str], folder: Path, include: Path) -> Command:
    (folder / "source.cpp").write_text(text)
    return Command([compiler(), "-std=c++20", *flags, "-I", str(include), "source.cpp"], folder)


def by_hand(folder: Path) -> Command:
    """A file of 1 GiB is written, hashed and read, by the tools that are there for it."""
    return Command(["sh", "-c", f"dd if=/dev/zero of=data bs=1M count={GIB >> 20} 2>&1 && openssl dgst -sha256 data && cat data >/dev/null"], folder)


def copied(folder: Path) -> Command:
    return Command(["sh", "-c", f"dd if=/dev/zero of=data bs=1M count={GIB >> 20} 2>&1 && cp --reflink=never data copy && cat copy >/dev/null"], folder)


def emptied(folder: Path) -> Path:
    """The folder, without what an earlier round has left: artifacts are read-only."""
    if folder.exists():
        subprocess.run(["chmod", "-R", "u+w", str(folder)], check=False)
        shutil.rmtree(folder)
    folder.mkdir()
    return folder
