"""`apt_snapshot`: Debian packages as an archive had them at a date. The test's archive has signed indexes of two dates."""

import re
import shutil
import unittest

from support import PARENT, PipeTest, docker
from support_apt import Archive

OLD, NEW = "20240101T000000Z", "20240601T120000Z"


@unittest.skipUnless(shutil.which("dpkg-deb") and shutil.which("gpg"), "packages are made with dpkg-deb, and signed with gpg")
class AptSnapshot(PipeTest):
    def setUp(self):
        super().setUp()
        self.name = f"tool{self.mark}"  # No other test has it in the builder's cache.
        self.archive = Archive(self.folder / "archive")
        self.addCleanup(self.archive.close)
        for moment, version in ((OLD, "1.0"), (NEW, "2.0")):
            self.archive.publish(f"debian/{moment}", **{self.name: version})
        self.archive.publish("vendor/debian", other="7.0")
        self.parent = f"{self.repository}:parent"
        # As in Debian's own images, but for the key and for a source of somebody else.
        self.write("parent/debian.sources", "Types: deb\nURIs: http://deb.debian.org/debian\nSuites: bookworm\nComponents: main\nSigned-By: /usr/share/keyrings/test.gpg\n")
        self.write("parent/vendor.list", f"deb [signed-by=/usr/share/keyrings/test.gpg] {self.archive.url}/vendor/debian bookworm main\n")
        shutil.copy(self.archive.keyring, self.folder / "parent/test.gpg")
        self.make_parent("FROM debian:bookworm-slim\nRUN rm -f /etc/apt/sources.list\nCOPY test.gpg /usr/share/keyrings/\nCOPY debian.sources vendor.list /etc/apt/sources.list.d/\n")

    def make_parent(self, dockerfile: str):
        """Builds the parent image."""
        self.write("parent/Dockerfile", dockerfile)
        docker("build", "-q", "-t", self.parent, str(self.folder / "parent"))

    def declare(self, moment: str, *packages: str, **settings):
        self.pipeline({"one": {"command": [self.name]}},
                      {"parent_image": self.parent, "apt_packages": list(packages) or [self.name], "apt_snapshot": moment,
                       "build_config": {"build_options": {"network": "host"}}, **settings})

    def run_pipe(self, *words, **env):
        return super().run_pipe(*words, **{"PIPE_APT_SNAPSHOT_MIRROR": self.archive.url, **env})

    def test_the_date_chooses_the_version(self):
        for moment, version in (("2024-01-01", "1.0"), ("2024-06-01T12:00:00Z", "2.0"), (OLD, "1.0")):
            self.declare(moment)
            self.assertIn(f"{self.name} {version}", self.run_pipe("--no-cache").text)
        self.assertEqual(len(self.images()), 3, "the parent and an image for each date; the same date in another form makes no other image")
        asked = [path for path in self.archive.requests if path.startswith("/debian/")]
        self.assertTrue(asked)
        self.assertEqual({path.split("/")[2] for path in asked}, {OLD, NEW})

    def test_a_change_of_the_date_is_a_change_of_the_key_and_is_reported(self):
        self.declare("2024-01-01")
        self.run_pipe()
        self.assertEqual(self.run_pipe().steps(), {"one": "cached"})
        self.declare("2024-06-01T12:00:00Z")
        self.assertIn(f"apt_snapshot changed (added {NEW}, removed {OLD})", self.pipe("plan", "pipeline.yaml").out)
        self.assertEqual(self.run_pipe().steps(), {"one": "succeeded"})

    def test_nothing_of_the_snapshot_stays_in_the_image_and_other_sources_stay_as_they_are(self):
        self.declare("2024-01-01", self.name, "other")
        said = self.run_pipe().text
        self.assertRegex(said, "apt_snapshot pins no packages of: deb .*vendor/debian")
        (image,) = set(self.images()) - {docker("image", "inspect", "-f", "{{.Id}}", self.parent)}
        look = "cat /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list.d/vendor.list; ls /etc/apt/sources.list.d /var/lib/apt/lists /var/cache/apt/archives; ls -d /dev/pipe* /pipe* 2>/dev/null"
        found, before = (docker("run", "--rm", "--network", "none", each, "sh", "-c", f"{look}; true") for each in (image, self.parent))
        self.assertEqual(found, before)
        self.assertEqual(docker("run", "--rm", "--network", "none", image, "sh", "-c", f"grep -rIl -e '{OLD}' -e '{self.archive.url}' /etc /var /usr/share /root /tmp || true"),
                         "/etc/apt/sources.list.d/vendor.list")
        self.assertNotIn(self.archive.url, docker("image", "inspect", image) + docker("history", "--no-trunc", image))

    def test_a_date_that_the_archive_lacks_and_a_parent_without_archives_are_errors_with_advice(self):
        self.declare("2020-01-01")
        failure = self.run_pipe(code=4).failure("one")
        self.assertRegex("\n".join(failure["hints"]), "has no snapshot of that time.*PIPE_APT_SNAPSHOT_MIRROR")
        whole, self.parent = self.parent, f"{self.repository}:without-sources"
        self.make_parent(f"FROM {whole}\nRUN rm /etc/apt/sources.list.d/debian.sources\n")
        self.declare("2024-01-01")
        self.assertIn("has neither in its sources", self.run_pipe(code=4).failure("one")["message"])
        self.assertIn("PIPE_APT_SNAPSHOT_MIRROR is not an address", self.run_pipe(code=4, PIPE_APT_SNAPSHOT_MIRROR="http://x/#$(id)").failure("one")["message"])

    def test_a_wrong_date_is_an_error_of_the_file(self):
        self.declare("1.1.2024")
        wrong = self.pipe("plan", "pipeline.yaml")
        self.assertEqual(wrong.code, 2, wrong)
        self.assertIn("did you mean `2024-01-01`?", wrong.err)
        self.declare("2999-01-01")
        self.assertIn("a date that has passed (UTC)", self.pipe("plan", "pipeline.yaml").err)

    def test_the_lock_has_the_date_and_the_versions(self):
        self.parent = f"{self.repository}:python"
        self.make_parent(f"FROM {PARENT}\nRUN rm -f /etc/apt/sources.list\nCOPY test.gpg /usr/share/keyrings/\nCOPY debian.sources vendor.list /etc/apt/sources.list.d/\n")
        self.declare("2024-01-01", requirements=["six==1.16.0"])
        self.assertIn("six 1.16.0", self.lock_text())
        self.assertRegex((self.folder / "pipeline.lock").read_text(), f'    apt_snapshot: "{OLD}"\n    apt_packages:\n      - "{self.name}=1.0"\n')
        self.declare(NEW, requirements=["six==1.16.0"])
        changes = re.findall("  ([+~-] .*)", self.lock_text())
        self.assertEqual(changes, [f"+ apt snapshot {NEW}", f"- apt snapshot {OLD}", f"+ apt {self.name}=2.0", f"- apt {self.name}=1.0"])

    def lock_text(self) -> str:
        """Returns what `pipe lock` prints."""
        locked = self.pipe("lock", "pipeline.yaml", PIPE_APT_SNAPSHOT_MIRROR=self.archive.url)
        self.assertEqual(locked.code, 0, locked)
        return locked.out


if __name__ == "__main__":
    unittest.main()
