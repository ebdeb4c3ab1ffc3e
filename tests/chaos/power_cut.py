"""Simulates a power cut on a folder: a random part of the data that was not synced is lost.

A file system keeps data that was synced (fsync). A file that was not synced may be as it was before, empty, full of zeros although its size and time are right,
or a mixture of old and new pages. A name that was not synced may be missing, or be that of the file before.
"""

import contextlib
import os
import pathlib
import shutil

PAGE = 4096


class Disk:
    """Records a folder as it is on the disk now. The library faulty_disk.so copies what is synced from now on into the folder `synced`."""

    def __init__(self, folder: pathlib.Path, synced: pathlib.Path):
        self.folder, self.synced = folder, synced
        shutil.rmtree(synced, ignore_errors=True)
        synced.mkdir()
        self.before = {path: path.read_bytes() for path in self.files()}
        self.inodes = {path: path.stat().st_ino for path in self.before}
        self.names = {path.stat().st_ino: set(os.listdir(path)) for path in self.folders()}

    def folders(self) -> list[pathlib.Path]:
        return [pathlib.Path(folder) for folder, _, _ in os.walk(self.folder)]

    def files(self) -> list[pathlib.Path]:
        return [path for folder in self.folders() for path in sorted(folder.iterdir()) if path.is_file() and not path.is_symlink()]

    def content_on_disk(self, path: pathlib.Path, inode: int) -> bytes | None:
        """Returns the content of a file that a power cut would leave; None if the file was never synced."""
        kept = self.synced / str(inode)
        if kept.exists():
            return kept.read_bytes()
        return self.before[path] if self.inodes.get(path) == inode else None

    def names_on_disk(self, folder: pathlib.Path) -> set[str]:
        """Returns the names in a folder that a power cut would leave."""
        inode = folder.stat().st_ino
        kept = self.synced / str(inode)
        return set(kept.read_text().splitlines()) if kept.exists() else self.names.get(inode, set())

    def cut_power(self, random) -> int:
        """Changes the folder as a power cut may. Returns how many files and names differ from what the program has written."""
        harmed = 0
        for path in self.files():
            status = path.stat()
            content, synced = path.read_bytes(), self.content_on_disk(path, status.st_ino)
            if content == synced:
                continue
            old = synced if synced is not None else b""
            grown = old + bytes(max(0, len(content) - len(old)))
            pages = range(0, len(content), PAGE)
            torn = b"".join((content if random.random() < 0.5 else grown)[at:at + PAGE] for at in pages)
            self.write(path, random.choice([content, old, grown[:max(len(content), len(old))], torn, self.before.get(path, b"")]), status)
            harmed += path.read_bytes() != content
        for folder in self.folders():
            if not folder.is_dir():  # A folder above it has lost its name.
                continue
            on_disk = self.names_on_disk(folder)
            for name in sorted(set(os.listdir(folder)) - on_disk):
                if random.random() < 0.25:
                    self.remove(folder / name)
                    harmed += 1
        return harmed

    @staticmethod
    def write(path: pathlib.Path, content: bytes, status: os.stat_result):
        """Writes a file's content and keeps its times and mode, which may reach the disk before the content does."""
        os.chmod(path, 0o600)
        path.write_bytes(content)
        os.chmod(path, status.st_mode & 0o7777)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    @staticmethod
    def remove(path: pathlib.Path):
        above = path.parent.stat()
        os.chmod(path.parent, above.st_mode | 0o700)
        if path.is_dir() and not path.is_symlink():
            for folder, _, _ in os.walk(path):
                os.chmod(folder, 0o700)
            shutil.rmtree(path)
        else:
            path.unlink()
        with contextlib.suppress(OSError):
            os.chmod(path.parent, above.st_mode & 0o7777)
            os.utime(path.parent, ns=(above.st_atime_ns, above.st_mtime_ns))
