"""Parent images that are archives on this machine: loaded once, and part of the key by their content."""

import json
import unittest

from support import PipeTest, docker, images_in
from support_archive import write_oci_archive


class ImageArchives(PipeTest):
    def declare(self, parent: str, **settings):
        """Writes a pipeline whose step copies the archive's /etc/which to an output, and then $MORE."""
        self.pipeline({"step": {"command": "read -r x </etc/which; echo \"$x$MORE\" >${outputs.x}", "outputs": ["x"]}}, {"parent_image": parent, **settings})

    def loaded(self) -> list[str]:
        """Returns the names of parent images that were loaded from archives."""
        return [name for name in images_in(self.repository) if ":parent-" in name]

    def test_an_archive_is_loaded_once_and_its_content_is_part_of_the_key(self):
        archive = self.folder / "image.tar"
        self.declare("oci-archive:image.tar")
        missing = self.pipe("validate", "pipeline.yaml")
        self.assertEqual(missing.code, 2, missing)
        self.assertRegex(missing.text, r"pipeline\.yaml:\d+:\d+: error: the file 'image\.tar' does not exist")
        write_oci_archive(archive, "one\n")
        whole = archive.read_bytes()
        archive.write_bytes(whole[:len(whole) // 2])
        self.assertIn("cannot read the image oci-archive:image.tar: it ends in the middle of a file", self.run_pipe(code=3).text)
        archive.write_bytes(whole)
        self.assertIn("oci-archive:image.tar is missing: it will be loaded", json.dumps(self.plan()))
        self.assertEqual(self.run_pipe().steps(), {"step": "succeeded"})
        self.assertEqual(self.artifact("step.x"), "one\n")
        [name] = self.loaded()
        docker("save", "-o", str(self.folder / "saved.tar"), name)
        self.declare(f"docker-archive:saved.tar:{name}")
        self.assertEqual(self.run_pipe().steps(), {"step": "cached"})
        self.declare("oci-archive:image.tar", environment={"MORE": "+"})
        self.assertEqual(self.run_pipe().steps(), {"step": "succeeded"})
        self.assertEqual(self.artifact("step.x"), "one+\n")
        write_oci_archive(archive, "two\n")
        self.assertEqual(self.run_pipe().steps(), {"step": "succeeded"})
        self.assertEqual(self.artifact("step.x"), "two+\n")
        self.assertEqual(len(self.loaded()), 2)


if __name__ == "__main__":
    unittest.main()
