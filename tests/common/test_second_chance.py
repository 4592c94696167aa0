"""Tests of second_chance.py: python3 -m unittest discover -s tests/common"""

import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

import host_pace
import second_chance
from second_chance import AGAIN, FILE, TRIES, Verdict, judge, run_file, settle

RIGHT, LATE, WRONG = (True, True), (False, True), (False, False)


class Case:
    """A case with the checks of each of its runs."""

    def __init__(self, *runs):
        self.runs, self.count = runs, 0

    def run(self, _name="case"):
        self.count += 1
        return judge(self.runs[self.count - 1])


def lane(case, said=None, command=lambda name: ["false", name]):
    """Runs a case as a lane of tests does; the names of those that failed."""
    first = case.run()
    failed = ["case"] if first is Verdict.WRONG else []
    late = ["case"] if first is Verdict.LATE else []
    return failed + settle(late, case.run, command, say=(said if said is not None else []).append)


class Clean(unittest.TestCase):
    """Tests without the variables of a full ./check."""

    def setUp(self):
        patched = mock.patch.dict(os.environ)
        patched.start()
        self.addCleanup(patched.stop)
        for name in (FILE, AGAIN):
            os.environ.pop(name, None)


class SecondChance(Clean):
    def test_a_good_case_runs_once(self):
        case = Case([RIGHT, RIGHT])
        self.assertEqual((lane(case), case.count), ([], 1))

    def test_a_case_that_is_late_once_passes_and_says_so(self):
        case, said = Case([RIGHT, LATE], [RIGHT, RIGHT]), []
        self.assertEqual((lane(case, said), case.count), ([], 2))
        self.assertIn("case was late; again, alone", said[0])

    def test_a_case_that_is_late_twice_fails(self):
        case = Case([LATE], [LATE])
        self.assertEqual((lane(case), case.count), (["case"], 2))

    def test_a_case_that_is_wrong_the_second_time_fails(self):
        case = Case([LATE], [WRONG])
        self.assertEqual((lane(case), case.count), (["case"], 2))

    def test_a_wrong_result_has_no_second_chance(self):
        for checks in ([WRONG], [RIGHT, LATE, WRONG]):
            case = Case(checks, [RIGHT])
            self.assertEqual((lane(case), case.count), (["case"], 1))

    def test_a_case_that_checked_nothing_is_wrong(self):
        self.assertIs(judge([]), Verdict.WRONG)


class Host:
    """A machine that others use in each of the first `busy` tries."""

    def __init__(self, busy=0):
        self.busy, self.tries, self.waits = busy, 0, 0

    def measure(self, run):
        self.tries += 1
        return run(), "90 % was stolen" if self.tries <= self.busy else None

    def wait(self):
        self.waits += 1


# Programs of cases in their last chance, as `settle` leaves them.
GOOD_AGAIN = "pass"
LATE_AGAIN = f"import os; open(os.environ[{AGAIN!r}], 'a').write('case'); exit(1)"
WRONG_AGAIN = "exit(1)"


class AfterAllSteps(Clean):
    def setUp(self):
        super().setUp()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.file = Path(directory.name) / "late"
        os.environ[FILE] = str(self.file)

    def again(self, program, host=None):
        """Runs a late case in a lane beside others, and its command, a Python program, after all steps."""
        case, said = Case([LATE]), []
        self.assertEqual((lane(case, said, lambda _: [sys.executable, "-c", program]), case.count), ([], 1))
        self.assertIn("after all steps", said[0])
        with mock.patch("builtins.print"):
            return run_file(self.file, host or Host())

    def test_a_case_that_is_late_once_passes(self):
        self.assertEqual(self.again(GOOD_AGAIN), ([], []))

    def test_a_case_that_is_late_twice_fails_after_one_try(self):
        host = Host()
        self.assertEqual(self.again(LATE_AGAIN, host), (["case"], []))
        self.assertEqual((host.tries, host.waits), (1, 0))

    def test_a_case_that_is_late_while_others_use_the_machine_is_tried_again(self):
        host = Host(busy=1)
        self.assertEqual(self.again(LATE_AGAIN, host), (["case"], []))
        self.assertEqual((host.tries, host.waits), (2, 1))

    def test_a_case_is_not_measured_if_others_use_the_machine_in_all_tries(self):
        host = Host(busy=TRIES)
        self.assertEqual(self.again(LATE_AGAIN, host), ([], ["case"]))
        self.assertEqual((host.tries, host.waits), (TRIES, TRIES - 1))

    def test_a_case_that_is_good_or_wrong_needs_no_quiet_machine(self):
        for program, failed in ((GOOD_AGAIN, []), (WRONG_AGAIN, ["case"])):
            self.file.unlink(missing_ok=True)
            host = Host(busy=TRIES)
            self.assertEqual((self.again(program, host), host.tries), ((failed, []), 1))

    def test_the_last_chance_is_known_to_be_that(self):
        self.assertEqual(self.again(f"import os; exit({AGAIN!r} not in os.environ or {FILE!r} in os.environ)"), ([], []))
        os.environ[AGAIN] = str(self.file.with_name("again"))
        case, said = Case([LATE]), []
        self.assertEqual((lane(case, said), case.count), (["case"], 1))
        self.assertIn("late again", said[0])
        self.assertEqual(Path(os.environ[AGAIN]).read_text(encoding="utf-8"), "case\n")

    def test_without_late_cases_there_is_nothing_to_do(self):
        with mock.patch.object(sys, "argv", ["second_chance.py", str(self.file)]):
            self.assertEqual(second_chance.main(), 0)


class Pace(unittest.TestCase):
    def test_a_busy_loop_that_is_stopped_loses_that_time(self):
        loop = subprocess.Popen([sys.executable, host_pace.__file__, str(min(os.sched_getaffinity(0))), "1"],
                                stdout=subprocess.PIPE, text=True)
        time.sleep(0.4)
        loop.send_signal(signal.SIGSTOP)
        time.sleep(0.3)
        loop.send_signal(signal.SIGCONT)
        self.assertGreater(float(loop.communicate()[0]), 0.25)

    def test_stolen_time_is_a_share_of_all(self):
        with tempfile.NamedTemporaryFile("w+", encoding="ascii") as stat:
            stat.write("cpu  100 20 30 800 10 0 20 20 7 3\ncpu0 1 1\n")
            stat.flush()
            self.assertEqual(host_pace.stolen_ticks(stat.name), (20, 1000))


if __name__ == "__main__":
    unittest.main()
