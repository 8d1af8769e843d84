#!/usr/bin/env python3
"""`lacuna explain`: a document for every finding, and a build that stops without one."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.path.join(ROOT, "build/release/lacuna")
DIAGNOSE = os.path.join(ROOT, "analysis/diagnose")
EMBED = os.path.join(DIAGNOSE, "findings/documents/embed_documents.py")


def explain(*arguments):
    return subprocess.run([PROGRAM, "explain", *arguments], capture_output=True, text=True, check=False)


class Explain(unittest.TestCase):
    def test_every_finding_has_a_document_with_its_thresholds_filled_in(self):
        ids = [line.split()[0] for line in explain().stdout.splitlines()]
        self.assertGreater(len(ids), 40)
        for finding_id in ids:
            done = explain(finding_id)
            self.assertEqual(done.returncode, 0)
            self.assertTrue(done.stdout.startswith(f"# {finding_id}: "), finding_id)
            self.assertIsNone(re.search(r"\{[A-Z_]+\}", done.stdout), finding_id)
            for link in re.findall(r"\]\(([a-z-]+)\.md\)", done.stdout):
                self.assertIn(link, ids, f"{finding_id} links to it")

    def test_lines_fit_a_terminal_and_sources_are_links(self):
        for finding_id in [line.split()[0] for line in explain().stdout.splitlines()]:
            text = explain(finding_id).stdout
            prose = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.M | re.S)
            for line in prose.splitlines():
                whole = line.startswith(("#", "|")) or "](" in line or "`" in line
                self.assertTrue(len(line) <= 80 or whole, f"{finding_id}: {line}")
                self.assertIsNone(re.fullmatch(r" *(?:-|\d+\.)", line), f"{finding_id}: an item begins with a break")
            for line in text.split("## Sources\n")[1].strip().splitlines():
                self.assertRegex(line, r"^- \[[^]]+\]\(https://[^)]+\)(:.*)?$|^  \S", finding_id)

    def test_an_unknown_id_is_wrong_usage(self):
        done = explain("no-such-thing")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no finding has the id 'no-such-thing'", done.stderr)


class Build(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="lacuna-documents-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.diagnose = os.path.join(self.folder, "diagnose")
        shutil.copytree(DIAGNOSE, self.diagnose)
        self.document = os.path.join(self.diagnose, "findings/loading/input-starvation.md")

    def embed(self):
        return subprocess.run([sys.executable, EMBED, os.path.join(self.folder, "out.c"), self.diagnose],
                              capture_output=True, text=True, check=False)

    def change(self, old, new):
        with open(self.document, encoding="utf-8") as file:
            text = file.read()
        self.assertIn(old, text)
        with open(self.document, "w", encoding="utf-8") as file:
            file.write(text.replace(old, new, 1))

    def test_all_documents_are_in_order(self):
        done = self.embed()
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_missing_document_stops_it(self):
        os.unlink(self.document)
        done = self.embed()
        self.assertEqual(done.returncode, 1)
        self.assertIn("input-starvation.md", done.stderr)

    def test_a_missing_section_stops_it(self):
        self.change("## When it is wrong", "## Otherwise")
        self.assertIn("wanted: What it means", self.embed().stderr)

    def test_a_link_to_no_document_stops_it(self):
        self.change("## Sources", "[drift](drift.md)\n\n## Sources")
        self.assertIn("input-starvation.md: no file drift.md", self.embed().stderr)

    def test_a_threshold_that_is_none_stops_it(self):
        self.change("## Sources", "{NO_SUCH_THRESHOLD_NS}\n\n## Sources")
        self.assertIn("no *_thresholds.h has NO_SUCH_THRESHOLD_NS", self.embed().stderr)

    def test_a_document_of_no_finding_stops_it(self):
        shutil.copy(self.document, os.path.join(os.path.dirname(self.document), "nothing.md"))
        self.assertIn("nothing.md: no finding has this id", self.embed().stderr)


if __name__ == "__main__":
    program = unittest.main(exit=False, verbosity=0)
    bad = len(program.result.failures) + len(program.result.errors)
    print(f"{program.result.testsRun - bad} passed, {bad} failed")
    sys.exit(1 if bad else 0)
