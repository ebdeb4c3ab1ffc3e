"""`pipe export`: the validators of RO-Crate, in-toto and OpenLineage accept what it writes."""

import hashlib
import http.server
import json
import subprocess
import sys
import threading
import unittest

from support import NOWHERE, PipeTest

# The second package has RO-Crate's JSON-LD context, so that the validator needs no other server.
VALIDATORS = ["roc-validator==0.13.0", "rocrate==0.13.0", "in-toto-attestation", "openlineage-python"]

# Runs with the validators, and prints a list of the errors that they find. Requests for RO-Crate's context are answered from its package.
CHECK = """
import email.message, io, json, pathlib, urllib.request, urllib.response
import requests, rocrate, urllib3
from google.protobuf import json_format
from in_toto_attestation.predicates.provenance.v1 import provenance_pb2
from in_toto_attestation.v1 import statement, statement_pb2
from openlineage.client import event_v2
from rocrate_validator import models, services

context = (pathlib.Path(rocrate.__file__).parent / "data/ro-crate.jsonld").read_bytes()

def send(self, request, **named):
    assert request.url == json.loads(context)["@id"], request.url
    response = requests.Response()
    response.status_code, response.url, response.request = 200, request.url, request
    response.headers["Content-Type"] = "application/ld+json"
    response.raw = urllib3.HTTPResponse(io.BytesIO(context), response.headers, 200, request_url=request.url, preload_content=False)
    return response

def urlopen(opener, request, *others, **named):
    assert request.full_url == json.loads(context)["@id"], request.full_url
    headers = email.message.Message()
    headers["Content-Type"] = "application/ld+json"
    return urllib.response.addinfourl(io.BytesIO(context), headers, request.full_url, 200)

requests.adapters.HTTPAdapter.send = send
urllib.request.OpenerDirector.open = urlopen
wrong = []
for profile in ("ro-crate-1.1", "workflow-run-crate-0.5"):
    settings = services.ValidationSettings(rocrate_uri="crate", profile_identifier=profile, requirement_severity=models.Severity.REQUIRED)
    wrong += [f"{issue.check.identifier} {issue.message}" for issue in services.validate(settings).get_issues()]
document = json.load(open("model.intoto.json"))
# Unknown members are errors.
statement.Statement.copy_from_pb(json_format.ParseDict(document, statement_pb2.Statement())).validate()
json_format.ParseDict(document["predicate"], provenance_pb2.Provenance())
for line in open("events.ndjson"):
    event = json.loads(line)
    event_v2.RunEvent(  # The class checks times and identifiers.
        eventTime=event["eventTime"], producer=event["producer"], eventType=event_v2.RunState[event["eventType"]],
        run=event_v2.Run(runId=event["run"]["runId"]), job=event_v2.Job(namespace=event["job"]["namespace"], name=event["job"]["name"]),
        inputs=[event_v2.InputDataset(namespace=each["namespace"], name=each["name"]) for each in event["inputs"]],
        outputs=[event_v2.OutputDataset(namespace=each["namespace"], name=each["name"]) for each in event["outputs"]])
print(json.dumps(wrong))
"""


class Exports(PipeTest):
    orchestrator = "local"

    def environment(self, env):
        return super().environment({"DOCKER_HOST": NOWHERE, **env})

    def setUp(self):
        super().setUp()
        self.write("train.py", "import sys\nopen(sys.argv[2], 'w').write(open(sys.argv[1] + '/a.csv').read() * 2)\n")
        self.write("corpus.txt", "outside\n")
        self.pipeline({
            "load": {"command": "mkdir ${outputs.data} && cat ${inputs.corpus} > ${outputs.data}/a.csv", "inputs": {"corpus": "./corpus.txt"}, "outputs": ["data"]},
            "train": {"command": ["python3", "train.py", "${inputs.data}", "${outputs.model}"], "inputs": {"data": "load.data"},
                      "outputs": {"model": "model.bin"}, "parameters": {"c": None}},
        }, parameters={"c": 0.5, "name": "a \"quoted\" text", "deep": True})
        self.made = self.run_pipe().events("run_started")[0]["run"]

    def export(self, *words) -> str:
        """Executes `pipe export`, and returns its stdout."""
        result = self.pipe("export", *words)
        self.assertEqual(result.code, 0, result)
        return result.out

    def test_validators_accept_what_is_written(self):
        self.export("latest", "--format", "ro-crate", "-o", "crate", "--license", "Apache-2.0")
        self.export("latest", "train.model", "--format", "slsa", "-o", "model.intoto.json")
        self.export("latest", "--format", "openlineage", "-o", "events.ndjson")
        venv = self.folder / "validators"
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        subprocess.run([venv / "bin/pip", "install", "-q", *VALIDATORS], check=True)
        self.write("check.py", CHECK)
        checked = subprocess.run([venv / "bin/python", "check.py"], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual((checked.returncode, checked.stdout), (0, "[]\n"), checked.stderr)

    def test_a_crate_has_the_outputs_and_says_how_they_were_made(self):
        self.export("latest", "--format", "ro-crate", "-o", "crate")
        crate = self.folder / "crate"
        self.assertEqual((crate / "outputs/train/model.bin").read_text(), "outside\n" * 2)
        self.assertEqual((crate / "outputs/load/data/a.csv").read_text(), "outside\n")
        entities = {each["@id"]: each for each in json.loads((crate / "ro-crate-metadata.json").read_text())["@graph"]}
        self.assertEqual(entities["./"]["mainEntity"], {"@id": "pipeline.yaml"})
        self.assertEqual(entities["#value-name"]["value"], "a \"quoted\" text")
        self.assertEqual(entities["#run-train"]["object"], {"@id": "outputs/load/data/"})
        self.assertEqual(entities["#run-train"]["result"], {"@id": "outputs/train/model.bin"})
        self.assertEqual(entities["outputs/train/model.bin"]["sha256"], hashlib.sha256(b"outside\n" * 2).hexdigest())
        for words, written in ((["--format", "ro-crate", "-o", "other"], "other"), (["--format", "openlineage", "-o", "events"], "events")):
            self.assertEqual(json.loads(self.export("latest", *words, "--output", "json")), {"written": str(self.folder / written)})
        again = self.pipe("export", "latest", "--format", "ro-crate", "-o", "crate")
        self.assertEqual(again.code, 2, "an existing folder is not changed")
        self.run_pipe()
        self.export("latest", "--format", "ro-crate", "-o", "reused")
        self.assertEqual((self.folder / "reused/outputs/train/model.bin").read_text(), "outside\n" * 2)

    def test_provenance_names_code_inputs_and_parameters(self):
        self.run_pipe()  # Reused: the provenance is that of the run that made it.
        document = json.loads(self.export("latest", "train.model", "--format", "slsa"))
        self.assertEqual(document["subject"][0]["digest"]["sha256"], hashlib.sha256(b"outside\n" * 2).hexdigest())
        definition = document["predicate"]["buildDefinition"]
        self.assertEqual((definition["externalParameters"]["step"], definition["externalParameters"]["parameters"]["c"]), ("train", 0.5))
        materials = {each["name"]: each for each in definition["resolvedDependencies"]}
        self.assertEqual(materials["code"]["uri"], "file:train.py")
        self.assertTrue(materials["input data"]["uri"].endswith("/load.data"))
        self.assertEqual(list(materials["code"]["digest"]), ["sha256"])
        self.assertEqual(list(materials["input data"]["digest"]), ["pipeTreeSha256"], "the input is a folder")
        self.assertTrue(document["predicate"]["runDetails"]["metadata"]["invocationId"].startswith(self.made + "/train"))
        self.assertEqual(self.pipe("export", "latest", "--format", "slsa").code, 2)
        wrong = self.pipe("export", "latest", "train.modl", "--format", "slsa")
        self.assertEqual(wrong.code, 2)
        self.assertIn("train.model", wrong.text)

    def test_events_are_sent_to_a_server_and_datasets_connect_steps(self):
        bodies = []

        class Server(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(201)
                self.end_headers()

            def log_message(self, *words):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            address = f"http://127.0.0.1:{server.server_port}/api/v1/lineage"
            self.assertIn("6 events sent", self.export("latest", "--format", "openlineage", "-o", address))
            self.assertEqual(json.loads(self.export("latest", "--format", "openlineage", "-o", address, "--output", "json")), {"sent": 6})
        finally:
            server.shutdown()
            thread.join()
            server.server_close()
        self.assertEqual([each["eventType"] for each in bodies], (["START"] + ["START", "COMPLETE"] * 2 + ["COMPLETE"]) * 2)
        ends = {each["job"]["name"]: each for each in bodies if each["eventType"] == "COMPLETE"}
        self.assertEqual(ends["e2e.load"]["outputs"][0]["name"], ends["e2e.train"]["inputs"][0]["name"])
        self.assertEqual(ends["e2e.train"]["run"]["facets"]["parent"]["run"]["runId"], ends["e2e"]["run"]["runId"])
        refused = self.pipe("export", "latest", "--format", "openlineage", "-o", f"http://127.0.0.1:{server.server_port}/api/v1/lineage")
        self.assertEqual(refused.code, 3, refused)


if __name__ == "__main__":
    unittest.main()
