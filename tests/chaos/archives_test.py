"""Many generated archives with links, `..`, devices, holes, deep folders, and names that collide or are empty: unpacking them changes nothing outside of the
target folder. A unit test, HostileArchives, makes and unpacks them; this test runs it with many more archives.
"""

import os
import pathlib
import re
import subprocess
import unittest

from support_chaos import SEED, figure, scaled


class Archives(unittest.TestCase):
    def test_nothing_outside_the_target_changes(self):
        program = next(pathlib.Path(os.environ["BUILD_DIR"]).rglob("unit_file_tree"))
        count = scaled(10_000, at_least=1000)
        done = subprocess.run([program, "--gtest_filter=HostileArchives.nothing_outside_changes_and_memory_stays_bounded"], text=True, check=False,
                              env={**os.environ, "PIPE_ARCHIVE_SEED": str(SEED), "PIPE_ARCHIVE_COUNT": str(count)}, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, 0, done.stdout)
        figure("archives", re.search(r"seed \d+: (.*)", done.stdout)[1])


if __name__ == "__main__":
    unittest.main()
