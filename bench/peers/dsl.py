"""A C++ program whose functions are the steps (bench/dsl_program.cpp), and programs with which its parts are compared."""

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
    """Returns a program with all headers of the standard library that pipeline.hpp includes: no compiler can read pipeline.hpp faster than those."""
    words = [compiler(), "-std=c++20", "-H", "-fsyntax-only", "-I", str(include), str(include / "pipeline/pipeline.hpp")]
    included = subprocess.run(words, stderr=subprocess.PIPE, text=True, check=True).stderr  # -H lists the headers there, with a dot for each level
    headers, above = [], [include / "pipeline"]
    for dots, file in re.findall(r"^(\.+) (\S+)$", included, re.MULTILINE):
        above[len(dots):] = [Path(file)]
        if len(dots) == 1 or above[len(dots) - 1].is_relative_to(include):
            if not Path(file).is_relative_to(include) and "nlohmann" not in file:
                headers.append(f"#include <{file}>\n")
    return "".join(headers) + EMPTY


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
    """Returns the command that writes, hashes and reads a file of 1 GiB by the system's tools."""
    return Command(["sh", "-c", f"dd if=/dev/zero of=data bs=1M count={GIB >> 20} 2>&1 && openssl dgst -sha256 data && cat data >/dev/null"], folder)


def copied(folder: Path) -> Command:
    return Command(["sh", "-c", f"dd if=/dev/zero of=data bs=1M count={GIB >> 20} 2>&1 && cp --reflink=never data copy && cat copy >/dev/null"], folder)


def emptied(folder: Path) -> Path:
    """Returns the folder, emptied of an earlier round's files, although artifacts are read-only."""
    if folder.exists():
        subprocess.run(["chmod", "-R", "u+w", str(folder)], check=False)
        shutil.rmtree(folder)
    folder.mkdir()
    return folder
