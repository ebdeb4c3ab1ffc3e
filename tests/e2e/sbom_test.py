"""`pipe sbom`: the validators of the formats accept the documents, and the documents name what is in the image."""

import json
import subprocess
import sys
import unittest

from support import PipeTest, docker

VALIDATORS = ["cyclonedx-python-lib[json-validation]", "spdx-tools", "in-toto-attestation"]

# Runs with the validators, and prints a list of the errors that they find.
CHECK = """
import json, sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from google.protobuf import json_format
from in_toto_attestation.predicates.provenance.v1 import provenance_pb2
from in_toto_attestation.v1 import statement, statement_pb2
from spdx_tools.spdx.parser.parse_anything import parse_file
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document

wrong = []
error = JsonStrictValidator(SchemaVersion.V1_5).validate_str(open("bill.cdx.json").read())
if error:
    wrong.append(str(error))
wrong += [each.validation_message for each in validate_full_spdx_document(parse_file("bill.spdx.json"))]
document = json.load(open("provenance.json"))
# Unknown members are errors.
statement.Statement.copy_from_pb(json_format.ParseDict(document, statement_pb2.Statement())).validate()
json_format.ParseDict(document["predicate"], provenance_pb2.Provenance())
print(json.dumps(wrong))
"""


class SbomTest(PipeTest):
    def setUp(self):
        super().setUp()
        self.pipeline({"train": {"command": ["python", "-c", "import six"]}}, {"requirements": ["six==1.16.0"], "apt_packages": ["tini"]})

    def test_images_whose_labels_another_program_wrote_have_documents(self):
        image = f"pipe-{self.mark}-labels"
        self.write("labels/Dockerfile", """FROM python:3.11-slim-bookworm\nLABEL pipe.packages='[5, [[6]]]' pipe.parts='{"parent_image": [5], "parent_id": 7}'\n""")
        docker("build", "-q", "-t", image, str(self.folder / "labels"))
        self.addCleanup(docker, "rmi", "-f", image)
        self.pipeline({"train": {"command": ["true"]}}, {"parent_image": image, "skip_build": True})
        self.run_pipe()
        for format in ("cyclonedx", "spdx", "provenance"):
            result = self.pipe("sbom", "latest", "train", "--format", format)
            self.assertEqual(result.code, 0, result)

    def test_documents_are_valid_and_name_packages_and_base(self):
        run = self.run_pipe().events("run_started")[0]["run"]
        texts = {}
        for format, file in (("cyclonedx", "bill.cdx.json"), ("spdx", "bill.spdx.json"), ("provenance", "provenance.json")):
            result = self.pipe("sbom", "latest", "train", "--format", format)
            self.assertEqual(result.code, 0, result)
            self.write(file, result.out)
            texts[format] = result.out
        venv = self.folder / "validators"
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        subprocess.run([venv / "bin/pip", "install", "-q", *VALIDATORS], check=True)
        self.write("check.py", CHECK)
        checked = subprocess.run([venv / "bin/python", "check.py"], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual((checked.returncode, checked.stdout), (0, "[]\n"), checked.stderr)
        names = {(each["type"], each["name"], each.get("version")) for each in json.loads(texts["cyclonedx"])["components"]}
        self.assertIn(("library", "six", "1.16.0"), names)
        self.assertIn("tini", {name for _, name, _ in names})
        self.assertIn(("container", "python:3.11-slim-bookworm", None), names)
        self.run_pipe("--no-cache")
        self.assertEqual(self.pipe("sbom", "latest", "train").out, texts["cyclonedx"], "equal images, equal documents")
        self.assertEqual(docker("ps", "-aq", "--filter", f"label=pipe.run={run}"), "", "no container is left")

    def test_an_image_that_was_removed_is_named(self):
        self.run_pipe()
        docker("image", "rm", "-f", *self.images())
        result = self.pipe("sbom", "latest", "train")
        self.assertEqual(result.code, 3, result)
        self.assertIn("the engine does not have the image", result.err)

    def test_steps_without_an_image_are_refused(self):
        self.pipeline({"train": {"command": ["python3", "-c", ""]}})
        self.assertEqual(self.pipe("run", "pipeline.yaml", "--orchestrator", "local").code, 0)
        result = self.pipe("sbom", "latest", "train")
        self.assertEqual(result.code, 2, result)
        self.assertIn("'train' did not run in an image", result.err)
        self.assertEqual(self.pipe("sbom", "latest", "train", "--format", "xml").code, 2)


if __name__ == "__main__":
    unittest.main()
