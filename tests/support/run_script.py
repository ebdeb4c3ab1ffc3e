"""Runs the tests of one script for ctest, and prints why a test has skipped itself; scripts/lib/skipped.py reads those lines. The exit code is 0 after
success, 1 after a failure or without any test, and 77, which ctest calls skipped, if all tests have skipped themselves. Usage: run_script.py SCRIPT"""

import importlib
import pathlib
import sys
import unittest


def main(script: pathlib.Path) -> int:
    sys.path[0] = str(script.parent)
    suite = unittest.defaultTestLoader.loadTestsFromModule(importlib.import_module(script.stem))
    result = unittest.TextTestRunner().run(suite)
    for test, reason in result.skipped:
        print(f"skipped: {test.id()}: {reason}", file=sys.stderr)
    # Neither a class that is skipped by its setUpClass nor a subtest counts as a test that has run.
    skipped = sum(isinstance(test, unittest.TestCase) and not hasattr(test, "test_case") for test, _ in result.skipped)
    if not result.wasSuccessful():
        return 1
    if result.testsRun > skipped:
        return 0
    return 77 if result.skipped else 1


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
