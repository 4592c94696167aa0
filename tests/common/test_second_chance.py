"""Tests of second_chance.py: python3 -m unittest discover -s tests/common"""

import os
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))

import second_chance  # noqa: E402
from second_chance import FILE, IS_LAST, Verdict, judge, run_file, settle  # noqa: E402

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
        for name in (FILE, IS_LAST):
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


class AfterAllSteps(Clean):
    def setUp(self):
        super().setUp()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.file = Path(directory.name) / "late"
        os.environ[FILE] = str(self.file)

    def again(self, program):
        """Runs a late case in a lane beside others, and its command, a Python program, after all steps."""
        case, said = Case([LATE]), []
        self.assertEqual((lane(case, said, lambda _: [sys.executable, "-c", program]), case.count), ([], 1))
        self.assertIn("after all steps", said[0])
        with mock.patch("builtins.print"):
            return run_file(self.file)

    def test_a_case_that_is_late_once_passes_and_says_so(self):
        self.assertEqual(self.again("pass"), [])

    def test_a_case_that_is_late_twice_fails(self):
        self.assertEqual(self.again("exit(1)"), ["case"])

    def test_the_last_chance_is_known_to_be_that(self):
        self.assertEqual(self.again(f"import os; exit({IS_LAST!r} not in os.environ or {FILE!r} in os.environ)"), [])
        os.environ[IS_LAST] = "1"
        case, said = Case([LATE]), []
        self.assertEqual((lane(case, said), case.count), (["case"], 1))
        self.assertIn("late twice", said[0])

    def test_a_case_that_is_wrong_the_second_time_fails(self):
        self.assertEqual(self.again("exit(2)"), ["case"])

    def test_without_late_cases_there_is_nothing_to_do(self):
        with mock.patch.object(sys, "argv", ["second_chance.py", str(self.file)]):
            self.assertEqual(second_chance.main(), 0)


if __name__ == "__main__":
    unittest.main()
