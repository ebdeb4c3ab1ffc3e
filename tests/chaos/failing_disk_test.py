"""A disk that is full or over its quota, has I/O errors or becomes read-only, at each change that a run makes on it: the error is clear, the database is whole,
and the next run continues."""

import collections
import unittest

from driver_kills import DriverKills
from support_chaos import NOWHERE, figure, places, rounds_at

WORDS = {"full": ("No space left on device",), "quota": ("Disk quota exceeded",), "broken": ("Input/output error",), "readonly": ("Read-only file system", "Permission denied")}


class FailingDisk(DriverKills):
    orchestrator = "local"
    pause = 0
    test_kill = None

    def environment(self, env):
        return super().environment({"DOCKER_HOST": NOWHERE, **env})

    def check_round(self, number: int, at: int, deed: str, count: int) -> int:
        """Runs with a disk on which the change with the number `at` fails by `deed`, once or, if `count` is 0, with all later ones. Checks the run and the next
        one, and returns the first run's exit code."""
        (self.folder / "ledger").unlink(missing_ok=True)
        self.fresh_state()
        run = self.begin(number, **self.disk(at, deed, count))
        result = run.end()
        where = f"{deed} {'once' if count else 'from there on'} at {self.changes()[at - 1] if len(self.changes()) >= at else 'no change'}\n{result}"
        self.assertIn(result.code, (0, 3), where)
        self.assertNotIn("internal error", result.text, where)
        safe = run.steps("step_finished", "succeeded", "cached")
        if result.code == 0:
            self.assertEqual(safe, set("abcd"), where)
        else:
            # SQLite tries to open a file in more than one way. If only the first of them fails, the reason may be lost.
            words = WORDS[deed] + (("cannot open the run store",) if count else ())
            self.assertTrue(any(each in result.text for each in words), where)
        next_run = self.begin(number)
        continued = next_run.end()
        self.assertEqual(continued.code, 0, f"{continued}\nafter {where}")
        self.assertEqual(next_run.steps("step_started") & safe, set(), f"had succeeded before:\n{continued}\nafter {where}")
        path = next(each["path"] for each in next_run.events[-1]["results"] if each["output"] == "d.x")
        self.assertEqual((self.folder / path).read_text(), self.expected(number), where)
        verified = self.pipe("verify")
        self.assertEqual(verified.code, 0, f"{verified}\nafter {where}")
        self.assert_database_whole()
        self.assert_nothing_left_of_it()
        return result.code

    def test_after_a_failure_at_any_change_the_next_run_is_right(self):
        self.write_pipeline()
        self.fresh_state()
        self.assertEqual(self.begin(0, **self.disk()).end().code, 0)
        changes = len(self.changes())
        deeds = [(deed, count) for deed in WORDS for count in (1, 0)]
        codes, used = collections.Counter(), set()
        for number, _, (at, deed) in rounds_at(changes, places(*deeds), len(deeds) * changes):
            with self.subTest(round=number, at=at, deed=deed):
                codes[self.check_round(number, at, *deed)] += 1
                used.add(at)
        figure("failing_disk", f"{sum(codes.values())} failures (no space, quota, EIO, read-only; once and from there on) at {len(used)} of {changes} changes of the state: {codes[3]} ended with "
               f"exit code 3 and the reason, {codes[0]} made no difference; the next run went on after each")


del DriverKills

if __name__ == "__main__":
    unittest.main()
