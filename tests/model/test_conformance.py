"""Tests of the comparison with random runs."""

import unittest
from pathlib import Path

import conformance

TABLE = Path(__file__).resolve().parent / "transitions.csv"


class Comparison(unittest.TestCase):
    def setUp(self):
        self.model = conformance.Model(TABLE.read_text().splitlines()[1:])

    def outside(self, *lines):
        return conformance.compare(self.model, lines)[0]

    def test_chunks_of_a_packet_follow_each_other(self):
        self.assertEqual(self.outside(
            "CLOSED,COOKIE-ECHO+DATA,-,ESTABLISHED,-,1",
            "SHUTDOWN-PENDING,other+SACK+SHUTDOWN,own,SHUTDOWN-ACK-SENT,same,1",
            "ESTABLISHED,shutdown,-,SHUTDOWN-SENT,same,3",
            "ESTABLISHED,COOKIE-ECHO+DATA,other,ESTABLISHED,both,1",
        ), [])

    def test_what_the_model_does_not_do_is_outside(self):
        wrong = [
            "ESTABLISHED,SHUTDOWN-ACK,own,CLOSED,-,1",
            "SHUTDOWN-SENT,SHUTDOWN-ACK,own,SHUTDOWN-SENT,same,1",
            "SHUTDOWN-SENT,SHUTDOWN-ACK,other,CLOSED,-,1",
            "ESTABLISHED,COOKIE-ECHO,other,ESTABLISHED,peer,1",
            "ESTABLISHED,unseen,-,CLOSED,-,1",
        ]
        self.assertEqual(self.outside(*wrong), wrong)


if __name__ == "__main__":
    unittest.main()
