# Usage: finish.py NAMES. Compiles the packages in the file NAMES, and makes a layer of them the same on every machine: byte code that is
# valid whatever the times of files are (PEP 552), and one time for all. The packages' own tests, half of what numpy, pandas and their like bring,
# stay source: no step imports them.
# finish.py --compile: compiles the files that are named on its standard input, each line a source and the path of its byte code.
import gc
import os
import re
import subprocess
import sys

if sys.version_info < (3, 8):  # Without importlib.metadata.
    sys.exit(0)
from importlib import _bootstrap_external as bootstrap
from importlib import metadata, util

TIME = 315532800  # 1980-01-01, the first day that a zip file can have.


def files_of(names):
    """Yields paths, and whether byte code is made of them."""
    for package in metadata.distributions():
        if re.sub("[-_.]+", "-", package.metadata["Name"] or "").lower() in names:
            folder = os.path.realpath(str(package.locate_file("")))
            for file in package.files or []:
                yield os.path.normpath(os.path.join(folder, str(file))), file.suffix == ".py" and "tests" not in file.parts[:-1]


def compile_one(source, target):
    """Compiles as py_compile does, without its checks. A source for another version of Python is left out."""
    try:
        with open(source, "rb") as stream:
            data = stream.read()
        code = compile(data, source, "exec", dont_inherit=True)
        made = bootstrap._code_to_hash_pyc(code, util.source_hash(data), False)
    except (SyntaxError, ValueError, UnicodeError, RecursionError, MemoryError):
        return
    with open(target, "wb") as stream:
        stream.write(made)


def compile_listed():
    gc.disable()  # Syntax trees have no cycles to collect, and the search for them takes a tenth of the time.
    for line in sys.stdin.read().splitlines():
        compile_one(*line.split("\t"))


def compile_lines(lines):
    """Compiles in as many processes as there are processors. With a fixed seed, constants that are sets always have the same order."""
    count = min(len(os.sched_getaffinity(0)), len(lines))
    command = [sys.executable, "-B", "-W", "ignore", os.path.abspath(__file__), "--compile"]
    environment = dict(os.environ, PYTHONHASHSEED="0", PYTHONIOENCODING="utf-8:surrogateescape")
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE, env=environment) for _ in range(count)]
    for number, process in enumerate(processes):
        process.stdin.write("".join(line + "\n" for line in lines[number::count]).encode("utf-8", "surrogateescape"))
        process.stdin.close()
    if any([process.wait() for process in processes]):
        sys.exit("the byte code could not be written")


def compile_all(sources):
    """Returns the paths of the byte code."""
    compiled = {source: util.cache_from_source(source) for source in sources}
    for folder in {os.path.dirname(target) for target in compiled.values()}:
        os.makedirs(folder, exist_ok=True)
    compile_lines(["\t".join(each) for each in compiled.items()])
    return [target for target in compiled.values() if os.path.exists(target)]


if sys.argv[1] == "--compile":
    compile_listed()
    sys.exit()
with open(sys.argv[1]) as stream:
    found = {file: is_compiled for file, is_compiled in files_of(set(stream.read().split())) if os.path.lexists(file)}
installed = sorted(found)
byte_code = compile_all([file for file in installed if found[file]])
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
