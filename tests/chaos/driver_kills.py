"""A driver (`pipe run`) that is killed at any moment, and at each change of its state folder: no success is lost, no step runs twice at the same time, and
nothing is left.

Each step writes its begin and its end into the file `ledger` outside of the state folder, and holds a lock meanwhile, which a second attempt at the same time
would not get.
"""

import collections
import json
import signal
import struct

from support_chaos import LIBRARIES, ChaosTest, Watched, figure, in_words, places, rounds_at, wait_until

STEP = """
exec 9> "$LEDGER/lock.$1"
flock -n 9 || echo "twice at once: $1" >> "$LEDGER/ledger"
echo "begin $1" >> "$LEDGER/ledger"
sleep "$2"
echo "line of $1"
"""


class DriverKills(ChaosTest):
    name = ""  # The name of the test in the list of figures.
    rounds_in_full = 1000  # The number of rounds at CHAOS_SCALE=1.
    pause = 0.02  # Seconds that each step takes.

    def ledger_folder(self) -> str:
        """Returns the folder of the ledger as steps see it."""
        return str(self.folder)

    def settings(self) -> dict:
        """Returns settings of docker for the pipeline."""
        return {}

    def write_pipeline(self):
        def step(name: str, work: str, **more) -> dict:
            line = f"sh step.sh {name} {self.pause}; {work}; echo 'end {name}' >> \"$LEDGER/ledger\""
            return {"command": line, "code": ["step.sh"], "environment": {"LEDGER": self.ledger_folder()}, **more}

        self.write("step.sh", STEP)
        self.pipeline({
            "a": step("a", "echo ${params.n} > ${outputs.x}", outputs=["x"], parameters={"n": 0}),
            "b": step("b", "mkdir ${outputs.d}; cat ${inputs.x} > ${outputs.d}/one; echo b > ${outputs.d}/two", inputs={"x": "a.x"}, outputs=["d"]),
            "c": step("c", "cat ${inputs.x} > ${outputs.x}; echo c >> ${outputs.x}", inputs={"x": "a.x"}, outputs=["x"]),
            "d": step("d", "cat ${inputs.b}/one ${inputs.b}/two ${inputs.c} > ${outputs.x}", inputs={"b": "b.d", "c": "c.x"}, outputs=["x"]),
        }, self.settings())

    def expected(self, number: int) -> str:
        """Returns the output of the last step, d, for the parameter `number`."""
        return f"{number}\nb\n{number}\nc\n"

    def begin(self, number: int, resumes: bool = False, **env) -> Watched:
        """Starts the run of a round, or resumes it."""
        if resumes:
            return Watched(self, "resume", "--output", "json", **env)
        return Watched(self, "run", "pipeline.yaml", "-o", self.orchestrator, "--output", "json", "-p", f"a.n={number}", **env)

    def entries(self) -> list[str]:
        ledger = self.folder / "ledger"
        return ledger.read_text().splitlines() if ledger.exists() else []

    def leftovers(self) -> list[str]:
        """Returns what a killed driver has started and what still exists."""
        return self.processes()

    def assert_nothing_left_of_it(self):
        try:
            wait_until(lambda: not self.leftovers(), "an end of what the driver has started")
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.leftovers()}") from None
        self.assert_no_work_left()

    def check_round(self, number: int, random, plan: dict | None, span: float) -> int:
        """Runs and continues a round until a driver ends by itself, and checks the results. Returns how often a driver was killed.

        `plan` has variables with which the disk kills the first driver; without it, that driver is killed at a random time within `span` seconds.
        """
        (self.folder / "ledger").unlink(missing_ok=True)
        kills, safe, resumes = 0, set(), False
        run = self.begin(number, **(plan or {}))
        if not plan:
            run.kill_after(random.uniform(0, span))
        while True:
            result = run.end()
            again = run.steps("step_started") & safe
            self.assertEqual(again, set(), f"had ended before, and runs once more:\n{result}")
            lost = safe - run.steps("step_finished", "succeeded", "cached") if result.code == 0 and not resumes else set()
            self.assertEqual(lost, set(), result)
            safe |= run.steps("step_finished", "succeeded", "cached")
            if result.code != -signal.SIGKILL:
                break
            kills += 1
            resumes = random.random() < 0.3 and self.can_resume()
            run = self.begin(number, resumes)
            if kills < 4 and random.random() < 0.25:
                run.kill_after(random.uniform(0, span))
        self.assertEqual(result.code, 0, result)
        if kills:
            (self.resumed if resumes else self.continued).append(next((t for t in (run.first("step_started"), run.first("step_finished")) if t), 0))
        entries = self.entries()
        self.assertEqual([entry for entry in entries if entry.startswith("twice")], [], result)
        ends = collections.Counter(entry for entry in entries if entry.startswith("end"))
        self.assertEqual(set(ends), {f"end {step}" for step in "abcd"}, result)
        # A step runs once more if the driver is killed between the step's end and the commit of its success. Two steps may run at the same time.
        self.assertLessEqual(sum(ends.values()) - 4, 2 * kills, entries)
        self.repeated += sum(ends.values()) - 4
        last = self.begin(number)
        reused = last.end()
        self.assertEqual((reused.code, last.steps("step_finished", "cached")), (0, set("abcd")), reused)
        path = next(each["path"] for each in last.events[-1]["results"] if each["output"] == "d.x")
        self.assertEqual((self.folder / path).read_text(), self.expected(number))
        self.assert_nothing_left_of_it()
        verified = self.pipe("verify")
        self.assertEqual(verified.code, 0, verified)
        self.assert_database_whole()
        return kills

    def can_resume(self) -> bool:
        """Returns whether the latest run has not ended."""
        shown = self.pipe("show", "latest", "--output", "json")
        return shown.code == 0 and json.loads(shown.out)["status"] in ("running", "died", "unknown", "interrupted")

    def test_kill(self):
        self.write_pipeline()
        self.continued, self.resumed, self.repeated = [], [], 0
        self.fresh_state()
        rehearsal = self.begin(0, **self.disk())
        result = rehearsal.end()
        self.assertEqual(result.code, 0, result)
        span, changes = rehearsal.events[-1]["after"], len(self.changes())
        self.assertGreater(changes, 100, "the disk's changes are seen")
        kills, used = 0, set()
        for number, random, place in rounds_at(changes, places("kill", "killed", "torn"), self.rounds_in_full, elsewhere=0.4):
            with self.subTest(round=number, place=place):
                if place:
                    self.fresh_state()
                    kills += self.check_round(number, random, self.disk(*place), span)
                    used.add(place[0])
                else:
                    kills += self.check_round(number, random, None, span)
        clock = self.folder / "clock"
        clock.write_bytes(struct.pack("q", 3600))
        cleaned = self.pipe("clean", "--runs", "--keep", "0", LD_PRELOAD=LIBRARIES / "shifted_clock.so", CHAOS_CLOCK=clock)
        self.assertEqual(cleaned.code, 0, cleaned)
        self.assert_nothing_left()
        figure(self.name, f"{kills} kills, also at {len(used)} of {changes} changes of the state; {self.repeated} steps were repeated whose success was not "
               f"persisted; the next run went on after {in_words(self.continued)}, `resume` after {in_words(self.resumed)}")
