#!/usr/bin/env python3
"""Sentences that were mended do not come back: not in the page, not in the program, not in what it says of traces.

Each row is a piece of a sentence that stood there once and what is said instead. Looked for in every string of web/src, in
every string literal of analysis/ and server/, in README.md, and in all that collect_texts.py collects from the simulated
series, four random loops (with LACUNA_SOAK=1 twelve) and, where they are, the smaller real traces.
"""
import glob
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests/support"))
import collect_texts  # noqa: E402
import kept  # noqa: E402
from soak import SOAK  # noqa: E402
from real_traces import real_traces  # noqa: E402

LOOPS = kept.LOOP_SEEDS[:12 if SOAK else 4]
REAL_BYTES_MAX = 400_000

# a piece of the old sentence (a pattern; a blank is any white space) -> what is said instead
PIECES = {
    # of a step, of time
    r"\d ?(ns|µs|ms|s|%|times|launches) a step\b": "per step",
    r"\b(time|less|takes|needs|works) a step\b": "per step",
    r"\ba step ms\b|\bstep ms\b": "ms/step",
    r"\bself a step\b": "self per step",
    r"no part needs the whole step on its own": "No part fills the step on its own",
    r"needs for one step, on its own": "Time each part needs per step",
    r"less time a step": "faster per step",
    r"real, not noise": "more than noise",
    r"works? all but \d|worked all but": "the GPU was busy for all but 4 ms of 90 ms",
    # what is exposed, what waits
    r"(that )?nothing hides|unhidden|not hidden": "exposed (non-overlapped)",
    r"\b(copies|copying|copied|communication|copy|copy itself is|stays|them) in line\b|in line with": "exposed, not overlapped with kernels",
    r"for reasons that the trace does not show": "for unknown reasons",
    r"waits after synchroni[sz]ations": "waits after synchronization",
    r"\bidle for host\b": "the GPU waited for the host",
    r"that the GPU is idle lie inside it": "the GPU is idle for 57 ms of that",
    r"the GPU feels all of it": "The full wait is exposed",
    r"comes? last to \d|comes? last to": "was the last to enter",
    r"there at the first collective|only began later": "the first collective accounts for 4.6 ms of it",
    r"one rank alone cannot tell|A rank sees how long it is in": "From one rank, a late peer and a slow network look the same",
    r"lateness moves along": "the straggler should move with it",
    r"between nothing and|is the most\b": "70 to 77 ms",
    r"the same work, evenly done": "training results are unaffected",
    # steps, layers, verdicts
    r"\bcomes? again\b": "repeats",
    r"nothing says that this is": "it cannot be identified as a training step",
    r"too few to say anything|what is certain": "only one step after warm-up, too few for a verdict",
    r"the GPU is the limit: \d": "GPU-bound: compute kernels run for 100 % of the 230 ms step",
    r"no backward pass and no optimizer: inference": "inference (no backward pass, no optimizer)",
    r"nothing certain can be said": "no verdict",
    r"computing kernels?\b": "compute kernels",
    # changes and what they take
    r"waiting for launches gone|if batches come that fast": "at best; the loader may become the limit",
    r"that are in the step .*: they go first": "remove them first: CUDA graphs cannot capture them",
    r"that a CUDA graph could not hold": "No obstacle to CUDA graphs was seen",
    r"of compiling have paid": "compilation pays off after",
    r"0 of the rest cannot be told": "None of the matrix work runs on tensor cores",
    r"\b(processes|batches|cores?) more\b": "3 more processes",
    r"follow one another directly|makes one kernel of such a chain": "a compiler can fuse them",
    r"then batches come no faster": "after that data loading is the limit",
    r"or a cheaper batch": "or reduce per-batch CPU cost",
    r"half as expensive as": "if per-batch CPU time falls halfway to the target",
    r"pictures stored smaller": "Downscaled or re-encoded images",
    r"same batch again and again": "when the same cached batch is reused",
    r"the allowed cores carry": "capped by the available CPU cores",
    r"turn for the worse": "delays detecting regressions",
    r"share may be another one": "the share over the whole job may differ",
    r"holds its clocks down": "was throttled",
    r"for want of memory|is short or in pieces": "failed with out-of-memory",
    r"products of odd lengths|matrix products": "GEMMs with misaligned dimensions, GEMM",
    r"kernels too small for the GPU run": "Kernels with fewer blocks than SMs",
    r"keep a wait that guards": "Keep synchronizations that are needed for correctness",
    r"record ten steps and analyze them: \d": "record ten steps; expect 112 ms",
    r"what number was set is not recorded": "the value in B is not recorded",
    r"not recorded in both traces": "neither trace has a loss or accuracy counter",
    # the page
    r"names that people gave": "Names chosen by people",
    r"wants its key": "Enter this server's key",
    r"what leaves with|leaves kinds of it out": "Include in the report",
    r"of the page did not come\b": "failed to load",
    r"no trace fits": "No traces match",
    r"is not good for": "Limits of this trace",
    r"has this in its name": "no rows match",
    r"opens? (here )?by itself|again by itself": "opens when the import is done; retrying",
    r"what is summed|kind of time above": "metric; show the whole trace",
    r"not a trace format that": "Unknown format (not JSON)",
    r"\bis no trace\b|\bare wanted\b|\bis wanted\b": "is not a trace; needs",
    # README
    r"anything of the collector on a real GPU|ready for the day|looked at once|nobody looked at": "say what was tested",
    r"what it can, and what it cannot|by other means than its source": "Status and limitations",
    r"send it to a colleague": "the address holds the view; serve listens on 127.0.0.1",
    # American spelling
    r"\w{3,}isations?\b(?! \(%\))|\b(synchron|initial|serial|normal|recogn|summar|organ|optim|minim|maxim|util)is(e|es|ed|ing)\b": "-ize",
    r"\b(colour|behaviour|neighbour|centre|analyse|catalogue)\w*": "color, behavior, ...",
}
# whole labels of the page and of reports that were changed
LABELS = {"like this ›": "next like this", "around it": "parent", "as area": "select its time", "what ended it": "operation that ended it",
          "What was found": "Findings", "for information": "no action now", "What was read": "Import",
          "prove it": "verify", "mind": "caveats", "not now": "no action", "beside": "also", "Keep it": "Cancel", "bring back": "restore",
          "from call to start": "launch latency", "on a core": "CPU time", "Then": "Further findings"}
# what the pieces must find: sentences as they stood
ONCE = (
    "112 ms a step at most; if batches come that fast, which was not recorded at most: all waiting for launches gone.",
    "CUDA graphs cannot hold the synchronisations that are in the step (20 a step): they go first.",
    "Nothing that a CUDA graph could not hold was seen: every step launches as much as the others and waits once at most.",
    "Two minutes of compiling have paid after about 4 317 steps.",
    "The wait is 39.6 % of the steps; 286.9 of 392.9 ms that the GPU is idle lie inside it.",
    "Tensor cores do 0 % of the time; 0 of the rest cannot be told from the kernels' names.",
    "in the longest the GPU was idle for host.",
    "Communication that nothing hides takes 11 ms of every 16 ms step (66 %)",
    "Copying in line with the kernels takes 39 ms",
    "The GPU is the limit: 100 % of the 230 ms step computes",
    "No backward pass and no optimizer: inference, not training; the GPU was idle for 512 ms",
    "The same kernels come again every 32 ms, but nothing says that this is a training step: it may be a layer.",
    "1 step after warm-up: too few to say anything about a step. What is certain: ...",
    "waits for reasons that the trace does not show",
    "3 processes more; all workers together keep 3.8 cores busy. Shared memory for 6 batches more.",
    "1 core more, and shared memory for 2 batches more.",
    "225 of them a step follow one another directly: a compiler makes one kernel of such a chain.",
    "then batches come no faster, if 85 % of the conversions go (50-100 %).",
    "between nothing and 70 ms a step, by whether a rank is late: all of 15 ms gone is the most.",
    "4.6 ms of that are there at the first collective of the recording; rank 7 only began later.",
    "Rank 7 comes last to 5 of 8 collectives",
    "What one rank alone cannot tell", "A rank sees how long it is in a collective",
    "swap that rank's node or shard with another one: the lateness moves along",
    "record ten steps and analyze them: 112 ms a step",
    "No part needs the whole step on its own: some of them run one after the other.",
    "B takes 20 % less time a step (2.9-35 %, 6 and 6 steps): real, not noise.",
    "within the band (as advised; what number was set is not recorded).",
    "Not recorded in both traces (a counter or range named loss or accuracy).",
    "Names that people gave 3 times", "This server wants its key", "self a step",
    "Not a trace format that Lacuna knows: it does not begin as JSON",
    "No trace fits the filter", "What this trace is not good for", "The address is the view: send it to a colleague.",
    "the GPU waits 32 ms of every step after synchronisations", "Communication that is unhidden", "copies in line",
)

passed = failed = 0


def expect(name, holds, detail=""):
    global passed, failed
    passed += bool(holds)
    failed += not holds
    if not holds:
        print(f"FAIL {name}: {detail}")


def patterns():
    return [(re.compile(re.sub(r" (?!\?)", r"\\s+", piece), re.IGNORECASE), better) for piece, better in PIECES.items()]


def without_comments(text):
    """C or TypeScript with its comments blanked; strings stay, whatever they hold."""
    token = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`", re.DOTALL)
    return token.sub(lambda m: " " if m[0][0] == "/" else m[0], text)


def c_strings(text):
    """String literals, those that follow each other as one."""
    literal = r'"(?:\\.|[^"\\\n])*"'
    for run in re.findall(rf"{literal}(?:\s*{literal})*", without_comments(text)):
        yield "".join(part[1:-1] for part in re.findall(literal, run)).replace("\\n", " ").replace('\\"', '"')


def page_strings(text):
    """What may stand on the page: texts between tags, and string literals."""
    text = re.sub(r"\{'\s+'\}", " ", without_comments(text))
    text = re.sub(r"^(import|export) .*? from .*?;$", "", text, flags=re.MULTILINE | re.DOTALL)
    for between in re.findall(r"[>}]([^<>{}]*[A-Za-z][^<>{}]*)(?=[<{])", text):
        yield " ".join(between.split())
    for single, double, template in re.findall(r"'((?:\\.|[^'\\\n])*)'|\"((?:\\.|[^\"\\\n])*)\"|`((?:\\.|[^`\\])*)`", text):
        yield " ".join((single or double or template).split())


def sources():
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "analysis", "server", "web/src", "README.md"], cwd=ROOT,
                            capture_output=True, text=True, check=True).stdout.split()
    for name in listed:
        path = os.path.join(ROOT, name)
        if not os.path.exists(path) or ".test." in name or "/testing/" in name:
            continue
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if name.endswith((".c", ".h", ".def")):
            yield name, c_strings(text)
        elif name.endswith((".ts", ".tsx")):
            yield name, page_strings(text)
        elif name == "README.md":
            yield name, [" ".join(text.split())]


def check(where, texts, rules):
    texts = list(texts)
    # most files have none of them: one look at all texts of a file leaves few rules to try on each
    joined = "\0".join(texts)
    rules = [rule for rule in rules if rule[0].search(joined)]
    for text in texts:
        for pattern, better in rules:
            found = pattern.search(text)
            if found:
                expect(where, False, f"'{found[0]}' in '{text[:120]}' (say: {better})")
        if text.strip() in LABELS:
            expect(where, False, f"the label '{text}' (say: {LABELS[text.strip()]})")
    expect(where, True)


def main():
    rules = patterns()
    for sentence in ONCE:
        expect(f"'{sentence}' is found", any(pattern.search(sentence) for pattern, _ in rules))
    for name, texts in sources():
        check(name, texts, rules)
    small = [path for path in sorted(glob.glob(os.path.join(real_traces(), "*/*"))) if os.path.isfile(path) and
             not path.endswith((".py", ".md", ".txt", ".csv")) and "truth" not in path and os.path.getsize(path) < REAL_BYTES_MAX]
    collected = collect_texts.collect(small, LOOPS)
    expect("many texts are collected", len(collected) > 500, str(len(collected)))
    for kind in sorted({kind for kind, _ in collected}):
        check(f"texts: {kind}", (text for other, text in collected if other == kind), rules)
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
