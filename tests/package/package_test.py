"""An installation suffices to build a consumer's project; Debian packages and archives are complete and reproducible."""

import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile
import unittest

BUILD = pathlib.Path(os.environ["BUILD_DIR"])
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CCACHE = next(preset for preset in json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"] if preset["name"] == "base")["environment"]


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

    made_packages: tempfile.TemporaryDirectory | None = None

    @classmethod
    def tearDownClass(cls):
        if cls.made_packages:
            cls.made_packages.cleanup()

    def unpacked(self, name: str) -> tuple[pathlib.Path, pathlib.Path]:
        """Returns a Debian package, which is made once for all tests, and the folder of its files."""
        if not Package.made_packages:
            Package.made_packages = tempfile.TemporaryDirectory()
            run("cpack", "--config", BUILD / "CPackConfig.cmake", "-B", Package.made_packages.name, cwd=Package.made_packages.name)
        packages = {file.name.split("_")[0]: file for file in pathlib.Path(Package.made_packages.name).glob("*.deb")}
        self.assertEqual(set(packages), {"pipe", "pipe-dev"})
        root = self.folder / name
        run("dpkg-deb", "-x", packages[name], root)
        return packages[name], root

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
        for private in (str(BUILD), str(ROOT)):
            self.assertNotIn(private, exported, "the installed package names a folder of the build")

    def check_pipeline(self, program):
        """Checks that the program runs, and that its output can be copied."""
        folder = self.folder / "work"
        folder.mkdir()
        run(program, "run", "-o", "local", "--param", "count=5", cwd=folder)
        run(program, "artifacts", "latest", "sum.result", "--copy", "sum.json", cwd=folder)
        self.assertEqual((folder / "sum.json").read_text(), "15.0\n")

    def test_sources_below_a_project_build_with_it(self):
        # Everything is compiled once more. ccache has the results of commands that equal those of our own build, so this build has a folder beside that one.
        build = self.folder / "build"
        binaries = pathlib.Path(tempfile.mkdtemp(dir=BUILD.parent, prefix="package-"))
        self.addCleanup(shutil.rmtree, binaries)
        ours = dict(re.findall(r"^(\w+):\w+=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.MULTILINE))
        same = [f"-D{name}={ours.get(name, '')}" for name in ("CMAKE_BUILD_TYPE", "CMAKE_CXX_FLAGS", "CMAKE_CXX_FLAGS_RELEASE", "PIPELINE_WERROR", "PIPELINE_HARDENED")]
        launcher = ["env", "-C", str(binaries), f"CCACHE_BASEDIR={ROOT}", ours["CMAKE_CXX_COMPILER_LAUNCHER"]] if "CMAKE_CXX_COMPILER_LAUNCHER" in ours else []
        run("cmake", "-S", HERE / "subdirectory", "-B", build, "-G", "Ninja", f"-DPIPELINE_SOURCES={ROOT}", f"-DPIPELINE_BINARIES={binaries}", *same,
            f"-DPIPELINE_LAUNCHER={';'.join(launcher)}")
        run("cmake", "--build", build, "--target", "sums", env={**CCACHE, **os.environ})
        self.check_pipeline(next(path for path in (build / "sums", build / "bin/sums") if path.exists()))

    def test_a_clone_may_lie_in_a_folder_of_any_name(self):
        sources, build = self.folder / "c++" / "pipe (1)", self.folder / "c++" / "build (1)"
        for name in ("cmake", "include", "src", "templates"):
            shutil.copytree(ROOT / name, sources / name)
        for name in ("CHANGELOG.md", "CMakeLists.txt", "LICENSE", "README.md"):
            shutil.copy(ROOT / name, sources / name)
        run("cmake", "-S", sources, "-B", build, "-G", "Ninja", "-DPIPELINE_TESTS=OFF", "-DPIPELINE_UNITY=OFF")
        run("cmake", "--build", build, "--target", "pipeline_built_from")
        nested = {line for line in (build / "build.ninja").read_text().splitlines() if "pipeline_orchestrators.dir/orchestrators/kubernetes/" in line}
        self.assertEqual(nested, set(), "the outer room has the sources of a nested one")

    def test_what_is_installed_is_for_all_users_and_names_no_folder_of_the_build(self):
        prefix = self.folder / "prefix"
        run("cmake", "--install", BUILD, "--prefix", prefix, umask=0o077)
        closed = [str(path) for path in prefix.rglob("*") if path.is_file() and not path.stat().st_mode & 0o004]
        self.assertEqual(closed, [], "other users cannot read it")
        named = [str(file.relative_to(prefix)) for file in prefix.rglob("*") if file.is_file() and not file.is_symlink()
                 for folder in {str(ROOT), str(BUILD)} if folder.encode() in file.read_bytes()]
        self.assertEqual(named, [], "another clone would not make the same bytes")

    def test_packages_made_twice_are_equal_byte_for_byte(self):
        made = []
        for folder, umask in (("one", 0o022), ("two", 0o077)):
            run(ROOT / "scripts/package", "deb", "tar", "wheel", "sbom", umask=umask, env={**os.environ, "BUILD_DIR": str(BUILD), "PACKAGES_DIR": str(self.folder / folder)})
            made.append((self.folder / folder / "SHA256SUMS").read_text())
        self.assertEqual(made[0], made[1])
        for kind in (".deb", ".tar.gz", ".whl", ".cdx.json"):
            self.assertIn(kind + "\n", made[0])

    def test_a_build_of_another_commit_is_refused(self):
        if not (ROOT / ".git").exists():
            self.skipTest("these sources are not a git repository")
        build = self.folder / "earlier"
        (build / "bin").mkdir(parents=True)
        (build / "bin/pipe").write_text("#!/bin/sh\necho 'pipe 0.1.0 (000000000000)'\n")
        (build / "bin/pipe").chmod(0o755)
        (build / "CPackConfig.cmake").touch()
        done = subprocess.run([ROOT / "scripts/package", "tar"], env={**os.environ, "BUILD_DIR": str(build)}, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"^package: .*/bin/pipe was built from commit 000000000000, and the sources are those of [0-9a-f]{12}: build the target `installed` there first\n$")

    def test_sources_without_a_repository_are_packed_with_the_time_of_their_files(self):
        sources, packages = self.folder / "sources", self.folder / "packages"
        sources.mkdir()
        for name in ("scripts", "CHANGELOG.md", "CMakeLists.txt", "LICENSE", "README.md"):
            (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, sources / name)
        os.utime(sources / "CMakeLists.txt", (1_700_000_000, 1_700_000_000))
        run(sources / "scripts/package", "tar", env={**os.environ, "BUILD_DIR": str(BUILD), "PACKAGES_DIR": str(packages)})
        (archive,) = packages.glob("*.tar.gz")
        with tarfile.open(archive) as packed:
            self.assertEqual({entry.mtime for entry in packed}, {1_700_000_000})

    def test_an_installation_after_a_build_of_the_command_alone_has_only_the_command(self):
        build, prefix = self.folder / "build", self.folder / "prefix"
        for script in BUILD.rglob("cmake_install.cmake"):
            copy = build / script.relative_to(BUILD)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(script.read_text().replace(str(BUILD), str(build)))
        (build / "bin").mkdir()
        shutil.copy(BUILD / "bin/pipe", build / "bin/pipe")
        said = run("cmake", "--install", build, "--prefix", prefix)
        self.assertIn("headers and libraries for C++ programs, which have not been built", said)
        self.assertTrue((prefix / "bin/pipe").exists())
        self.assertFalse((prefix / "include").exists())

    def test_archives_of_a_build_for_another_processor_are_refused(self):
        build = self.folder / "cross"
        (build / "bin").mkdir(parents=True)
        (build / "bin/pipe").touch()
        (build / "CPackConfig.cmake").write_text(f'set(CPACK_PROJECT_CONFIG_FILE "{build}/CPackArchitecture.cmake")\n')
        done = subprocess.run([ROOT / "scripts/package", "deb", "wheel"], env={**os.environ, "BUILD_DIR": str(build)}, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("made on the processor that they are for", done.stderr)
        self.assertFalse((self.folder / "packages").exists(), "nothing was begun")

    def test_debian_packages_have_the_copyright_of_all_that_is_in_them(self):
        _, root = self.unpacked("pipe")
        text = (root / "usr/share/doc/pipe/copyright").read_text()
        self.assertEqual((self.unpacked("pipe-dev")[1] / "usr/share/doc/pipe-dev/copyright").read_text(), text)
        stanzas = [dict(re.findall(r"^([A-Z][A-Za-z-]*): *((?:.*\n?(?:^[ \t].*\n?)*))", stanza, re.MULTILINE)) for stanza in text.split("\n\n")]
        self.assertTrue(stanzas[0]["Format"].startswith("https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/"))
        # Each licence that a file is under has its text, and no other has.
        files = [stanza for stanza in stanzas if "Files" in stanza]
        used = {name for stanza in files for name in re.split(r" (?:and|or) ", stanza["License"].strip())}
        self.assertEqual(used, {stanza["License"].splitlines()[0] for stanza in stanzas[1:] if "Files" not in stanza})
        self.assertTrue(all(stanza["Copyright"].strip() for stanza in files))
        pattern = files[1]["Files"].split()[0]
        self.assertTrue(list(root.glob(pattern)), pattern)
        # The linker's command lines name the static libraries, and scripts/lib/packages.sh names the packages of libraries that are compiled in as headers.
        ninja = (BUILD / "build.ninja").read_text()
        archives = {path for line in re.findall(r"^  LINK_LIBRARIES = (.*)$", ninja, re.MULTILINE) if not re.search("gtest|benchmark", line) for path in line.split() if re.match(r"/.*\.a$", path)}
        self.assertTrue(archives)
        owners = {line.split(":")[0] for line in run("dpkg-query", "--search", *sorted(archives)).splitlines()}
        named = re.search(r"^BUILD_PACKAGES=\((.*?)\)$", (ROOT / "scripts/lib/packages.sh").read_text(), re.MULTILINE | re.DOTALL)[1]
        # libcurl and libgit2 are loaded at run time; Boost.Process is covered by libboost-dev.
        headers = {name for name in re.findall(r"(?<![\w.+-])[a-z][a-z0-9+-]*-dev\b", named)} - {"libcurl4-openssl-dev", "libgit2-dev", "libboost-process-dev"}
        # Neither rule finds fmt, which spdlog's package brings, nor the C library in the static programs for pods.
        missing = {name for name in owners | headers | {"libfmt-dev", "libc6-dev"} if f"\n {name} (" not in text}
        self.assertEqual(missing, set(), "cmake/copyright does not name them")

    def test_debian_packages_name_their_dependencies_and_the_command_runs_from_one(self):
        package, root = self.unpacked("pipe")
        depends = run("dpkg-deb", "-f", package, "Depends")
        for library in ("libc6", "libcurl", "libgit2"):
            self.assertIn(library, depends)
        version = re.search(r"^project\(pipeline VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)[1]
        self.assertRegex(run(root / "usr/bin/pipe", "--version"), rf"^pipe {re.escape(version)}( \([0-9a-f]{{12}}(, changed)?\))?\n$")
        page = self.folder / "pipe.1"
        page.write_bytes(gzip.decompress((root / "usr/share/man/man1/pipe.1.gz").read_bytes()))
        self.assertEqual(run("groff", "-man", "-ww", "-Tutf8", "-z", page), "", "groff warns of nothing")
        self.assertIn("pipe validate", run("groff", "-man", "-Tutf8", page))
        self.assertTrue((root / "usr/share/pipeline/templates").is_dir())
        needed = run("objdump", "-p", root / "usr/bin/pipe")
        for lazy in ("libcurl", "libgit2"):
            self.assertNotIn(f"NEEDED               {lazy}", needed, "the library is to be loaded on first use only")
        self.assertNotIn("NEEDED               libstdc++", needed, "the library is to be linked statically")


if __name__ == "__main__":
    unittest.main()
