"""The power fails at each change that a run makes: data that was not synced may be lost or wrong. The next run is right; at worst it repeats steps."""

import pathlib
import unittest

from power_cut import Disk
from support_chaos import NOWHERE, ChaosTest, Watched, figure, rounds, wait_until

# Writes a file that is too large to be read before each use. It is written as numpy.memmap does: the file has its size before its content.
BIG = """
import mmap, sys
with open(sys.argv[1], 'w+b') as file:
    file.truncate(2 << 20)
    with mmap.mmap(file.fileno(), 0) as memory:
        memory[:] = bytes([65 + int(sys.argv[2]) % 26]) * len(memory)
"""


class PowerCuts(ChaosTest):
    def environment(self, env):
        return super().environment({"DOCKER_HOST": NOWHERE, **env})

    def write_pipeline(self):
        self.write("big.py", BIG)
        self.write("data.txt", "some data\n")
        self.pipeline({
            "big": {"command": "python3 big.py ${outputs.x} ${params.n}", "code": ["big.py"], "outputs": ["x"], "parameters": {"n": 0}},
            "small": {"command": "cat data.txt > ${outputs.x}; echo ${params.n} >> ${outputs.x}", "code": ["data.txt"], "outputs": ["x"], "parameters": {"n": 0}},
            "folder": {"command": "mkdir -p ${outputs.d}/deep; cp ${inputs.x} ${outputs.d}/one; cp ${inputs.b} ${outputs.d}/deep/two",
                       "inputs": {"x": "small.x", "b": "big.x"}, "outputs": ["d"]},
            "sum": {"command": "{ cat ${inputs.d}/one; sha256sum < ${inputs.d}/deep/two; } > ${outputs.x}", "inputs": {"d": "folder.d"}, "outputs": ["x"]},
        })

    def begin(self, number: int, **env) -> Watched:
        return Watched(self, "run", "pipeline.yaml", "-o", "local", "--output", "json", "-p", f"big.n={number}", "-p", f"small.n={number}", **env)

    def assert_right(self, run: Watched, number: int, where: str):
        """Fails unless the results of a run are those for the parameter `number`, and no artifact of a run is damaged."""
        results = {each["output"]: pathlib.Path(self.folder / each["path"]) for each in run.events[-1]["results"]}
        big, one = bytes([65 + number % 26]) * (2 << 20), f"some data\n{number}\n".encode()
        self.assertEqual(results["sum.x"].read_bytes().splitlines()[:2], one.splitlines(), where)
        shown = {path.name: path.read_bytes() for path in self.state.glob("artifacts/??/*") if path.is_file()}
        self.assertTrue(big in shown.values(), where)
        # The code of a step is not synced: it is small, and is read and checked before it is used. A power cut may damage it, but then no run has it.
        damaged = [line for line in self.pipe("verify").out.splitlines() if "  damaged  " in line]
        self.assertEqual([line for line in damaged if not line.endswith("no run")], [], where)
        again = self.pipe("verify")
        self.assertEqual(again.code, 0, f"{again}\nafter {where}")

    def test_what_is_reused_after_a_power_cut_is_right(self):
        self.write_pipeline()
        self.fresh_state()
        rehearsal = self.begin(0, **self.disk())
        self.assertEqual(rehearsal.end().code, 0)
        changes, synced = len(self.changes()), self.folder / "synced"
        self.assertTrue(any(" sync " in line for line in self.changes()), "the test sees what is synced")
        cuts, harmed, repeated = 0, 0, 0
        for number, random in rounds(400, at_least=8):
            with self.subTest(round=number):
                self.fresh_state()
                if number % 3:  # In every third round the state is new.
                    self.assertEqual(self.begin(number % 3).end().code, 0)
                self.state.mkdir(exist_ok=True)
                # Every other time the power fails as the run ends, when most is recorded and little is synced.
                at = random.randint(1, changes) if number % 2 else changes - random.randint(0, 40)
                disk = Disk(self.state, synced)
                run = self.begin(number, **self.disk(at, "killed"), CHAOS_SYNCED=str(synced))
                run.end()
                wait_until(lambda: not self.processes(), "an end of what the driver has started")
                safe = run.steps("step_finished", "succeeded", "cached")
                harmed += disk.cut_power(random)
                cuts += 1
                where = f"a power cut after change {at} of {changes}: {(self.changes() or ['none'])[-1]}\n"
                next_run = self.begin(number)
                result = next_run.end()
                self.assertEqual(result.code, 0, f"{result}\nafter {where}")
                repeated += len(next_run.steps("step_started") & safe)
                self.assert_right(next_run, number, f"{where}{result}")
                self.assert_database_whole()
        self.assertGreater(harmed, cuts, "power cuts cost something")
        figure("power_cuts", f"{cuts} power cuts at one of {changes} changes of the state, which harmed {harmed} files and names; {repeated} steps that had succeeded ran again, "
               "and nothing wrong was reused")


if __name__ == "__main__":
    unittest.main()
