# Usage: finish.py NAMES STORE. Compiles the packages in the file NAMES, and makes a layer of them the same on every machine: byte code that is
# valid whatever the times of files are (PEP 552), and one time for all. STORE, a folder that builds share, keeps byte code.
import hashlib
import os
import re
import shutil
import subprocess
import sys

if sys.version_info < (3, 8):  # It has no importlib.metadata.
    sys.exit(0)
from importlib import metadata, util

TIME = 315532800  # 1980-01-01, the first that a zip file can have.


def files_of(names):
    for package in metadata.distributions():
        if re.sub("[-_.]+", "-", package.metadata["Name"] or "").lower() in names:
            for file in package.files or []:
                yield os.path.normpath(os.path.join(os.path.realpath(str(package.locate_file(""))), str(file)))


def compile_missing(sources, folder):
    """With a fixed seed, constants that are sets have one order. Sources for another Python are no error. compileall takes a list file by file."""
    command = [sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", "-i"]
    processes = []
    count = min(len(os.sched_getaffinity(0)), len(sources))
    for number in range(count):
        path = os.path.join(folder, "list.%d.%d" % (os.getpid(), number))
        with open(path, "w", encoding="utf-8", errors="surrogateescape") as stream:
            stream.write("\n".join(sources[number::count]) + "\n")
        processes.append((path, subprocess.Popen(command + [path], stdout=subprocess.DEVNULL, cwd=folder, env=dict(os.environ, PYTHONHASHSEED="0"))))
    for path, process in processes:
        process.wait()
        os.remove(path)


def compile_all(sources, store):
    """Returns the paths of the byte code. What another build has compiled already is copied."""
    kept = {}
    for source in sources:
        with open(source, "rb") as stream:
            kept[source] = os.path.join(store, hashlib.sha256(source.encode() + b"\0" + stream.read()).hexdigest())
    compiled = {source: util.cache_from_source(source) for source in sources}
    missing = []
    for source, target in compiled.items():
        os.makedirs(os.path.dirname(target), exist_ok=True)
        try:
            shutil.copyfile(kept[source], target)
        except FileNotFoundError:
            missing.append(source)
    compile_missing(missing, store)
    for source in missing:
        if os.path.exists(compiled[source]):
            temporary = "%s.%d" % (kept[source], os.getpid())
            shutil.copyfile(compiled[source], temporary)
            os.rename(temporary, kept[source])
    return [target for target in compiled.values() if os.path.exists(target)]


with open(sys.argv[1]) as stream:
    installed = sorted(file for file in set(files_of(set(stream.read().split()))) if os.path.lexists(file))
store = os.path.join(sys.argv[2], sys.implementation.cache_tag + "-" + util.MAGIC_NUMBER.hex())
os.makedirs(store, exist_ok=True)
byte_code = compile_all([file for file in installed if file.endswith(".py")], store)
for file in byte_code:
    os.chmod(file, 0o644)
folders = set()
for file in installed + byte_code:
    folder = os.path.dirname(file)
    while folder not in folders and folder != "/":
        folders.add(folder)
        folder = os.path.dirname(folder)
for path in installed + byte_code + sorted(folders):
    os.utime(path, (TIME, TIME), follow_symlinks=False)
