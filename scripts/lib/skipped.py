"""Prints which tests have skipped themselves in the last run of ctest, and why. For scripts/test.

Usage: skipped.py LASTTEST.LOG [--known FILE]
FILE has patterns of names (fnmatch) of tests that may skip themselves, one a line, with `#` before a
comment. A test that is skipped and matches none is an error: exit status 1."""

import collections
import fnmatch
import pathlib
import re
import sys

GTEST = re.compile(r"^\S+:\d+: Skipped\n(.*?)\n*^\[  SKIPPED \]", re.MULTILINE | re.DOTALL)
SCRIPT = re.compile(r"^skipped: (\S+): (.*)$", re.MULTILINE)
BED = re.compile(r"^[\w-]+: skipped: (.*)$", re.MULTILINE)


def skipped_tests(log: str):
    """Yields pairs of a skipped test's name and its reason. The name of a test in a script follows the script's name."""
    for section in re.split(r"^\d+/\d+ Testing: ", log, flags=re.MULTILINE)[1:]:
        name = section.split("\n", 1)[0]
        output = section.partition("-" * 58 + "\n")[2].partition("<end of output>")[0]
        for test, reason in SCRIPT.findall(output):
            yield f"{name}.{test.partition('.')[2] or test}", reason
        if match := GTEST.search(output) or BED.search(output):
            yield name, " ".join(match[1].split())


def main(log, known):
    by_reason = collections.defaultdict(list)
    for name, reason in skipped_tests(pathlib.Path(log).read_text(errors="replace")):
        by_reason[reason].append(name)
    if by_reason:
        print(f"\nSkipped, {sum(map(len, by_reason.values()))} tests:")
    for reason, names in sorted(by_reason.items()):
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        print(f"  {reason}: {', '.join(names[:3])}{more}")
    if known is None:
        return 0
    patterns = [words[0] for line in pathlib.Path(known).read_text().splitlines() if (words := line.partition("#")[0].split())]
    unknown = [name for names in by_reason.values() for name in names if not any(fnmatch.fnmatch(name, pattern) for pattern in patterns)]
    for name in unknown:
        print(f"test: {name} has skipped itself, and {known} does not list it", file=sys.stderr)
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[3] if len(sys.argv) > 3 else None))
