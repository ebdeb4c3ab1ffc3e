"""The built program has the protections of cmake/Hardening.cmake, in our own code too and not only in the libraries."""

import os
import pathlib
import re
import subprocess
import unittest

BUILD = pathlib.Path(os.environ["BUILD_DIR"])
CACHE = dict(re.findall(r"^(\w+):\w+=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.MULTILINE))


def output(*command) -> str:
    return subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True, check=True).stdout


@unittest.skipUnless(CACHE["PIPELINE_HARDENED"] == "ON" and CACHE["CMAKE_BUILD_TYPE"] == "Release", "this build is not to be hardened")
class Hardening(unittest.TestCase):
    def test_the_program_is_loaded_at_random_addresses_and_its_tables_and_stack_hold_no_code(self):
        pipe = BUILD / "bin/pipe"
        self.assertRegex(output("readelf", "-hW", pipe), r"Type:\s+DYN")
        dynamic = output("readelf", "-dW", pipe)
        self.assertRegex(dynamic, r"FLAGS_1.*\bNOW\b.*\bPIE\b")
        segments = output("readelf", "-lW", pipe)
        self.assertIn("GNU_RELRO", segments)
        stack = next(line for line in segments.splitlines() if "GNU_STACK" in line)
        self.assertIn(" RW ", stack)
        self.assertNotIn("E", stack.split("GNU_STACK")[1])
        for line in segments.splitlines():
            self.assertNotRegex(line, r"LOAD.* RWE ")

    def test_each_room_checks_its_stack_and_its_buffers(self):
        # A function without an array on its stack needs no guard. As few functions need one, the libraries of all rooms (folders below src) are read together.
        calls = {symbol for room in BUILD.glob("src/libpipeline_*.a") for symbol in re.findall(r"^ +U (\S+)$", output("nm", "-u", room), re.MULTILINE)}
        self.assertIn("__stack_chk_fail", calls)
        self.assertTrue([name for name in calls if re.fullmatch(r"__\w+_chk", name)], "no buffer's size is checked: _FORTIFY_SOURCE")
        self.assertTrue([name for name in calls if "__glibcxx_assert_fail" in name], "no index is checked: _GLIBCXX_ASSERTIONS")

    def test_programs_for_pods_are_static_and_have_no_code_on_their_stack(self):
        for name in ("pipe_agent", "pipe_stager"):
            segments = output("readelf", "-lW", BUILD / "lib" / name)
            self.assertNotIn("INTERP", segments, f"{name} has to run in any image")
            self.assertIn(" RW ", next(line for line in segments.splitlines() if "GNU_STACK" in line))


if __name__ == "__main__":
    unittest.main()
