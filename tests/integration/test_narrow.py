#!/usr/bin/env python3
"""Texts of the program in a terminal that is narrower than 80 columns, and in none.

Comparisons and several ranks in 40 columns; with LACUNA_SOAK=1 in 60 and 79 as well, as the other texts are.
"""
import fcntl
import json
import os
import re
import struct
import subprocess
import sys
import termios
import unittest

from server_harness import ROOT, SOAK, main

sys.path.insert(0, os.path.join(ROOT, "tests/support"))
import kept  # noqa: E402

LACUNA = os.path.join(ROOT, "build/lacuna")


class Narrow(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.traces = kept.demo()

    def shown(self, columns, *args, env=None):
        """What stands in a terminal of so many columns, without colors."""
        ours, theirs = os.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        environment = {key: value for key, value in os.environ.items() if key != "COLUMNS"} | {"LC_ALL": "C.UTF-8"} | (env or {})
        child = subprocess.Popen([LACUNA, *args], stdout=theirs, stderr=subprocess.DEVNULL, env=environment)
        os.close(theirs)
        text = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            text += part
        os.close(ours)
        self.assertEqual(child.wait(), 0)
        return re.sub(r"\x1b\[[0-9;]*m", "", text.decode()).replace("\r\n", "\n")

    def words(self, text):
        return re.findall(r"[\w%=.,:()]+", re.sub("\u2501+", "", text))

    def test_reports_keep_to_the_terminal(self):
        commands = (["compare", *self.traces[:2]], ["analyze", *self.traces[:3]], ["analyze", self.traces[0]], ["explain"], ["help"], ["analyze", "--help"], ["import", "--help"])
        for number, command in enumerate(commands):
            for columns in (40, 60, 79) if number > 1 or SOAK else (40,):
                lines = self.shown(columns, *command).splitlines()
                self.assertLessEqual(max(map(len, lines)), columns, (command, columns))
                self.assertTrue(all(line == line.rstrip() for line in lines), (command, columns))

    def test_nothing_is_lost(self):
        for command in (["analyze", self.traces[0]], ["compare", self.traces[0], self.traces[1]], ["help"], ["analyze", "--help"]):
            wide = self.words(self.shown(80, *command))
            self.assertEqual(self.words(self.shown(60, *command)), wide, command)

    def test_columns_decides_and_has_a_least_value(self):
        lines = self.shown(120, "analyze", self.traces[0], env={"COLUMNS": "50"}).splitlines()
        self.assertTrue(40 < max(map(len, lines)) <= 50)
        self.assertEqual(max(map(len, self.shown(10, "help").splitlines())) <= 40, True)
        self.assertGreater(max(map(len, self.shown(120, "analyze", self.traces[0]).splitlines())), 60)

    def test_a_file_has_the_usual_width_whatever_the_terminal(self):
        with kept.loop(kept.LOOP_SEEDS[0]) as ((path,), _):
            done = [subprocess.run([LACUNA, "analyze", path], capture_output=True, check=True, env={**os.environ, "COLUMNS": columns}).stdout for columns in ("50", "200")]
        self.assertEqual(done[0], done[1])

    def test_traces_of_several_runs_are_called_by_their_names(self):
        text = self.shown(80, "analyze", *self.traces[:2])
        self.assertRegex(text, r"2 runs")
        self.assertRegex(text, r"\n1-two-workers +750 ms")
        self.assertNotIn("rank  ", text)
        document = json.loads(kept.ask("analyze", "--json", *self.traces[:2]).stdout)
        self.assertEqual(document["schema"], "lacuna.run/1")


if __name__ == "__main__":
    main()
