"""Tests of started programs."""

import signal
import sys
import unittest

from failure import Failed
from process import Process


def python(program):
    return Process([sys.executable, "-uc", program])


class Started(unittest.TestCase):
    def test_records_and_the_end(self):
        with python("""print('{"event": "listening", "port": 1}'); print('{"event": "stopped"}'); exit(3)""") as process:
            self.assertEqual(process.event("listening")["port"], 1)
            self.assertEqual((process.wait(), process.code, len(process.records)), (3, 3, 2))

    def test_half_a_line_is_no_record(self):
        with python("""print('{"event": "listening"}\\n{"eve', end="")""") as process:
            self.assertEqual((process.wait(), process.records), (0, [{"event": "listening"}]))

    def test_a_failure_shows_what_was_said(self):
        with python("import sys; sys.exit('no such file')") as process:
            self.assertRaisesRegex(Failed, "exit code 1; said: no such file", process.event, "listening")

    def test_ends(self):
        with python("import time; print('ready'); time.sleep(60)") as process:
            process.wait_line("ready", 30)
            self.assertIsNone(process.code_within(0.1))
            self.assertRaisesRegex(Failed, "still runs", process.wait, 0)
            self.assertEqual(process.stop(), -signal.SIGTERM)
