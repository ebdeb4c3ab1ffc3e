"""Installs locked packages. Any build may have written to STORE: a file of it is copied to a folder of this program's own, compared with its hash there, and
installed without an index. What STORE lacks is downloaded from the address of its lock, else the installer asks an index.

Usage: install_locked.py install STORE BUILT LOCKED INSTALLER... install OPTIONS...
       install_locked.py build STORE BUILT LOCKED INSTALLER... install OPTIONS...
       install_locked.py tool STORE FOLDER TOOLS NAME PIP...
STORE: files by hash, `-` for none. BUILT: wheels by the hash of their source; nobody else writes to it. LOCKED: lines of requirements; LOCKED.addresses beside
it may have `HASH BYTES NAME ADDRESS` of files. `build` fills BUILT; `tool` unpacks the wheel of a tool into FOLDER, its programs into FOLDER/bin.
"""
import base64
import hashlib
import http.client
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request
import zipfile
from concurrent.futures import ThreadPoolExecutor

LOCKED = re.compile(r"[A-Za-z0-9][^ ;@]*==[^ ;]+ --hash=sha256:([0-9a-f]{64})$")
LARGEST = 16 << 30  # Maximum number of bytes of a file whose size is not in the lock.

# Options of `pip install` that `pip wheel` does not know. Options with a value are written as `--name=value`.
INSTALL_ONLY = ("--compile", "--no-compile", "--user", "--target", "--root", "--prefix", "--upgrade", "--force-reinstall", "--ignore-installed",
                "--no-warn-script-location", "--no-warn-conflicts", "--break-system-packages", "--report", "--dry-run", "--require-hashes", "--no-deps")
# Options of `uv pip install` that `uv build` knows.
UV_BUILD = ("--index", "--default-index", "--index-url", "--extra-index-url", "--find-links", "--index-strategy", "--keyring-provider", "--exclude-newer",
            "--config-setting", "--config-settings", "--native-tls", "--allow-insecure-host", "--no-index", "--no-cache")
# Options that are left out once the locked files are there.
NOT_WITH_FILES = ("--no-binary", "--index", "--extra-index", "--default-index")
DEFAULT_INDEX = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL")


class Locked:
    def __init__(self, line, addresses):
        self.line, self.sha256 = line, LOCKED.match(line).group(1)
        size, name, self.address = addresses.get(self.sha256, (0, "", ""))
        self.size, self.name = int(size), os.path.basename(name)

    def is_source(self):
        return not self.name.endswith(".whl")


def read_locked(path):
    """Returns the packages with a version and a hash, the lines of other packages, and the lines of options."""
    with open(path) as stream:
        lines = [line.strip() for line in stream if line.strip()]
    addresses = {}
    if os.path.exists(path + ".addresses"):
        with open(path + ".addresses") as stream:
            addresses = {words[0]: words[1:4] for words in (line.rstrip("\n").split(" ", 3) for line in stream) if len(words) == 4}
    options = [line for line in lines if line.startswith("-")]
    locked = [Locked(line, addresses) for line in lines if LOCKED.match(line)]
    return locked, [line for line in lines if line not in options and not LOCKED.match(line)], options


def copy_verified(stream, target, sha256, size):
    """Copies a stream to the file `target`. Returns true if its bytes have the hash; else removes the target."""
    digest, count = hashlib.sha256(), 0
    with open(target, "wb") as copy:
        for block in iter(lambda: stream.read(1 << 20), b""):
            count += len(block)
            if count > (size or LARGEST):
                break
            digest.update(block)
            copy.write(block)
    if digest.hexdigest() == sha256:
        return True
    os.remove(target)
    return False


def copy_file(path, target, sha256, size=0):
    """Copies a file that others may have put there, as copy_verified() does. Refuses a link, a device and a file of another size."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    with os.fdopen(descriptor, "rb") as stream:
        status = os.fstat(descriptor)
        is_plain = stat.S_ISREG(status.st_mode) and (status.st_size == size or not size)
        return is_plain and copy_verified(stream, target, sha256, size)


def keep(store, file, sha256):
    """Copies the file into the store, which another program may have replaced. A failure is ignored."""
    if store == "-" or os.path.islink(store):
        return
    temporary = os.path.join(store, "%s.%d" % (sha256, os.getpid()))
    try:
        os.makedirs(store, exist_ok=True)
        with open(file, "rb") as source, os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644), "wb") as copy:
            shutil.copyfileobj(source, copy, 1 << 20)
        os.rename(temporary, os.path.join(store, sha256))
    except OSError:
        try:
            os.remove(temporary)
        except OSError:
            pass


class Indexes:
    """The servers that may be asked for a file, and their logins."""
    def __init__(self, texts):
        texts = list(texts) + [value for name, value in os.environ.items() if re.match("(PIP|UV)_", name)]
        found = [(login, host) for text in texts for login, host in re.findall(r"https?://(?:([^/?#@\s]+)@)?([^/?#\s@]+)", text)]
        self.logins = {host: login for login, host in found if login}
        self.hosts = {host for _, host in found}
        self.is_usual = not any(os.environ.get(name) for name in DEFAULT_INDEX) and not any(re.search("--(default-)?index(-url)?[= ]|(^|[ ])-i[ ]", text) for text in texts)

    def download(self, each, target):
        """Downloads a file, and returns true if it has its hash. Returns false if its server may not be asked."""
        host = urllib.parse.urlsplit(each.address).netloc
        if not each.address.startswith(("http://", "https://")) or not (self.is_usual or host in self.hosts):
            return False
        request = urllib.request.Request(each.address, headers={"Accept-Encoding": "identity", "User-Agent": "pipe"})
        if host in self.logins:
            login = urllib.parse.unquote(self.logins[host])
            request.add_unredirected_header("Authorization", "Basic " + base64.b64encode(login.encode()).decode())
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return copy_verified(answer, target, each.sha256, each.size)
        except (OSError, ValueError, http.client.HTTPException):
            return False


def collect(store, locked, folder, texts):
    """Puts each file into a folder below `folder` that is named after its hash, and returns the packages whose files could not be had. A file from a server with a login
    is not kept in the store, which others read."""
    indexes = Indexes(texts)

    def get(each):
        if not each.name:
            return each
        place = os.path.join(folder, each.sha256)
        os.makedirs(place, exist_ok=True)
        target = os.path.join(place, each.name)
        if copy_file(os.path.join(store, each.sha256), target, each.sha256, each.size) or copy_file(each.address, target, each.sha256, each.size):
            return None
        if not indexes.download(each, target):
            return each
        if urllib.parse.urlsplit(each.address).netloc not in indexes.logins:
            keep(store, target, each.sha256)
        return None

    with ThreadPoolExecutor(max_workers=16) as pool:
        return [each for each in pool.map(get, locked) if each]


def only_file(folder):
    """Returns the path of the only file in the folder; empty if there is none, or more than one."""
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return os.path.join(folder, names[0]) if len(names) == 1 else ""


def split_files(command):
    """Returns the words before `install`, the options, and separately the options `-r FILE`, whose files have addresses of indexes."""
    at = command.index("install")
    installer, options, files = list(command[:at]), list(command[at + 1:]), []
    while "-r" in options:
        at = options.index("-r")
        files += options[at:at + 2]
        del options[at:at + 2]
    return installer, options, files


def texts_of(options, files, lines):
    texts = list(options) + list(lines)
    for file in files[1::2]:
        with open(file) as stream:
            texts += stream.read().splitlines()
    return texts


def place_of(built, sha256):
    return os.path.join(built, "%s-%s" % (sha256, sys.implementation.cache_tag))


def build(store, built, locked, lines, command):
    """Builds a wheel of each source. A build that fails has printed why, and ends this program."""
    installer, options, files = split_files(command)
    texts = texts_of(options, files, lines)
    sources = [each for each in locked if each.is_source() and not only_file(place_of(built, each.sha256))]
    is_uv = installer[-1] == "pip" and installer[-2:-1] != ["-m"]
    if is_uv:
        indexes = [word for text in texts_of([], files, lines) for word in text.split(" ", 1)]
        known = [word for word in options if word.split("=")[0] in UV_BUILD] + indexes
        python = options[options.index("--python"):][:2]
        make = [installer[0], "build", "--wheel", "--no-progress"] + python + known + ["--out-dir"]
        if subprocess.run([installer[0], "build", "--help"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
            return  # An older uv builds while it installs.
    else:
        known = [word for word in options if word.split("=")[0] not in INSTALL_ONLY]
        make = installer + ["wheel", "--no-deps"] + known + files + ["--wheel-dir"]
    with tempfile.TemporaryDirectory() as folder:
        missing = collect(store, sources, folder, texts)
        for each in sources:
            if each in missing:
                continue
            os.makedirs(built, exist_ok=True)
            made = tempfile.mkdtemp(dir=built)
            code = subprocess.run(make + [made, only_file(os.path.join(folder, each.sha256))]).returncode
            if code:
                sys.exit(code)
            if os.path.exists(os.path.join(made, ".gitignore")):  # Made by uv.
                os.remove(os.path.join(made, ".gitignore"))
            os.chmod(made, 0o755)
            try:
                os.rename(made, place_of(built, each.sha256))
            except OSError:  # Another process was faster.
                shutil.rmtree(made)


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        for block in iter(lambda: stream.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def hash_line(each, wheel):
    """Returns the requirement of a package that was built here, with the hash of its wheel."""
    return each.line.split(" --hash=")[0] + " --hash=sha256:" + sha256_of(wheel)


def install(store, built, locked, lines, command):
    """Returns true if all files could be had, and are installed."""
    installer, options, files = split_files(command)
    with tempfile.TemporaryDirectory() as folder:
        wheels = {each: only_file(place_of(built, each.sha256)) for each in locked}
        if collect(store, [each for each in locked if not wheels[each]], folder, texts_of(options, files, lines)):
            return False
        for each in locked:
            wheels[each] = wheels[each] or only_file(os.path.join(folder, each.sha256))
        if not all(wheel.endswith(".whl") for wheel in wheels.values()):
            return False
        listed = os.path.join(folder, "requirements.txt")
        with open(listed, "w") as stream:
            stream.writelines("--find-links %s\n" % os.path.dirname(wheel) for wheel in wheels.values())
            stream.writelines((hash_line(each, wheel) if each.is_source() else each.line) + "\n" for each, wheel in wheels.items())
        known = [option for option in options if not option.startswith(NOT_WITH_FILES)]
        return subprocess.run(installer + ["install", "--no-index"] + known + ["-r", listed]).returncode == 0


def install_all(store, built, path, command):
    locked, others, lines = read_locked(path)
    if locked and install(store, built, locked, lines, command):
        if not others:
            return 0
        rest = others
    else:
        rest = [each.line for each in locked] + others
    installer, options, files = split_files(command)
    with tempfile.TemporaryDirectory() as folder:
        listed = os.path.join(folder, "requirements.txt")
        with open(listed, "w") as stream:
            stream.writelines(line + "\n" for line in lines + rest)
        return subprocess.run(installer + ["install"] + options + files + ["-r", listed]).returncode


def unpack_tool(store, target, path, name, pip):
    """Unpacks the wheel of a tool for this machine. TOOLS has `NAME==VERSION MACHINE LIBRARY HASH` of each wheel; `any` fits all."""
    try:
        library = "gnu" if os.confstr("CS_GNU_LIBC_VERSION") else "musl"
    except (ValueError, OSError):
        library = "musl"
    with open(path) as stream:
        rows = [line.split() for line in stream if line.startswith(name + "==")]
    rows = [row for row in rows if row[1] in (os.uname().machine, "any") and row[2] in (library, "any")]
    if not rows:
        sys.exit("there is no %s for %s with %s" % (name, os.uname().machine, library))
    line = rows[0][0] + "".join(" --hash=sha256:" + row[3] for row in rows)
    with tempfile.TemporaryDirectory() as folder:
        wheel = os.path.join(folder, "wheel")
        for row in rows:
            if copy_file(os.path.join(store, row[3]), wheel, row[3]):
                break
        else:
            listed, files = os.path.join(folder, "requirements.txt"), os.path.join(folder, "files")
            with open(listed, "w") as stream:
                stream.write(line + "\n")
            code = subprocess.run(list(pip) + ["download", "--quiet", "--no-deps", "--require-hashes", "--only-binary", ":all:", "--dest", files, "-r", listed]).returncode
            if code:
                return code
            wheel = only_file(files)
            keep(store, wheel, sha256_of(wheel))
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(target)
    for data in [entry for entry in os.listdir(target) if entry.endswith(".data")]:
        shutil.copytree(os.path.join(target, data, "scripts"), os.path.join(target, "bin"))
        for program in os.listdir(os.path.join(target, "bin")):
            os.chmod(os.path.join(target, "bin", program), 0o755)
    return 0


def main(mode, store, folder, path, *words):
    if mode == "tool":
        return unpack_tool(store, folder, path, words[0], words[1:])
    if mode == "build":
        locked, _, lines = read_locked(path)
        return build(store, folder, locked, lines, words)
    return install_all(store, folder, path, words)


sys.exit(main(*sys.argv[1:]))
