"""Describes the machine on which the figures were measured."""

import os
import platform
import subprocess
from pathlib import Path


def describe() -> dict[str, str]:
    cpu = next((line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), platform.machine())
    memory = next(int(line.split()[1]) for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal"))
    system = next((line.split("=", 1)[1].strip('"') for line in Path("/etc/os-release").read_text().splitlines() if line.startswith("PRETTY_NAME")), "")
    return {
        "CPU": cpu,
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{memory / 2**20:.1f} GiB",
        "kernel": f"{platform.system()} {platform.release()}",
        "system": system,
        "engine": engine(),
    }


def engine() -> str:
    text = "{{.ServerVersion}}, storage {{.Driver}}, cgroup v{{.CgroupVersion}}, runtime {{.DefaultRuntime}}"
    result = subprocess.run(["docker", "info", "--format", text], capture_output=True, text=True)
    return result.stdout.strip() if result.returncode == 0 else f"none ({result.stderr.strip()[-120:]})"
