"""Functions that run in many processes at once."""

import unittest

from python_support import PythonTest

PROGRAM = """
    import os
    import pathlib
    import time
    from typing import List
    import pipe_ml as pl

    @pl.step(nodes={"count": 2, "processes": 2}, environment={"MEETING": "FOLDER"})
    def train() -> List[int]:
        place = pathlib.Path(os.environ["MEETING"])
        for each in range(3):
            if pl.rank() == each:
                time.sleep(0.2)
            (place / f"{each}.{pl.rank()}").touch()
            pl.barrier()
            arrived = len(list(place.glob(f"{each}.*")))
            assert arrived == pl.world_size(), f"{arrived} have arrived when {pl.rank()} goes on"
        time.sleep(0.1 * pl.rank())
        return [pl.rank(), pl.world_size(), pl.local_rank(), pl.node_rank(), len(pl.addresses())]

    @pl.step
    def alone() -> List[int]:
        pl.barrier()
        return [pl.rank(), pl.world_size(), pl.local_rank(), pl.node_rank(), len(pl.addresses())]

    @pl.pipeline
    def gang():
        train()
        alone()

    if __name__ == "__main__":
        gang.main()
"""


class Ranks(PythonTest):
    def setUp(self):
        super().setUp()
        self.program(PROGRAM.replace("FOLDER", str(self.folder / "meeting")))
        (self.folder / "meeting").mkdir()

    def test_processes_know_their_ranks_and_wait_for_each_other_and_the_first_gives_the_result(self):
        self.digits("run")
        self.assertEqual(self.json_of("train.result"), [0, 4, 0, 0, 2])
        self.assertEqual(self.json_of("alone.result"), [0, 1, 0, 0, 0])


if __name__ == "__main__":
    unittest.main()
