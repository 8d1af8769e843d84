"""A small disk of its own, which can be filled and emptied; needs root."""
import os
import subprocess

MIB = 1 << 20


class SmallDisk:
    """A tmpfs. The server wants 256 MiB free before an upload begins, so it is a little larger than that."""

    def __init__(self, folder, mib=340):
        self.path = os.path.join(folder, "disk")
        os.makedirs(self.path)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mib}m,mode=0755", "none", self.path], check=True, capture_output=True)
        self.filler = os.path.join(self.path, "filler")
        self.data = os.path.join(self.path, "data")
        os.makedirs(self.data)

    @staticmethod
    def why_not():
        """Why there can be none, or an empty text."""
        if os.geteuid() != 0:
            return "a disk can be mounted by root only"
        done = subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, text=True)
        return "" if done.returncode == 0 else "mount: " + done.stderr.strip()

    def free_bytes(self):
        now = os.statvfs(self.path)
        return now.f_bavail * now.f_frsize

    def fill(self, leave_bytes=0):
        """Takes what is free but for so many bytes."""
        fd = os.open(self.filler, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            while (take := self.free_bytes() - leave_bytes) >= 4096:
                size = os.fstat(fd).st_size
                try:
                    os.posix_fallocate(fd, size, take // 4096 * 4096)
                except OSError:
                    break
        finally:
            os.close(fd)

    def empty(self):
        if os.path.exists(self.filler):
            os.unlink(self.filler)

    def close(self):
        subprocess.run(["umount", "-l", self.path], check=False)
