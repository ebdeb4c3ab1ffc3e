"""Installs locked packages with pip, which asks the index even for what it has in its cache, and before 23.1 builds what has a hash again and again: their
files are kept by hash, source distributions with the wheels that were built of them, and installed without the index.

Usage: pip_install.py STORE REQUIREMENTS PIP... install OPTIONS... STORE is a folder that installations share, each file in a folder of its hash.
"""
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile

LOCKED = re.compile(r"[A-Za-z0-9][^ ;@]*==[^ ;]+ --hash=sha256:([0-9a-f]{64})$")

# Options of `pip install` that `pip download` does not know. What has a value of its own is `--name=value`.
INSTALL_ONLY = ("--compile", "--no-compile", "--user", "--target", "--root", "--prefix", "--upgrade", "--force-reinstall", "--ignore-installed",
                "--no-warn-script-location", "--no-warn-conflicts", "--break-system-packages", "--report", "--dry-run")


def files_in(folder, is_wheel=True):
    try:
        return [os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".whl") == is_wheel]
    except FileNotFoundError:
        return []


def folder_of(store, sha256):
    """Of a file; what was built of it is for one Python."""
    built = "%s-%s" % (sha256, sys.implementation.cache_tag)
    return os.path.join(store, built if files_in(os.path.join(store, built)) else sha256)


def wheel_in(store, sha256):
    """None for what is not there, and for a source distribution that is not built."""
    return next(iter(files_in(folder_of(store, sha256))), None)


def keep(file, store):
    with open(file, "rb") as stream:
        target = os.path.join(store, hashlib.sha256(stream.read()).hexdigest())
    place = tempfile.mkdtemp(dir=store)  # Others may keep the same file at this moment.
    shutil.move(file, place)
    os.chmod(place, 0o755)
    try:
        os.rename(place, target)
    except OSError:
        shutil.rmtree(place)


def download(pip, options, lines, store):
    with tempfile.TemporaryDirectory(dir=store) as folder:
        listed, files = os.path.join(folder, "requirements.txt"), os.path.join(folder, "files")
        with open(listed, "w") as stream:
            stream.writelines(line + "\n" for line in lines)
        known = [option for option in options if option.split("=")[0] not in INSTALL_ONLY]
        if subprocess.run(pip + ["download", "--quiet", "--dest", files] + known + ["-r", listed], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
            for name in os.listdir(files):
                keep(os.path.join(files, name), store)


def build(pip, options, indexes, lines, store):
    """Builds wheels of those that are there as source distributions. A build that fails ends this program: it has said why."""
    for sha256 in [LOCKED.match(line).group(1) for line in lines]:
        source = next(iter(files_in(os.path.join(store, sha256), is_wheel=False)), None)
        if not source or wheel_in(store, sha256):
            continue
        with tempfile.TemporaryDirectory(dir=store) as folder:
            made, listed = os.path.join(folder, "made"), os.path.join(folder, "indexes.txt")
            with open(listed, "w") as stream:
                stream.writelines(line + "\n" for line in indexes)
            known = [option for option in options if option.split("=")[0] not in INSTALL_ONLY + ("--require-hashes",)]
            code = subprocess.run(pip + ["wheel", "--no-deps", "--wheel-dir", made] + known + ["-r", listed, source]).returncode
            if code:
                sys.exit(code)
            os.chmod(made, 0o755)
            try:
                os.rename(made, os.path.join(store, "%s-%s" % (sha256, sys.implementation.cache_tag)))
            except OSError:  # Another process was faster.
                pass


def hash_line(line, store):
    """Of what was built, a wheel's own hash is compared."""
    with open(wheel_in(store, LOCKED.match(line).group(1)), "rb") as stream:
        return line.split(" --hash=")[0] + " --hash=sha256:" + hashlib.sha256(stream.read()).hexdigest()


def install_kept(pip, options, lines, store):
    """Returns true if all files were there, and are installed."""
    with tempfile.TemporaryDirectory(dir=store) as folder:
        listed = os.path.join(folder, "requirements.txt")
        with open(listed, "w") as stream:
            stream.writelines("--find-links %s\n" % folder_of(store, LOCKED.match(line).group(1)) for line in lines)
            stream.writelines(hash_line(line, store) + "\n" for line in lines)
        known = [option for option in options if not option.startswith("--no-binary")]  # It was obeyed when a source was locked.
        return subprocess.run(pip + ["install", "--no-index"] + known + ["-r", listed]).returncode == 0


def main(store, requirements, *command):
    pip, options = list(command[:command.index("install")]), list(command[command.index("install") + 1:])
    files = []  # With addresses of indexes.
    while "-r" in options:
        at = options.index("-r")
        files += options[at:at + 2]
        del options[at:at + 2]
    with open(requirements) as stream:
        lines = [line.strip() for line in stream]
    locked = [line for line in lines if LOCKED.match(line)]
    indexes = [line for line in lines if line.startswith("-")]
    if locked and len(locked) + len(indexes) == len([line for line in lines if line]):
        os.makedirs(store, exist_ok=True)
        missing = [line for line in locked if not wheel_in(store, LOCKED.match(line).group(1))]
        if missing:
            download(pip, options + files, indexes + [line for line in missing if not files_in(os.path.join(store, LOCKED.match(line).group(1)), False)], store)
            build(pip, options + files, indexes, missing, store)
        if all(wheel_in(store, LOCKED.match(line).group(1)) for line in locked) and install_kept(pip, options, locked, store):
            return
    sys.exit(subprocess.run(pip + ["install"] + options + files + ["-r", requirements]).returncode)


main(*sys.argv[1:])
