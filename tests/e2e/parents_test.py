"""Parent images with an unusual Python: requirements are installed where the step's `python` imports them."""

import unittest

from lock_test import LockTest
from support import PARENT, docker

FIND_MARKER = "import os, sysconfig; print(os.path.join(sysconfig.get_path('stdlib'), 'EXTERNALLY-MANAGED'))"
FIND_USER_SITE = "import site; print(site.getusersitepackages())"


class Parents(LockTest):
    def parent(self, script: str, *changes: str) -> str:
        """Returns the name of an image in which the script has run. `changes` are instructions for `docker commit --change`."""
        container = docker("create", "--label", f"e2e={self.mark}", "--network", "none", PARENT, "sh", "-ec", script)
        self.addCleanup(docker, "rm", "-f", container)
        docker("start", "--attach", container)
        image = f"{self.repository}:parent"
        docker("commit", *(word for change in changes for word in ("--change", change)), container, image)
        return image

    def assert_step_prints(self, expected: str, parent: str, **settings):
        """Runs a step on this parent that requires `top`, with each installer, and checks what it prints."""
        self.write("show.py", "import sys, top, base; print('prefix', sys.prefix, 'top', top.version)\n")
        for installer in ("uv", "pip"):
            with self.subTest(installer=installer):
                self.declare("top", parent_image=parent, python_package_installer=installer, **settings)
                self.assertIn(expected, self.run_pipe().text)
                self.assertEqual(self.locked(), {"base": "1.0", "top": "1.0"})

    def test_the_first_python_on_path_gets_the_packages(self):
        """Like images of conda, which have a Python in /opt/conda beside that of the distribution."""
        parent = self.parent("python3 -m venv --without-pip --system-site-packages /opt/other", "ENV PATH=/opt/other/bin:/usr/local/bin:/usr/bin:/bin")
        self.assert_step_prints("prefix /opt/other top 1.0", parent)

    def test_a_python_that_refuses_installs_gets_them(self):
        """PEP 668 lets a distribution mark its Python as externally managed; an image has one environment, so the mark is ignored."""
        parent = self.parent(f'touch "$(python3 -c "{FIND_MARKER}")"')
        self.assert_step_prints("top 1.0", parent)

    def test_packages_of_one_user_do_not_count_as_installed(self):
        """Another user, such as the step's, could not import them."""
        parent = self.parent(f'folder=$(python3 -c "{FIND_USER_SITE}"); mkdir -p "$folder/top-0.5.dist-info"; cd "$folder"; echo "version = \'0.5\'" >top.py; '
                             'printf "Metadata-Version: 2.1\\nName: top\\nVersion: 0.5\\n" >top-0.5.dist-info/METADATA; echo "top.py,," >top-0.5.dist-info/RECORD')
        self.assert_step_prints("top 1.0", parent, user="65534:65534")


if __name__ == "__main__":
    unittest.main()
