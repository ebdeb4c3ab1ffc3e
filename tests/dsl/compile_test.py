"""Programs that must not compile do not, with the reason in the first lines of the message. The guide's programs compile."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from compilers import compilers  # noqa: E402

FIRST_LINES = 13  # a user sees one more, which says from where the header is included
# The guide declares functions and variables that its own blocks do not use.
UNUSED = ["-Wno-unused-variable", "-Wno-unused-but-set-variable", "-Wno-unused-function", "-Wno-undefined-internal", "-Wno-undefined-inline"]


def compile(file, *options, compiler=os.environ.get("CXX", "g++"), standard="c++20", output=("-fsyntax-only",)):
    return subprocess.run(
        [compiler, f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", *options, "-I", ROOT / "include", *output, file],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, "LC_ALL": "C"},
    )


class WhatMustNotCompile(unittest.TestCase):
    def test_messages_name_the_users_line_and_the_mistake(self):
        cases = sorted((HERE / "compile_fail").glob("*.cpp"))
        self.assertGreater(len(cases), 5)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        (precompiled := pathlib.Path(folder.name, "pipeline/pipeline.hpp.gch")).parent.mkdir()  # g++ prefers it where a source includes the header first
        compile(ROOT / "include/pipeline/pipeline.hpp", output=("-x", "c++-header", "-o", precompiled))
        for case in cases:
            with self.subTest(case.stem):
                done = compile(case, "-I", folder.name)
                self.assertNotEqual(done.returncode, 0, "the wrong program compiles")
                first = "\n".join(done.stdout.splitlines()[:FIRST_LINES])
                self.assertIn(case.name + ":", first, "the user's own line is not among the first")
                for expected in re.findall(r"^// expect: (.*)$", case.read_text(), re.MULTILINE):
                    self.assertIn(expected, first.replace("‘", "'").replace("’", "'"))


class WhatTheGuideShows(unittest.TestCase):
    def test_every_block_of_code_compiles(self):
        blocks = re.findall(r"^```cpp\n(.*?)^```", (ROOT / "docs/dsl.md").read_text(), re.DOTALL | re.MULTILINE)
        self.assertGreater(len(blocks), 5)
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "guide.cpp"
            # The blocks follow one another, as in the guide; statements go into a function of their own.
            head = "#include <pipeline/run.hpp>\n#include <filesystem>\n#include <fstream>\n#include <iostream>\nnamespace pl = pipeline;\nusing namespace pipeline::literals;\n"
            inside, outside = [], []
            for block in blocks:
                if block.startswith("#include"):
                    whole = pathlib.Path(folder) / f"whole{len(outside)}.cpp"
                    whole.write_text(block)
                    done = compile(whole)
                    self.assertEqual(done.returncode, 0, block + done.stdout)
                elif re.match(r"(auto|pl::Pipeline|digits|const|pl::RunResult)\b", block):
                    inside.append(block)
                else:
                    outside.append(block)
            file.write_text(head + "".join(outside) + "void guide(pl::Pipeline& digits) {\n" + "".join(inside) + "}\n")
            for compiler in compilers():
                for standard in ("c++20", "c++2b"):
                    with self.subTest(compiler=compiler, standard=standard):
                        done = compile(file, "-Werror", *UNUSED, compiler=compiler, standard=standard)
                        self.assertEqual(done.returncode, 0, file.read_text() + done.stdout)

    def test_any_json_value_is_argument_and_result_without_the_header_of_nlohmann(self):
        with tempfile.TemporaryDirectory() as folder:
            (file := pathlib.Path(folder) / "json.cpp").write_text(
                "#include <pipeline/pipeline.hpp>\n"
                "pipeline::Json merge(const pipeline::Json& a, pipeline::Json b);\n"
                "void declare(pipeline::Pipeline& p) {\n"
                '  const auto first = p.add(pipeline::step<merge>({.name = "first"}), pipeline::Json{{"a", 1}}, pipeline::param("b", pipeline::Json()));\n'
                "  p.add(pipeline::step<merge>(), first, first);\n"
                "}\n"
            )
            for compiler in compilers():
                with self.subTest(compiler=compiler):
                    done = compile(file, "-Werror", compiler=compiler)
                    self.assertEqual(done.returncode, 0, done.stdout)

    def test_a_program_of_all_kinds_of_steps_compiles_without_a_warning(self):
        for compiler in compilers():
            with self.subTest(compiler=compiler):
                done = compile(HERE / "program.cpp", "-Werror", compiler=compiler)
                self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    unittest.main()
