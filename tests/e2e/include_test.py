"""Steps of an included file run with the code beside that file, in containers and as processes."""

import json
import unittest

from support import PipeTest

COMMON = """parameters: {text: none}
steps:
  make:
    command: python3 make.py ${params.text} ${outputs.data}
    outputs: [data]
"""


class OnDocker(PipeTest):
    def setUp(self):
        super().setUp()
        self.write("shared/common.yaml", COMMON)
        self.write("shared/make.py", "import helper, sys\nopen(sys.argv[2], 'w').write(helper.shown(sys.argv[1]))\n")
        self.write("shared/helper.py", "def shown(text): return 'shared ' + text\n")
        self.write("make.py", "raise SystemExit('the wrong make.py')\n")
        self.pipeline({"copy": {"command": "cat ${inputs.a} ${inputs.b} > ${outputs.all}", "inputs": {"a": "a-make.data", "b": "b-make.data"}, "outputs": ["all"]}},
                      include=[{"file": "shared/common.yaml", "prefix": "a", "parameters": {"text": "one"}}, {"file": "shared/common.yaml", "prefix": "b"}])

    def test_code_is_that_beside_the_included_file(self):
        self.assertEqual(set(self.run_pipe("-p", "b.text=two").steps().values()), {"succeeded"})
        self.assertEqual(self.artifact("copy.all"), "shared oneshared two")
        self.assertEqual(set(self.run_pipe("-p", "b.text=two").steps().values()), {"cached"})
        self.write("shared/helper.py", "def shown(text): return 'new ' + text\n")
        self.assertEqual(set(self.run_pipe("-p", "b.text=two").steps().values()), {"succeeded"})
        self.assertEqual(self.artifact("copy.all"), "new onenew two")

    def test_a_change_of_the_included_file_is_noticed(self):
        self.run_pipe()
        self.write("shared/common.yaml", COMMON.replace("text: none", "text: changed"))
        self.assertEqual(self.run_pipe().steps(), {"a-make": "cached", "b-make": "succeeded", "copy": "succeeded"})
        self.assertEqual(self.artifact("copy.all"), "shared oneshared changed")

    def test_an_error_names_the_included_file_and_its_line(self):
        self.write("shared/common.yaml", COMMON.replace("outputs: [data]", "output: [data]"))
        result = self.pipe("run", "pipeline.yaml", "--orchestrator", self.orchestrator)
        self.assertEqual(result.code, 2, result)
        self.assertIn("shared/common.yaml:5:5: error: unknown key 'output' in step 'a-make'\n        output: [data]\n", result.err)
        error = json.loads(self.run_pipe(code=2).out.splitlines()[-1])
        self.assertIn(("common.yaml", 5), [(each["file"].split("/")[-1], each["line"]) for each in error["diagnostics"]])

    def test_a_warning_names_the_file_that_its_line_is_in(self):
        self.write("shared/common.yaml", COMMON.replace("make.py", "lost.py"))
        warnings = json.loads(self.pipe("validate", "--output", "json").out)["warnings"]
        self.assertEqual([(each["code"], each["file"], each["line"]) for each in warnings],
                         [("missing-file", str(self.folder / "shared/common.yaml"), 3)])


class AsProcesses(OnDocker):
    orchestrator = "local"


if __name__ == "__main__":
    unittest.main()
