"""Resolves requirements for the Python that runs this, with uv or pip, and prints the packages that an installer would add, as one line of JSON.

Usage: resolve.py FOLDER [ANSWER]. Prints, or writes the file ANSWER. FOLDER has request.json, requirements.txt and perhaps
constraints.txt and pyproject.toml; relative paths in requirements are taken from the working folder.
"""
import hashlib
import json
import os
import platform
import re
import subprocess
import sys
import sysconfig
import time
from concurrent.futures import ThreadPoolExecutor

try:
    from importlib import metadata
except ImportError:
    print("pipe-unlocked: the parent image has Python %s, and requirements are locked with 3.8 or newer" % platform.python_version())
    sys.exit(0)
try:
    import tomllib
except ImportError:
    try:
        import tomli as tomllib
    except ImportError:
        try:
            from pip._vendor import tomli as tomllib
        except ImportError:
            tomllib = None

# Options of an installation that do not change which packages are chosen.
INSTALL_ONLY = {"--compile-bytecode", "--no-compile-bytecode", "--no-compile", "--reinstall", "--reinstall-package", "--force-reinstall", "--break-system-packages",
                "--require-hashes", "--verify-hashes", "--no-verify-hashes", "--strict", "--exact", "--user", "--target", "--prefix", "--root", "--root-user-action",
                "--no-warn-script-location", "--ignore-installed", "--compile", "--upgrade", "--concurrent-installs"}


# Runs pip as `-m pip` does, but without the working folder among the folders of modules.
PIP = [sys.executable, "-c", "import sys; sys.path[:] = [each for each in sys.path if each]; import runpy; runpy.run_module('pip', run_name='__main__', alter_sys=True)"]
ROOT = os.getcwd()


class Failed(Exception):
    pass


class Unable(Exception):
    """This Python, or its installer, can install the requirements, but not say what it would install."""


def normalised(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def without_credentials(url):
    """Removes the login from an address. The name of a user of ssh stays: it is not a secret, and there is no access without it."""
    def strip(match):
        scheme, login = match.group(1), match.group(2)
        return scheme + (login.split(":")[0] + "@" if scheme.endswith("ssh://") else "")
    return re.sub(r"([a-zA-Z+]+://)([^/?#@\s]*)@", strip, url)


class Progress:
    """Reports on standard error, about once a second, how far a resolution is."""
    def __init__(self):
        self.chosen, self.said = set(), time.monotonic()

    def choose(self, name, version):
        self.chosen.add(normalised(name))
        if time.monotonic() >= self.said + 1:
            self.said = time.monotonic()
            count = len(self.chosen)
            print("pipe-progress: %d package%s so far, now %s %s" % (count, "" if count == 1 else "s", name, version), file=sys.stderr, flush=True)


def run_followed(command, pattern, progress, in_errors):
    """Runs a command to its end. Each line of its output, or with `in_errors` of its standard error, that matches the pattern reports a chosen version as progress."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, universal_newlines=True, errors="replace")
    followed, rest = (process.stderr, process.stdout) if in_errors else (process.stdout, process.stderr)
    with ThreadPoolExecutor(max_workers=1) as pool:
        other = pool.submit(rest.read)
        lines = []
        for line in followed:
            lines.append(line)
            match = re.match(pattern, line)
            if match:
                progress.choose(*match.groups())
        texts = ["".join(lines), other.result()]
    return subprocess.CompletedProcess(command, process.wait(), *(reversed(texts) if in_errors else texts))


def run(command, check=True):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, universal_newlines=True)
    if check and done.returncode:
        raise Failed(without_credentials(done.stderr or done.stdout))
    return done


def installed_packages():
    found = {}
    for each in metadata.distributions():
        name = each.metadata["Name"]
        if name:
            found.setdefault(normalised(name), each.version)
    return found


def sys_tags():
    try:
        from packaging import tags
    except ImportError:
        try:
            from pip._vendor.packaging import tags
        except ImportError:
            return list(known_tags())
    return [str(tag) for tag in tags.sys_tags()]


def known_tags():
    """Yields the tags that `packaging` gives for CPython with glibc. For a Python that has neither `packaging` nor pip, such as Debian's."""
    version, machine = "%d%d" % sys.version_info[:2], sysconfig.get_platform().split("-")[-1].replace(".", "_")
    platforms = ["linux_" + machine]
    try:
        for minor in range(5, int(os.confstr("CS_GNU_LIBC_VERSION").split()[1].split(".")[1]) + 1):
            platforms += ["%s_%s" % (name, machine) for name in ({5: ["manylinux1"], 12: ["manylinux2010"], 17: ["manylinux2014"]}.get(minor, []) + ["manylinux_2_%d" % minor])]
    except (ValueError, OSError, AttributeError, IndexError):
        pass
    platforms.reverse()
    older = ["3%d" % minor for minor in range(sys.version_info[1], 1, -1)]
    for python, abi in [("cp" + version, "cp" + version)] + [("cp" + each, "abi3") for each in older] + [("cp" + version, "none"), ("py3", "none")]:
        for system in platforms:
            yield "%s-%s-%s" % (python, abi, system)
    for python in ["cp" + version] + ["py" + each for each in older] + ["py3"]:
        yield python + "-none-any"


def platform_of(tags):
    for tag in tags:
        if "linux" in tag:
            return tag.split("-")[2]
    machine = sysconfig.get_platform().split("-")[-1].replace(".", "_")
    try:
        library = os.confstr("CS_GNU_LIBC_VERSION").split()[1].split(".")
        return "manylinux_%s_%s_%s" % (library[0], library[1], machine)
    except (ValueError, OSError, AttributeError, IndexError):
        return "linux_" + machine


def best_wheel(wheels, tags):
    """Returns the wheel that suits this Python best; None if no wheel suits it."""
    rank = {tag: i for i, tag in enumerate(tags)}

    def place(wheel):
        python, abi, system = file_of(wheel)[:-len(".whl")].split("-")[-3:]
        return min((rank.get("%s-%s-%s" % (p, a, s), len(rank)) for p in python.split(".") for a in abi.split(".") for s in system.split(".")), default=len(rank))
    best = min(wheels, key=place, default=None)
    return best if best and place(best) < len(rank) else None


def hashes_in(folder):
    """Returns the hashes that requirements name, by package. uv does not compare them when it resolves."""
    hashes = {}
    try:
        with open(os.path.join(folder, "requirements.txt")) as stream:
            for line in stream:
                if "--hash" in line and re.match("[A-Za-z0-9]", line):
                    name = normalised(re.match(r"[A-Za-z0-9._-]+", line).group())
                    hashes.setdefault(name, set()).update(re.findall(r"--hash[= ]sha256:([0-9a-f]{64})", line))
    except FileNotFoundError:
        pass
    return hashes


def make_links_absolute(folder):
    """Makes the folders of --find-links absolute: uv takes them as relative to the file that names them."""
    file = os.path.join(folder, "requirements.txt")
    if not os.path.exists(file):
        return
    with open(file) as stream:
        lines = stream.read().splitlines()
    with open(file, "w") as stream:
        for line in lines:
            option, _, path = line.partition(" ")
            stream.write("%s %s\n" % (option, os.path.abspath(path)) if option == "--find-links" and os.path.isdir(path) else line + "\n")


def local_path(path):
    """Returns a path as the lock has it: relative to the pipeline's folder, which is the link `root` of the working folder, or the working folder itself."""
    path, link = os.path.abspath(path), os.path.abspath("root") + os.sep
    path = os.path.relpath(os.path.join(ROOT, path[len(link):]) if path.startswith(link) else path, ROOT)
    return path if path.startswith("..") else "./" + path


def version_of(folder):
    try:
        with open(os.path.join(folder, "pyproject.toml"), "rb") as stream:
            return tomllib.load(stream).get("project", {}).get("version", "")
    except (OSError, ValueError):
        return ""


def file_of(entry):
    from urllib.parse import unquote, urlsplit
    return entry.get("name") or unquote(urlsplit(entry.get("url") or entry.get("path", "")).path).rsplit("/", 1)[-1]


class Uv:
    def __init__(self, request, folder):
        self.request, self.folder = request, folder
        self.tags, self.hashes = sys_tags(), hashes_in(folder)
        self.early_reasons = None  # (versions, future of find_reasons() for them), begun before the versions are certain.
        self.arguments = [each for each in request["arguments"] if each.split("=")[0] not in INSTALL_ONLY]
        if any(each.startswith("--no-cache") for each in self.arguments):  # All runs of uv here share a cache of their own.
            self.arguments = [each for each in self.arguments if not each.startswith("--no-cache")]
            os.environ["UV_CACHE_DIR"] = os.path.join(folder, "cache")
        if request["refresh"]:  # uv's cache of an index may be ten minutes old.
            self.arguments.append("--refresh")

    def inputs(self):
        return [os.path.join(self.folder, name) for name in ("requirements.txt", "pyproject.toml") if os.path.exists(os.path.join(self.folder, name))]

    def constraints(self):
        return constraints_in(self.folder)

    def compile(self, name, *more, check=True, follows=False):
        output = os.path.join(self.folder, name)
        command = [self.request["uv"], "pip", "compile", "--python", sys.executable, "-o", output] + self.arguments + list(more)
        done = run_followed(command + ["--verbose"], r"DEBUG Selecting: ([A-Za-z0-9._-]+)==(\S+) ", Progress(), True) if follows else None
        if not done or done.returncode:  # A failure is repeated without --verbose, for an error that can be read.
            done = run(command + ["--quiet"], check=False)
        if "'--format" in done.stderr:
            raise Unable("this uv, %s, is too old: 0.6.15 and newer write what is locked" % run([self.request["uv"], "--version"]).stdout.strip())
        if check and done.returncode:
            raise Failed(without_credentials(done.stderr or done.stdout))
        return output, done

    def resolve(self):
        """Versions that are preferred stay as far as the requirements allow it: uv takes them from the output file, as it would from an earlier lock."""
        preferred = dict(self.request["installed"])
        preferred.update(self.request["preferred"])
        if preferred:
            with open(os.path.join(self.folder, "pylock.toml"), "w") as stream:
                stream.write('lock-version = "1.0"\ncreated-by = "pipe"\n')
                for name, version in sorted(preferred.items()):
                    stream.write("\n[[packages]]\nname = %s\nversion = %s\n" % (json.dumps(name), json.dumps(version)))
        packages = self.resolve_added()
        if packages is None:
            packages = self.read(self.compile("pylock.toml", "--format", "pylock.toml", *self.inputs(), *self.constraints(), follows=True)[0])
        known = {each["name"] for each in packages}
        if known & set(self.request["installed"]):
            packages = self.beside_installed(packages)
        self.add_reasons(packages)
        return packages

    def resolve_added(self):
        """After an edit, asks the index only for the requirements that were added, and takes the preferred versions, which uv's cache knows, for the rest. Returns None if
        that does not give all packages."""
        preferred, known = self.request["preferred"], set(self.request.get("requirements", []))
        if self.request["refresh"] or not preferred or any(os.path.exists(os.path.join(self.folder, name)) for name in ("pyproject.toml", "constraints.txt")):
            return None
        with open(os.path.join(self.folder, "requirements.txt")) as stream:
            lines = [line.strip() for line in stream]
        added = [line for line in lines if line not in known and not line.startswith("-")]
        if not all(re.match(r"[A-Za-z0-9][^/@]*$", line) for line in added):  # Some are addresses or paths, not names.
            return None
        fresh = set()
        if added:
            listed = os.path.join(self.folder, "added.txt")
            with open(listed, "w") as stream:
                stream.writelines(line + "\n" for line in [line for line in lines if line.startswith("-")] + added)
            output, done = self.compile("pylock.added.toml", "--format", "pylock.toml", listed, check=False, follows=True)
            if done.returncode:
                return None
            fresh = {(each["name"], each["version"]) for each in self.read(output)}
        expected = {**dict(fresh), **preferred}
        with ThreadPoolExecutor(max_workers=1) as pool:
            self.early_reasons = (expected, pool.submit(self.find_reasons, expected))
            output, done = self.compile("pylock.toml", "--format", "pylock.toml", "--offline", *self.inputs(), check=False)
        if done.returncode:
            return None
        packages = self.read(output)
        return packages if all((each["name"], each["version"]) in fresh or preferred.get(each["name"]) == each["version"] for each in packages) else None

    def beside_installed(self, packages):
        """Leaves out packages that are installed and satisfy the requirements. A dry run of the installation tells which other packages are then chosen."""
        keep = os.path.join(self.folder, "kept.txt")
        with open(keep, "w") as stream:
            stream.writelines("%s==%s\n" % (each["name"], each["version"]) for each in packages
                              if each["name"] not in self.request["installed"] and each["origin"] == "index")
        command = [self.request["uv"], "pip", "install", "--dry-run", "--python", sys.executable, "--break-system-packages"] + self.arguments + self.constraints()
        for each in self.inputs():
            command += ["-r", each]
        done = run(command + ["-c", keep], check=False)
        if done.returncode:
            done = run(command)
        chosen = dict(re.findall(r"^ \+ ([A-Za-z0-9._-]+)==(\S+)", done.stderr, re.MULTILINE))
        chosen = {normalised(name): version for name, version in chosen.items()}
        kept = [each for each in packages if each["name"] in chosen and (each["origin"] != "index" or each["version"] == chosen[each["name"]])]
        others = set(chosen) - {each["name"] for each in kept}
        if others:
            pins = os.path.join(self.folder, "pins.txt")
            options = [line for line in open(os.path.join(self.folder, "requirements.txt")) if line.startswith("-")] if os.path.exists(os.path.join(self.folder, "requirements.txt")) else []
            with open(pins, "w") as stream:
                stream.writelines(options + ["%s==%s\n" % (name, chosen[name]) for name in sorted(others)])
            kept += self.read(self.compile("pylock.others.toml", "--format", "pylock.toml", "--no-deps", pins)[0])
        return kept

    def add_reasons(self, packages):
        """Adds to each package the names of those that require it, unless uv fails to tell."""
        versions = {each["name"]: each["version"] for each in packages if each["origin"] == "index"}
        expected, early = self.early_reasons or ({}, None)
        is_expected = early and all(expected.get(name) == version for name, version in versions.items())
        reasons = early.result() if is_expected else self.find_reasons(versions)
        for each in packages if reasons is not None else []:
            each["required_by"] = reasons.get(each["name"], [])

    def find_reasons(self, versions):
        pinned = os.path.join(self.folder, "pinned.txt")
        with open(pinned, "w") as stream:
            stream.writelines("%s==%s\n" % each for each in versions.items())
        options = ["--no-header", "--annotation-style", "line", "-c", pinned] + self.constraints() + self.inputs()
        output, done = self.compile("reasons.txt", "--offline", *options, check=False)
        if done.returncode:  # A package at an address of its own is not in uv's cache.
            output, done = self.compile("reasons.txt", *options, check=False)
        if done.returncode:
            return None
        reasons = {}
        for line in open(output):
            match = re.match(r"(?:-e )?([A-Za-z0-9._-]+).*# via (.*)", line)
            if match:
                asking = [each.strip() for each in match.group(2).split(",")]
                reasons[normalised(match.group(1))] = [] if any(each.startswith("-r ") or "(pyproject.toml)" in each for each in asking) else sorted(
                    normalised(each.split("[")[0]) for each in asking if re.match(r"[A-Za-z0-9]", each))
        return reasons

    def read(self, file):
        if tomllib is None:
            raise Unable("uv's lock cannot be read with Python %s, which has no tomllib, tomli or pip" % platform.python_version())
        with open(file, "rb") as stream:
            return [self.package(each) for each in tomllib.load(stream).get("packages", [])]

    def is_allowed(self, package, file):
        asked = self.hashes.get(package["name"])
        return asked is None or file.get("hashes", {}).get("sha256") in asked

    def package(self, entry):
        package = {"name": normalised(entry["name"]), "version": entry.get("version", ""), "origin": "index"}
        if "vcs" in entry:
            vcs = entry["vcs"]
            package["origin"] = "repository"
            package["url"] = "%s+%s@%s" % (vcs["type"], without_credentials(vcs.get("url") or vcs["path"]), vcs["commit-id"])
            if vcs.get("subdirectory"):
                package["url"] += "#subdirectory=" + vcs["subdirectory"]
            return package
        if "directory" in entry:
            folder = os.path.join(self.folder, entry["directory"]["path"])
            package.update(origin="path", url=local_path(folder), version=package["version"] or version_of(folder))
            return package
        file = entry.get("archive")
        if file:
            package["origin"] = "url"
        else:
            wheels = entry.get("wheels", [])
            file = best_wheel([each for each in wheels if self.is_allowed(package, each)], self.tags) or entry.get("sdist") or best_wheel(wheels, self.tags)
        if not file:
            raise Failed("uv names no file for %s %s" % (package["name"], package["version"]))
        if not self.is_allowed(package, file):
            raise Failed("no file of %s %s has a hash that the requirement names: %s has sha256:%s" % (
                package["name"], package["version"], file_of(file), file.get("hashes", {}).get("sha256")))
        package.update(file=file_of(file), size=file.get("size", 0), sha256=file.get("hashes", {}).get("sha256", ""))
        path = path_of(file["url"]) if file.get("url", "").startswith("file:") else file.get("path", "") and os.path.join(self.folder, file["path"])
        if path:  # Also a file in a folder of --find-links. A file outside of the pipeline's folder has no address in the lock: only this machine has it.
            path = local_path(path)
            package.update({"url": ""} if path.startswith("..") and "archive" not in entry else {"origin": "path", "url": path})
        else:
            package["url"] = without_credentials(file.get("url", ""))
        return package


class Pip:
    def __init__(self, request, folder):
        self.request, self.folder = request, folder
        self.arguments = [each for each in request["arguments"] if each.split("=")[0] not in INSTALL_ONLY]

    def resolve(self):
        report, preferred = os.path.join(self.folder, "report.json"), os.path.join(self.folder, "preferred.txt")
        with open(preferred, "w") as stream:
            stream.writelines("%s==%s\n" % each for each in sorted(self.request["preferred"].items()))
        command = PIP + self.request.get("pip", []) + ["install", "--dry-run", "--report", report] + self.arguments
        if self.request["is_empty"]:
            command.append("--ignore-installed")
        if self.request["externally_managed"]:
            command.append("--break-system-packages")
        requirements = os.path.join(self.folder, "requirements.txt")
        if os.path.exists(os.path.join(self.folder, "pyproject.toml")):
            self.add_project(requirements)
        command += ["-r", requirements] + constraints_in(self.folder)
        collecting, progress = r"Collecting ([A-Za-z0-9._-]+)(\S*)", Progress()
        done = run_followed(command + ["-c", preferred], collecting, progress, False)
        if done.returncode:
            done = run_followed(command, collecting, progress, False)
            if done.returncode:
                if "no such option" in done.stderr:
                    raise Unable("pip %s cannot say what it would install: 22.2 and newer can, and so can `python_package_installer: uv`" % metadata.version("pip"))
                raise Failed(without_credentials(done.stderr))
        with open(report) as stream:
            items = json.load(stream).get("install", [])
        packages = [self.package(each) for each in items]
        names = {each["name"] for each in packages}
        for item, package in zip(items, packages):
            for line in item["metadata"].get("requires_dist", []):
                name = normalised(re.match(r"[A-Za-z0-9._-]+", line).group())
                if name in names and "extra ==" not in line:
                    for other in packages:
                        if other["name"] == name:
                            other.setdefault("required_by", []).append(package["name"])
        for item, package in zip(items, packages):
            package["required_by"] = [] if item.get("requested") else sorted(set(package.get("required_by", [])))
        return packages

    def add_project(self, requirements):
        if tomllib is None:
            raise Failed("pyproject.toml cannot be read with this Python: set pyproject_export_command, or python_package_installer: uv")
        with open(os.path.join(self.folder, "pyproject.toml"), "rb") as stream:
            project = tomllib.load(stream).get("project", {})
        if "dependencies" in project.get("dynamic", []):
            raise Failed("the dependencies in pyproject.toml are dynamic: set pyproject_export_command, or python_package_installer: uv")
        with open(requirements, "a") as stream:
            stream.writelines(line + "\n" for line in project.get("dependencies", []))

    def package(self, item):
        info, about = item["download_info"], item["metadata"]
        package = {"name": normalised(about["name"]), "version": about["version"], "origin": "url" if item.get("is_direct") else "index"}
        url = without_credentials(info["url"])
        if "vcs_info" in info:
            package.update(origin="repository", url="%s+%s@%s" % (info["vcs_info"]["vcs"], url, info["vcs_info"]["commit_id"]))
            if info.get("subdirectory"):
                package["url"] += "#subdirectory=" + info["subdirectory"]
        elif "dir_info" in info:
            package.update(origin="path", url=local_path(path_of(url)))
        else:
            hashes = info.get("archive_info", {})
            sha256 = hashes.get("hashes", {}).get("sha256") or hashes.get("hash", "").partition("sha256=")[2]
            package.update(file=file_of(info), url=url, sha256=sha256, size=0)
            if url.startswith("file:"):
                package.update(origin="path", url=local_path(path_of(url)))
        return package


def path_of(url):
    from urllib.parse import unquote, urlsplit
    return unquote(urlsplit(url).path)


def constraints_in(folder):
    file = os.path.join(folder, "constraints.txt")
    return ["-c", file] if os.path.exists(file) else []


def logins(folder, arguments):
    """Returns the logins in addresses of options, variables and requirements, by host."""
    texts = list(arguments) + list(os.environ.values())
    try:
        with open(os.path.join(folder, "requirements.txt")) as stream:
            texts.append(stream.read())
    except FileNotFoundError:
        pass
    return {host: login for text in texts for login, host in re.findall(r"https?://([^/?#@\s]+)@([^/?#\s]+)", text)}


def move_logins(arguments):
    """Moves addresses of indexes that have a login from the arguments to variables: other users of the machine can read command lines."""
    moved, kept = {}, []
    for each in arguments:
        match = re.match(r"--(index-url|extra-index-url|default-index|index|find-links)=(.*://[^/]*@.*)", each)
        if match:
            moved.setdefault(match.group(1).upper().replace("-", "_"), []).append(match.group(2))
        else:
            kept.append(each)
    for name, values in moved.items():
        os.environ["UV_" + name] = os.environ["PIP_" + name] = " ".join(values)
    return kept


def open_at(url, method, known_logins):
    import base64
    import urllib.parse
    import urllib.request
    request = urllib.request.Request(url, method=method, headers={"Accept-Encoding": "identity", "User-Agent": "pipe"})
    login = known_logins.get(urllib.parse.urlsplit(url).netloc)
    if login:
        request.add_unredirected_header("Authorization", "Basic " + base64.b64encode(urllib.parse.unquote(login).encode()).decode())
    return urllib.request.urlopen(request, timeout=10)


def size_at(url, known_logins):
    """Returns the size of the file at an address, in bytes; 0 if the server does not state it."""
    try:
        with open_at(url, "HEAD", known_logins) as answer:
            size = int(answer.headers.get("Content-Length") or 0)
            return size if size < 1 << 53 else 0
    except (OSError, ValueError):
        return 0


def read_at(package, known_logins):
    """Reads a file to add its hash and size, because its index names no hash: without one in the lock, another file could take its place."""
    digest, size = hashlib.sha256(), 0
    try:
        with open_at(package["url"], "GET", known_logins) as answer:
            for piece in iter(lambda: answer.read(1 << 20), b""):
                digest.update(piece)
                size += len(piece)
    except (OSError, ValueError) as error:
        raise Failed("pipe: error: the index names no hash of %s, and the file cannot be read: %s" % (package["file"], error))
    package.update(sha256=digest.hexdigest(), size=size)


def add_sizes(packages, known_sizes, known_logins):
    """Adds missing sizes, by which packages are put into layers: pip and HTML indexes state none. Adds missing hashes: those of local files, which older versions of uv do
    not state, and those that an index does not name."""
    remote = []
    for each in packages:
        local = os.path.join(ROOT, each["url"])
        if each.get("file") and each["url"] and os.path.isfile(local):
            each["size"] = os.path.getsize(local)
            if not each.get("sha256"):
                with open(local, "rb") as stream:
                    each["sha256"] = hashlib.sha256(stream.read()).hexdigest()
        each["size"] = each.get("size") or known_sizes.get(each.get("sha256"), 0)
        is_remote = each.get("file") and each["url"].startswith(("http://", "https://"))
        if is_remote and not each.get("sha256"):
            read_at(each, known_logins)
        elif is_remote and not each["size"]:
            remote.append(each)
    if not remote:
        return
    with ThreadPoolExecutor(max_workers=16) as pool:
        for each, size in zip(remote, pool.map(lambda each: size_at(each["url"], known_logins), remote)):
            each["size"] = size


def is_externally_managed():
    return sys.prefix == sys.base_prefix and os.path.exists(os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED"))


def main(folder, answer=None):
    if answer:
        sys.stdout = open(answer, "w", encoding="utf-8")
    with open(os.path.join(folder, "request.json")) as stream:
        request = json.load(stream)
    request["arguments"] = move_logins(request["arguments"])
    global ROOT
    ROOT = request.get("root", ROOT)
    make_links_absolute(folder)
    request["uv"] = os.environ.get("PIPE_UV", "")
    request["externally_managed"] = is_externally_managed()
    # The packages of this Python do not count for a virtual environment, which is empty at first.
    request["installed"] = {} if request["is_empty"] else installed_packages()
    try:
        packages = (Uv if request["uv"] else Pip)(request, folder).resolve()
        add_sizes(packages, request.get("sizes", {}), logins(folder, request["arguments"]))
    except Failed as failed:
        sys.exit(str(failed).strip())
    except Unable as reason:
        print("pipe-unlocked: " + str(reason))
        return
    except FileNotFoundError as missing:
        sys.exit("pipe: error: cannot resolve the requirements: " + str(missing))
    tags = sys_tags()
    print("pipe-lock: " + json.dumps({
        "python": platform.python_version(),
        "tag": {"cpython": "cp", "pypy": "pp"}.get(sys.implementation.name, sys.implementation.name) + "%d%d" % sys.version_info[:2],
        "platform": platform_of(tags),
        "packages": packages}))


main(*sys.argv[1:])
