"""The launcher as a parent: strange programs, every signal, storms, masks, limits and kills, with and without it."""
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time

SECONDS = 120  # for one program, on a machine that is busy
ONLY_ROOT = ("another_root", "another_user", "another_namespace")
REAL_TIME = list(range(int(signal.SIGRTMIN), int(signal.SIGRTMAX) + 1))

LISTENER = """
import collections, signal, sys
every = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}
signal.pthread_sigmask(signal.SIG_BLOCK, every)
print("ready", flush=True)
counts = collections.Counter()
while True:
    number = int(signal.sigwait(every))
    if number == signal.SIGRTMAX:  # the last of all in the queue
        break
    counts[number] += 1
print(sorted(counts.items()))
"""


class Signals:
    def __init__(self, area):
        self.area, self.random = area, area.random
        self.node = os.path.join(area.release, "lacuna-node")
        self.temporary = os.path.join(area.folder, "temporary")
        os.makedirs(self.temporary, exist_ok=True)
        os.chmod(area.folder, 0o755)
        self.environment = {**os.environ, "TMPDIR": self.temporary}
        self.environment.pop("LACUNA_TOKEN", None)
        self.count = 0

    def under(self, *command):
        self.count += 1
        return [self.node, "run", "--quiet", "-o", os.path.join(self.area.folder, f"out-{self.count}"), "--", *command]

    def forget(self):
        for name in os.listdir(self.area.folder):
            if name.startswith("out-"):
                shutil.rmtree(os.path.join(self.area.folder, name), ignore_errors=True)

    def start(self, command, **kwargs):
        return subprocess.Popen(command, cwd=self.temporary, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=self.environment, **kwargs)

    @staticmethod
    def finish(process):
        """(status, output, what it said); a program that never ends is ended and told as None."""
        try:
            out, said = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return None, "", "it never ended"
        return process.returncode, out, said

    @staticmethod
    def as_told(status):
        """How the launcher tells that a signal ended the job."""
        told_plainly = (None, -signal.SIGINT, -signal.SIGQUIT)
        return status if status in told_plainly or status >= 0 else 128 - status

    def left(self):
        return [name for name in os.listdir(self.temporary) if name.startswith("lacuna-")]

    # ---- rows

    def strange_programs(self):
        program = os.path.join(self.area.folder, "strange_jobs")
        here = os.path.dirname(os.path.abspath(__file__))
        root = os.path.dirname(os.path.dirname(here))
        subprocess.run(["cc", "-std=c17", "-D_GNU_SOURCE", "-O1", "-I", root, os.path.join(here, "strange_jobs.c"), os.path.join(root, "kernels/ranges.c"),
                        "-lpthread", "-ldl", "-o", program], check=True)
        names = subprocess.run([program], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
        tried, problems = 0, []
        for name in names:
            if name in ONLY_ROOT and os.geteuid() != 0:
                self.area.skip(name, "not root")
                continue
            seen = []
            for is_alone in (True, False):
                file = os.path.join(self.area.folder, f"{name}-{is_alone}")
                command = [program, name, file]
                status, out, said = self.finish(self.start(command if is_alone else self.under(*command)))
                deadline = time.monotonic() + SECONDS
                while name == "in_the_background" and time.monotonic() < deadline and not (os.path.exists(file) and os.path.getsize(file)):
                    time.sleep(0.02)
                text = ""
                if name == "in_the_background" and os.path.exists(file):
                    with open(file) as written:
                        text = written.read()
                seen.append((self.as_told(status), out, text))
            tried += 1
            if seen[0] != seen[1]:
                problems.append(f"{name}: {seen[0]} alone, {seen[1]} with the launcher: {said.strip()[:200]}")
        recorded = [name for name in os.listdir(self.area.folder) if name.startswith("out-") and
                    any(spool.endswith(".spool") and not spool.startswith("node-") for spool in os.listdir(os.path.join(self.area.folder, name)))]
        if len(recorded) < tried // 2:
            problems.append(f"only {len(recorded)} of {tried} were recorded")
        self.forget()
        self.area.row("strange programs, alone and with it", tried, problems)

    def every_signal(self):
        """What ends a program ends it, what does not does not, and the launcher never goes first."""
        tried, problems = 0, []
        stops = {signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}
        for number in sorted(set(range(1, 65)) - {int(one) for one in stops}):
            statuses = []
            for is_alone in (True, False):
                command = ["sh", "-c", "ulimit -c 0; echo $$; exec sleep 600"]
                process = self.start(command if is_alone else self.under(*command))
                job = int(process.stdout.readline())
                os.kill(process.pid, number)
                if number in (signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH):  # that nothing happened shows in the next one
                    os.kill(process.pid, signal.SIGTERM)
                statuses.append(self.as_told(self.finish(process)[0]))
            deadline = time.monotonic() + SECONDS
            while os.path.exists(f"/proc/{job}") and time.monotonic() < deadline:
                time.sleep(0.01)
            if os.path.exists(f"/proc/{job}"):
                problems.append(f"signal {number}: the job outlives its launcher")
                os.kill(job, signal.SIGKILL)
            if statuses[0] != statuses[1]:
                problems.append(f"signal {number}: status {statuses[0]} alone, {statuses[1]} with the launcher")
            tried += 1
        self.forget()
        self.area.row("each of the 64 signals", tried, problems)

    def masks(self, seconds):
        tried, problems, end = 0, [], time.monotonic() + seconds
        choices = sorted(set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP})
        while tried == 0 or time.monotonic() < end:
            ignored, blocked = (set(self.random.sample(choices, self.random.randrange(len(choices)))) for _ in range(2))

            def change(ignored=ignored, blocked=blocked):
                for number in ignored:
                    signal.signal(number, signal.SIG_IGN)
                signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

            told = []
            for command in (["grep", "^Sig[BIC]", "/proc/self/status"], self.under("grep", "^Sig[BIC]", "/proc/self/status")):
                told.append(self.finish(self.start(command, preexec_fn=change))[:2])
            tried += 1
            if told[0] != told[1]:
                problems.append(f"ignored {sorted(map(int, ignored))}, blocked {sorted(map(int, blocked))}: {told}")
        self.forget()
        self.area.row("random sets of ignored and blocked signals", tried, problems)

    def storms(self, seconds):
        """Queued signals come as often as they were sent, the others at least once."""
        tried, problems, end = 0, [], time.monotonic() + seconds
        plain = [int(number) for number in signal.valid_signals() if number < 32
                 and number not in (signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD, signal.SIGCONT, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)]
        while tried == 0 or time.monotonic() < end:
            process = self.start(self.under(sys.executable, "-c", LISTENER))
            process.stdout.readline()
            lists = [[self.random.choice(plain + REAL_TIME[:-1]) for _ in range(400)] for _ in range(4)]

            def send(numbers, pid=process.pid):
                for number in numbers:
                    os.kill(pid, number)

            threads = [threading.Thread(target=send, args=(numbers,)) for numbers in lists]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            os.kill(process.pid, REAL_TIME[-1])
            status, out, said = self.finish(process)
            got = {}
            if status == 0:
                got = {int(pair.split(",")[0]): int(pair.split(",")[1]) for pair in out.strip("[()]\n").replace(" ", "").split("),(") if pair}
            sent = [number for numbers in lists for number in numbers]
            for number in sorted(set(sent)):
                least = sent.count(number) if number >= REAL_TIME[0] else 1
                if not least <= got.get(number, 0) <= sent.count(number):
                    problems.append(f"signal {number}: sent {sent.count(number)} times, came {got.get(number, 0)} times, status {status} {said[:100]}")
            tried += len(sent)
        self.forget()
        self.area.row("storms of signals from four threads", tried, problems)

    def limits(self, seconds):
        tried, problems, end = 0, [], time.monotonic() + seconds
        kinds = ((resource.RLIMIT_NOFILE, 3, 64), (resource.RLIMIT_AS, 8 << 20, 200 << 20), (resource.RLIMIT_FSIZE, 0, 4 << 20),
                 (resource.RLIMIT_STACK, 64 << 10, 1 << 20), (resource.RLIMIT_DATA, 1 << 20, 40 << 20), (resource.RLIMIT_NPROC, 0, 3),
                 (resource.RLIMIT_SIGPENDING, 0, 4), (resource.RLIMIT_MEMLOCK, 0, 1), (resource.RLIMIT_CPU, 1, 3))
        while tried == 0 or time.monotonic() < end:
            chosen = self.random.sample(kinds, self.random.randrange(1, 4))
            values = [(kind, self.random.randrange(low, high)) for kind, low, high in chosen]

            def change(values=values):
                for kind, much in values:
                    resource.setrlimit(kind, (much, min(much + 5, resource.getrlimit(kind)[1]) if kind == resource.RLIMIT_CPU else much))

            alone, recorded = (self.finish(self.start(command, preexec_fn=change)) for command in
                               (["sh", "-c", "echo ran; exit 3"], self.under("sh", "-c", "echo ran; exit 3")))
            tried += 1
            # what cannot even be loaded is no launcher's fault: the loader says so
            if (self.as_told(alone[0]), alone[1]) != recorded[:2] and not (recorded[0] in (127, -signal.SIGSEGV, -signal.SIGKILL) and not recorded[1]):
                problems.append(f"{values}: {alone} alone, {recorded} with the launcher")
        self.forget()
        self.area.row("random limits", tried, problems)

    def kills(self, seconds):
        """SIGKILL at any time: CMD goes with its launcher, and the next one finds what was left."""
        tried, problems, end = 0, [], time.monotonic() + seconds
        while tried == 0 or time.monotonic() < end:
            mark = f"6{self.random.randrange(10 ** 8):08d}"
            process = self.start(self.under("sleep", mark))
            time.sleep(self.random.random() * 0.05)
            process.kill()
            self.finish(process)
            deadline = time.monotonic() + SECONDS
            while self.runs(mark) and time.monotonic() < deadline:
                time.sleep(0.01)
            if self.runs(mark):
                problems.append("the job outlives its launcher")
            tried += 1
        self.finish(self.start(self.under("true")))
        left = [name for name in self.left() if os.path.exists(os.path.join(self.temporary, name, "launcher"))]
        for _ in range(len(left) // 16 + 1):
            self.finish(self.start(self.under("true")))
        left = [name for name in self.left() if os.path.exists(os.path.join(self.temporary, name, "launcher"))]
        if left:
            problems.append(f"{len(left)} folders are left: {left[:3]}")
        self.forget()
        self.area.row("launchers killed within 50 ms", tried, problems)

    @staticmethod
    def runs(mark):
        for name in os.listdir("/proc"):
            try:
                if name.isdigit():
                    with open(f"/proc/{name}/cmdline") as file:
                        if file.read() == f"sleep\0{mark}\0":
                            return True
            except OSError:
                pass
        return False

    @staticmethod
    def change_of(pid):
        """The status with which it stopped or ended; None when it does neither."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            changed, status = os.waitpid(pid, os.WUNTRACED | os.WNOHANG)
            if changed:
                return status
            time.sleep(0.001)
        return None

    def stops(self, seconds):
        """A launcher that is told to stop stops with its job, and both go on, again and again."""
        tried, problems, end = 0, [], time.monotonic() + seconds
        # in a group whose leader has its parent in this session: an orphaned group, as behind setsid, cannot be stopped
        process = self.start(self.under("sh", "-c", "echo $$; while read line; do echo $line; done; exit 3"), preexec_fn=os.setpgrp)
        job = int(process.stdout.readline())
        while tried == 0 or time.monotonic() < end:
            process.send_signal(signal.SIGTSTP)
            status = self.change_of(process.pid)
            if status is None:
                problems.append("it did not stop")
                break
            if not os.WIFSTOPPED(status):
                problems.append(f"it ended with {status}")
                process.returncode = 1
                break
            with open(f"/proc/{job}/stat") as file:
                state = file.read().rsplit(")", 1)[1].split()[0]
            if state != "T":
                problems.append(f"the launcher stopped, the job is {state}")
            process.send_signal(signal.SIGCONT)
            process.stdin.write(f"{tried}\n")
            process.stdin.flush()
            if process.stdout.readline() != f"{tried}\n":
                problems.append("the job did not go on")
            tried += 1
        status = self.finish(process)[0]
        if status != 3 and not problems:
            problems.append(f"status {status}")
        self.forget()
        self.area.row("stopped and let go on", tried, problems)


def attack(area):
    signals = Signals(area)
    signals.strange_programs()
    signals.every_signal()
    for row, share in ((signals.masks, 0.2), (signals.storms, 0.25), (signals.limits, 0.33), (signals.kills, 0.5), (signals.stops, 0.8)):
        row(area.time_left(share))
