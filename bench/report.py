"""The results as Markdown, with a table for each section, and an earlier report's results from its JSON."""

import json
from dataclasses import dataclass, field

from measure import Samples, paired


@dataclass
class Section:
    title: str
    samples: dict[str, Samples]
    steps: int = 0  # figures are also given for each of so many steps
    floor: str = ""  # the contestant above which the others' cost is given
    target: tuple[str, str, float] | None = None  # row, column (`wall`, `above floor`, `ratio`) and figure
    name: str = ""  # of the measurement that it belongs to, as in `--only`
    taken: str = ""  # when, and what the machine did besides
    notes: list[str] = field(default_factory=list)  # lines of Markdown below the table


def read(text: str) -> list[Section]:
    """Returns the sections of an earlier report's JSON."""
    return [Section(**{**entry, "samples": {who: Samples(**samples) for who, samples in entry["samples"].items()}}) for entry in json.loads(text)["sections"]]


def markdown(about: dict[str, str], versions: dict[str, str], absent: dict[str, str], sections: list[Section]) -> str:
    lines = ["# Benchmark", "", "Made by `scripts/bench`; what the columns mean: README.md.", "", "| machine of the newest sections | |", "|---|---|"]
    lines += [f"| {key} | {value} |" for key, value in about.items()]
    lines += ["", "| contestant | version |", "|---|---|"]
    lines += [f"| {name} | {version} |" for name, version in versions.items()]
    lines += [f"| {name} | absent: {cell(reason)} |" for name, reason in absent.items()]
    for section in sections:
        lines += ["", f"## {section.title}", "", *([f"Taken {section.taken}.", ""] if section.taken else []), *(table(section) if section.samples else []), *section.notes]
    return "\n".join(lines) + "\n"


def table(section: Section) -> list[str]:
    columns = ["", "median ms", "least ms", "most ms"]
    columns += ["ms a step"] if section.steps else []
    counts_requests = any(samples.requests for samples in section.samples.values())
    columns += ["steps a second", "requests a step"] if counts_requests else []
    columns += [f"ms a step above {section.floor}"] if section.floor else []
    columns += ["times pipe"] if "pipe" in section.samples else []
    columns += ["CPU ms", "peak MiB", "target"]
    lines = ["| " + " | ".join(columns) + " |", "|---" + "|---:" * (len(columns) - 2) + "|---|"]
    for name in sorted(section.samples, key=lambda name: (bool(section.samples[name].absent), name != "pipe")):
        samples = section.samples[name]
        if samples.absent:
            lines.append(f"| {name} | absent: {cell(samples.absent)} |" + " |" * (len(columns) - 2))
            continue
        above = paired(section.samples, name, section.floor, lambda own, floor: (own - floor) * 1000 / section.steps) if section.floor else None
        ratio = paired(section.samples, name, "pipe", lambda own, pipe: own / pipe)
        row = [name, ms(samples.median()), ms(min(samples.wall_s)), ms(max(samples.wall_s))]
        row += [ms(samples.median() / section.steps)] if section.steps else []
        row += [number(section.steps / samples.median()), number(middle(samples.requests) / section.steps)] if counts_requests else []
        row += [number(above)] if section.floor else []
        row += [number(ratio)] if "pipe" in section.samples else []
        row += [ms(middle(samples.cpu_s)), f"{middle(samples.max_rss_kib) / 1024:.0f}", verdict(section, name, samples.median() * 1000, above, ratio)]
        lines.append("| " + " | ".join(row) + " |")
    return lines


def verdict(section: Section, name: str, wall_ms: float, above: float | None, ratio: float | None) -> str:
    if not section.target or section.target[0] != name:
        return ""
    _, column, figure = section.target
    if column == "ratio":
        return f">= {figure:g} times: {judge(ratio is not None and ratio >= figure)}"
    value = above if column == "above floor" else wall_ms
    words = "above the floor" if column == "above floor" else "in all"
    return f"<= {figure:g} ms {words}: {judge(value is not None and value <= figure)}"


def judge(met: bool) -> str:
    return "met" if met else "**missed**"


def middle(values: list) -> float:
    return sorted(values)[len(values) // 2]


def ms(seconds: float) -> str:
    return number(seconds * 1000)


def number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}" if abs(value) < 100 else f"{value:,.0f}"


def cell(text: str) -> str:
    return text.replace("|", "/").replace("\n", " ")
