"""examples/mpi with Debian's Open MPI: mpirun on the first node starts the processes of all nodes, without ssh."""

import os
import pathlib
import shutil
import unittest

from support import PipeTest


@unittest.skipUnless(os.environ.get("PIPE_TEST_MPI"), "Open MPI and what it requires are 200 MB: PIPE_TEST_MPI=1 installs them in an image")
class Mpi(PipeTest):
    def setUp(self):
        super().setUp()
        shutil.copytree(pathlib.Path(__file__).resolve().parents[2] / "examples/mpi", self.folder, dirs_exist_ok=True)

    def run_example(self, code: int):
        result = self.pipe("run", "pipeline.yaml", "-o", "docker", "--param", "nodes=3", "--output", "json")
        self.assertEqual(result.code, code, result)
        return result

    def test_mpirun_starts_the_processes_of_all_nodes(self):
        lines = [event["line"] for event in self.run_example(0).events("step_log")]
        self.assertEqual({line.split(":")[0] for line in lines}, {f"rank {rank} of 6, on node {rank // 2}" for rank in range(6)})

    def test_a_process_on_another_node_that_fails_is_the_failure_of_the_step(self):
        self.write("pi.py", "import sys\nfrom mpi4py import MPI\nif MPI.COMM_WORLD.rank == 5:\n    sys.exit(7)\nMPI.COMM_WORLD.barrier()\n")
        self.assertEqual(self.run_example(1).failure("pi")["message"], "rank 0 of 3, on node 0, ended with exit code 7")


if __name__ == "__main__":
    unittest.main()
