"""Type checkers: the package passes mypy and pyright in their strict modes, and so do programs that use it; mistakes in those are found."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from python_support import ROOT

HERE = pathlib.Path(__file__).resolve().parent
WRONG = ["wrong.py:4:", "wrong.py:8:", "wrong.py:14:", "wrong.py:15:", "wrong.py:16:"]


class Checkers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.bin = pathlib.Path(folder.name, "bin")
        subprocess.run([sys.executable, "-m", "venv", folder.name], check=True)
        done = subprocess.run([cls.bin / "pip", "-q", "install", "mypy==2.4.1", "pyright==1.1.414"], stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise unittest.SkipTest(f"no mypy and pyright from the package index: {done.stderr.strip().splitlines()[-1]}")

    def check(self, program, *words, cwd):
        done = subprocess.run([self.bin / program, *words], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env={**os.environ, "MYPY_CACHE_DIR": str(self.bin.parent / "cache"), "PYTHONPATH": str(ROOT / "python"), "MYPYPATH": str(ROOT / "python")})
        return done.returncode, done.stdout

    def assert_passes(self, *words, cwd):
        code, said = self.check(*words, cwd=cwd)
        self.assertEqual(code, 0, said)

    def test_type_checkers_find_mistakes(self):
        # The first two mistakes are in decorators. mypy then takes their functions for untyped, and so finds nothing in the calls below.
        for program, words, lines in (("pyright", (), WRONG), ("mypy", ("--strict",), WRONG[:2])):
            with self.subTest(program):
                code, said = self.check(program, *words, "wrong.py", cwd=HERE / "typed")
                self.assertEqual(code, 1, said)
                for line in lines:
                    self.assertIn(line, said)

    def test_the_package_passes_type_checkers(self):
        for program, words in (("mypy", ("--strict", "pipe_ml")), ("pyright", ())):
            with self.subTest(program):
                self.assert_passes(program, *words, cwd=ROOT / "python")

    def test_a_program_of_all_kinds_of_steps_passes_type_checkers(self):
        for program, words in (("mypy", ("--strict",)), ("pyright", ())):
            with self.subTest(program):
                self.assert_passes(program, *words, "right.py", cwd=HERE / "typed")


if __name__ == "__main__":
    unittest.main()
