"""A PostgreSQL of the distribution for tests: on a Unix socket in a temporary folder, as a user without rights."""
import functools
import glob
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import threading

PASSWORD = "pa55 /w@rd"
IN_ADDRESS = "pa55%20%2Fw%40rd"


def programs():
    """Its folder of programs, the newest first, or None."""
    found = [path for path in glob.glob("/usr/lib/postgresql/*/bin") if os.path.exists(os.path.join(path, "initdb"))]
    return max(found, key=lambda path: int(path.split("/")[4]), default=None)


@functools.lru_cache(None)
def why_not():
    """Why it cannot run here, or None."""
    if programs() is None:
        return "PostgreSQL is not installed (postgresql)"
    if subprocess.run(["sh", "-c", "ldconfig -p 2>/dev/null || /sbin/ldconfig -p"], capture_output=True, text=True).stdout.find("libpq.so.5") < 0:
        return "libpq is not installed (libpq5)"
    return None


class Postgres:
    """What it holds outlives stop() and start(). User `lacuna` needs no password, user `team` does."""

    def __init__(self):
        self.home = tempfile.mkdtemp(prefix="lacuna-pg-", dir="/tmp")  # a socket's path is short
        self.user = "nobody" if os.geteuid() == 0 else None
        if self.user is not None:
            os.chown(self.home, pwd.getpwnam(self.user).pw_uid, -1)
        os.chmod(self.home, 0o755)
        self.data = os.path.join(self.home, "data")
        self._run("initdb", "-D", self.data, "-U", "lacuna", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8")
        with open(os.path.join(self.data, "pg_hba.conf"), "w") as file:
            file.write("local all team scram-sha-256\nlocal all all trust\n")
        self.start()
        self.sql("CREATE ROLE team LOGIN PASSWORD '" + PASSWORD + "'")

    def _run(self, program, *arguments):
        done = subprocess.run([os.path.join(programs(), program), *arguments], user=self.user, cwd=self.home, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
        if done.returncode != 0:
            raise RuntimeError(f"{program}: {done.stdout[-2000:]}")

    def start(self):
        # its output goes to a file: a pipe would stay open as long as it runs
        # a crash takes what no commit has written: the writer of the log does not come before it
        options = f"-c listen_addresses= -c unix_socket_directories={self.home} -c fsync=off -c max_connections=50 -c wal_writer_delay=10s"
        self._run("pg_ctl", "-D", self.data, "-l", os.path.join(self.home, "log"), "-o", options, "-t", "200", "-w", "start")

    def stop(self, how="fast"):
        self._run("pg_ctl", "-D", self.data, "-m", how, "-t", "200", "-w", "stop")

    def sql(self, text, database="postgres"):
        done = subprocess.run([os.path.join(programs(), "psql"), "-h", self.home, "-U", "lacuna", "-d", database, "-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", text],
                              capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            raise RuntimeError(f"psql: {done.stderr}")
        return done.stdout.strip()

    def database(self, name):
        """A new one of user `team`. Returns its address without a password."""
        self.sql(f"CREATE DATABASE {name} OWNER team")
        return f"postgresql://team@/{name}?host={self.home}"

    def log_text(self):
        with open(os.path.join(self.home, "log"), errors="replace") as file:
            return file.read()

    def close(self):
        try:
            self.stop("immediate")
        finally:
            shutil.rmtree(self.home, ignore_errors=True)


class Wire:
    """Between a server and a Postgres: passes all on, but cuts the connection over which an expected COMMIT goes."""

    def __init__(self, postgres):
        self.to = os.path.join(postgres.home, ".s.PGSQL.5432")
        self.folder = tempfile.mkdtemp(prefix="lacuna-wire-", dir="/tmp")
        self.commits, self.cut_at, self.keeps_question = 0, None, False
        self.cut, self.let_go = threading.Event(), threading.Event()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(os.path.join(self.folder, ".s.PGSQL.5432"))
        self.listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def expect(self, which, keeps_question=False, meanwhile=lambda: None):
        """Cut at the commit of that number from now, 1 the next: when PostgreSQL has made it; or before it hears of it, and it sees that only after let_go."""
        self.commits, self.keeps_question, self.meanwhile = 0, keeps_question, meanwhile
        self.cut.clear()
        self.let_go.clear()
        self.cut_at = which

    def _accept(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(self.to)
            except OSError:  # it is not there: so is this
                client.close()
                continue
            state = {"is_cut": False}
            threading.Thread(target=self._pass_on, args=(client, server, state), daemon=True).start()
            threading.Thread(target=self._pass_back, args=(server, client, state), daemon=True).start()

    def _pass_on(self, client, server, state):
        try:
            while data := client.recv(65536):
                if b"COMMIT\0" in data:
                    self.commits += 1
                    if self.commits == self.cut_at:
                        if self.keeps_question:
                            client.shutdown(socket.SHUT_RDWR)
                            self.cut.set()
                            self.let_go.wait(60)
                            break
                        state["is_cut"] = True
                server.sendall(data)
        except OSError:
            pass
        hang_up(server)

    def _pass_back(self, server, client, state):
        answer = b""
        try:
            while data := server.recv(65536):
                if state["is_cut"]:
                    answer += data
                    if b"COMMIT\0" in answer:
                        self.meanwhile()
                        self.cut.set()
                        break
                    continue
                client.sendall(data)
        except OSError:
            pass
        hang_up(client)

    def close(self):
        self.let_go.set()
        hang_up(self.listener)
        self.listener.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def hang_up(connection):
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
