"""What is installed is enough: for a consumer's project, and as Debian packages."""

import os
import pathlib
import subprocess
import tempfile
import unittest

BUILD = pathlib.Path(os.environ["BUILD_DIR"])
HERE = pathlib.Path(__file__).resolve().parent


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode != 0:
        raise AssertionError(f"{command} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


class Package(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_installed_command_runs_and_a_consumer_builds_with_the_installed_package(self):
        prefix = self.folder / "prefix"
        run("cmake", "--install", BUILD, "--prefix", prefix)
        self.assertIn("0.1.0", run(prefix / "bin/pipe", "--version"))
        build = self.folder / "build"
        run("cmake", "-S", HERE / "consumer", "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}")
        run("cmake", "--build", build)
        self.assertEqual(run(build / "consumer"), "consumer 1 cached\n")
        run(build / "values")
        self.check_pipeline(build / "sums")
        exported = "".join(file.read_text() for file in prefix.rglob("pipeline*.cmake"))
        for private in (str(BUILD), str(HERE.parents[1])):
            self.assertNotIn(private, exported, "the installed package names a folder of the build")

    def check_pipeline(self, program):
        """It runs, and what it has made can be had."""
        folder = self.folder / "work"
        folder.mkdir()
        run(program, "run", "-o", "local", "--param", "count=5", cwd=folder)
        run(program, "artifacts", "latest", "sum.result", "--copy", "sum.json", cwd=folder)
        self.assertEqual((folder / "sum.json").read_text(), "15.0\n")

    def test_sources_below_a_project_build_with_it(self):
        build = self.folder / "build"
        run("cmake", "-S", HERE / "subdirectory", "-B", build, "-G", "Ninja", f"-DPIPELINE_SOURCES={HERE.parents[1]}", "-DPIPELINE_WERROR=ON",
            "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O0")  # everything is compiled once more, and no compiler cache helps: paths differ
        run("cmake", "--build", build, "--target", "sums")
        self.check_pipeline(next(path for path in (build / "sums", build / "bin/sums") if path.exists()))

    def test_debian_packages_name_what_they_need_and_the_command_runs_from_one(self):
        run("cpack", "--config", BUILD / "CPackConfig.cmake", "-B", self.folder / "deb", cwd=self.folder)
        packages = {file.name.split("_")[0]: file for file in (self.folder / "deb").glob("*.deb")}
        self.assertEqual(set(packages), {"pipe", "pipe-dev"})
        depends = run("dpkg-deb", "-f", packages["pipe"], "Depends")
        for library in ("libc6", "libcurl", "libgit2", "libarchive"):
            self.assertIn(library, depends)
        root = self.folder / "root"
        run("dpkg-deb", "-x", packages["pipe"], root)
        self.assertIn("0.1.0", run(root / "usr/bin/pipe", "--version"))
        self.assertTrue((root / "usr/share/pipeline/templates").is_dir())
        needed = run("objdump", "-p", root / "usr/bin/pipe")
        for lazy in ("libcurl", "libgit2", "libarchive", "libstdc++"):
            self.assertNotIn(f"NEEDED               {lazy}", needed, "it is to be loaded on first use only")


if __name__ == "__main__":
    unittest.main()
