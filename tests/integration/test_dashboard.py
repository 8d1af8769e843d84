#!/usr/bin/env python3
"""The dashboard and the alerts of deploy/ name metrics and labels that a server has."""
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import server_harness as harness

DEPLOY = os.path.join(harness.ROOT, "deploy")
NAME = re.compile(r"\b(?:lacuna|process)_[a-z_]+")


def read(name):
    with open(os.path.join(DEPLOY, name), encoding="utf-8") as file:
        return file.read()


class Dashboard(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.home = tempfile.mkdtemp(prefix="lacuna-dashboard-")
        server = harness.Server("--objects", os.path.join(cls.home, "objects"))
        try:
            server.wait_ready(server.upload(harness.make_trace()))
            lines = server.get("/metrics").body.decode().splitlines()
        finally:
            server.close()
        samples = [line for line in lines if line and not line.startswith("#")]
        cls.names = {NAME.match(line).group() for line in samples}
        cls.labels = {}
        for line in samples:
            cls.labels.setdefault(NAME.match(line).group(), set()).update(re.findall(r'[{,]([a-z]+)="', line))

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.home)

    def check(self, expression):
        names = NAME.findall(expression)
        self.assertEqual([name for name in names if name not in self.names], [], expression)
        for name, selected in re.findall(r"((?:lacuna|process)_[a-z_]+)\{([^}]*)\}", expression):
            for label in re.findall(r"([a-z]+)=", selected):
                self.assertIn(label, self.labels[name], expression)
        for by in re.findall(r"by \(([a-z]+)\)", expression):
            if by != "instance":  # of Prometheus
                self.assertTrue(any(by in self.labels[name] for name in names), expression)
        self.assertEqual(expression.count("("), expression.count(")"))

    def test_dashboard(self):
        board = json.loads(read("grafana-dashboard.json"))
        self.assertGreaterEqual(len(board["panels"]), 10)
        for panel in board["panels"]:
            for target in panel["targets"]:
                self.check(target["expr"])
                for label in re.findall(r"\{\{([a-z]+)\}\}", target["legendFormat"]):
                    self.assertTrue(any(label in self.labels[name] for name in NAME.findall(target["expr"])), target)

    def test_alerts(self):
        text = read("prometheus-alerts.yml")
        expressions = re.findall(r"^ +expr: (.*)$", text, re.M)
        self.assertEqual(len(expressions), len(re.findall(r"^ +- alert: \w+$", text, re.M)))
        self.assertGreaterEqual(len(expressions), 8)
        for expression in expressions:
            self.check(expression)

    @unittest.skipIf(shutil.which("promtool") is None, "promtool is not installed (prometheus)")
    def test_prometheus_takes_the_alerts(self):
        done = subprocess.run(["promtool", "check", "rules", os.path.join(DEPLOY, "prometheus-alerts.yml")], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
