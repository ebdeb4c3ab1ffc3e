"""Stands for the tools of a sequencing pipeline, in plain Python: each command reads and writes the files that it is given."""

import argparse
import collections
import json
import pathlib


def reads_of(path: str) -> list[tuple[str, str]]:
    """Returns name and bases of each read of a FASTQ file."""
    lines = pathlib.Path(path).read_text().splitlines()
    return [(lines[i][1:], lines[i + 1]) for i in range(0, len(lines), 4)]


def qc(reads: str, out: str):
    bases = "".join(read for _, read in reads_of(reads))
    if not bases:
        raise SystemExit(f"{reads} has no reads")
    quality = {"reads": len(reads_of(reads)), "unknown": round(bases.count("N") / len(bases), 3)}
    pathlib.Path(out).write_text(json.dumps(quality))


def trim(reads: str, out: str, min_length: int):
    trimmed = ((name, read.rstrip("N")) for name, read in reads_of(reads))
    kept = [f"@{name}\n{read}\n+\n{'I' * len(read)}\n" for name, read in trimmed if len(read) >= min_length]
    pathlib.Path(out).write_text("".join(kept))


def count(genes: str, out: str, reads: list[str]):
    lines = pathlib.Path(genes).read_text().split()
    sequences = dict(zip((line[1:] for line in lines[::2]), lines[1::2]))
    counts = collections.Counter({gene: 0 for gene in sequences})
    for path in reads:
        counts.update(gene for _, read in reads_of(path) for gene, sequence in sequences.items() if read in sequence)
    pathlib.Path(out).write_text("".join(f"{gene}\t{number}\n" for gene, number in sorted(counts.items())))


def gathered(folder: str) -> list[tuple[dict, pathlib.Path | None]]:
    """Returns the values and the file of each instance; no file where there is none."""
    index = json.loads(pathlib.Path(folder, "index.json").read_text())
    return [(entry["parameters"], pathlib.Path(folder, entry["file"]) if entry["file"] else None) for entry in index]


def report(out: str, counts: str, quality: str):
    lines = []
    for values, path in gathered(quality):
        found = json.loads(path.read_text()) if path else "not known"
        lines.append(f"quality\t{values['sample']} {values['lane']}\t{found}\n")
    for values, path in gathered(counts):
        lines += [f"count\t{values['sample']}\t{line}\n" for line in path.read_text().splitlines()]
    pathlib.Path(out).write_text("".join(lines))


def main():
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(required=True)
    for run, words in ((qc, ["reads", "out"]), (trim, ["reads", "out"]), (count, ["genes", "out"]), (report, ["out"])):
        command = commands.add_parser(run.__name__)
        command.set_defaults(run=run)
        for word in words:
            command.add_argument(word)
        if run is trim:
            command.add_argument("--min-length", type=int, default=0)
        elif run is count:
            command.add_argument("reads", nargs="+")
        elif run is report:
            command.add_argument("--counts", required=True)
            command.add_argument("--quality", required=True)
    given = vars(parser.parse_args())
    given.pop("run")(**given)


if __name__ == "__main__":
    main()
