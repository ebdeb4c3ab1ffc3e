"""Packs a build for scripts/package, which hands its arguments and BUILD_DIR on to this program."""

import base64
import datetime
import functools
import gzip
import hashlib
import io
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.parse
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("BUILD_DIR", ROOT / "build/release"))
# Starts `pipe` by the loader in the archive. A shell script can do so on any Linux, and finds the archive's folder also if it is called through a link.
START = """#!/bin/sh
here=$(readlink -f "$0") && here=${here%/*}/../lib/pipe
exec "$here/LOADER" --library-path "$here" "$here/pipe" "$@"
"""
README = """This folder holds pipe and all libraries that it needs. Put it anywhere, and bin/pipe, or a link to it, on your PATH.
The licences of the libraries are below share/doc/pipe/licences.
"""


def output(*command):
    return subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE, text=True).stdout


def git(*words):
    """Returns git's output, or "" without git or where these sources are not a repository.

    The clone may belong to another user: whoever runs its scripts trusts it.
    """
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        return ""
    return output("git", "-c", f"safe.directory={ROOT}", "-C", ROOT, *words).strip()


@functools.cache
def committed():
    """Returns the time of the commit, which files of `git archive` also have, in seconds since 1970."""
    return int(os.environ.get("SOURCE_DATE_EPOCH") or git("log", "-1", "--format=%ct") or (ROOT / "CMakeLists.txt").stat().st_mtime)


def check_commit():
    """Raises OSError if the program was built from another commit than the sources', as far as both are known."""
    built = re.search(r"\(([0-9a-f]{12})\b", output(BUILD / "bin/pipe", "--version"))
    commit = git("rev-parse", "--short=12", "HEAD")
    if built and commit and built[1] != commit:
        raise OSError(f"{BUILD}/bin/pipe was built from commit {built[1]}, and the sources are those of {commit}: build the target `installed` there first")


def version():
    return re.search(r"CMAKE_PROJECT_VERSION:\w+=(\S+)", (BUILD / "CMakeCache.txt").read_text())[1]


def is_cross_build():
    return "CPACK_PROJECT_CONFIG_FILE" in (BUILD / "CPackConfig.cmake").read_text()


def machine():
    return output("uname", "-m").strip()


def libraries():
    """Returns the files that `pipe` needs at run time, keyed by the names under which they are looked for, and the loader's name."""
    cache = dict(re.findall(r"^(\w+):\w+=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.MULTILINE))
    found, loader = {}, None
    roots = [BUILD / "bin/pipe"] + [pathlib.Path(cache[f"{name}_LIBRARY"]) for name in ("curl", "git2")]
    for root in roots[1:]:
        found[re.search(r"SONAME +(\S+)", output("objdump", "-p", root))[1]] = root
    for root in roots:
        for line in output("ldd", root).splitlines():
            if match := re.match(r"\s+(?:(\S+) => )?(/\S+) \(0x", line):
                path = pathlib.Path(match[2])
                found[match[1] or path.name] = path
                loader = path.name if path.name.startswith("ld-") else loader
    # Libraries that glibc loads by itself to look up host names, where an older system's settings name them.
    for name in ("libnss_dns.so.2", "libnss_files.so.2", "libresolv.so.2"):
        path = found["libc.so.6"].parent / name
        if path.exists():
            found[name] = path
    return found, loader


def licences(paths):
    """Returns the copyright files of the Debian packages that own the files, keyed by package.

    The packages' lists have some files below /usr/lib and some below /lib.
    """
    names = {name for path in paths for name in (str(path), os.path.realpath(path))}
    names |= {name.removeprefix("/usr") for name in names} | {f"/usr{name}" for name in names if name.startswith("/lib")}
    done = subprocess.run(["dpkg-query", "--search", *sorted(names)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    files = {owner: pathlib.Path("/usr/share/doc", owner, "copyright") for owner in {line.split(":")[0] for line in done.stdout.splitlines()}}
    return {owner: file for owner, file in files.items() if file.exists()}


@functools.cache
def tree():
    """Returns the files of the archive and the wheel, as {path: (content, is executable)}."""
    found, loader = libraries()
    files = {"bin/pipe": (START.replace("LOADER", loader).encode(), True)}
    with tempfile.TemporaryDirectory() as folder:
        stripped = pathlib.Path(folder, "pipe")
        subprocess.run(["strip", "-o", stripped, BUILD / "bin/pipe"], check=True)
        files["lib/pipe/pipe"] = (stripped.read_bytes(), True)
    for name, path in found.items():
        files[f"lib/pipe/{name}"] = (path.read_bytes(), name == loader)
    for package, path in licences(found.values()).items():
        files[f"share/doc/pipe/licences/{package}"] = (path.read_bytes(), False)
    for name in ("LICENSE", "CHANGELOG.md"):
        files[f"share/doc/pipe/{name}"] = ((ROOT / name).read_bytes(), False)
    for shell, path in {"bash": "bash-completion/completions/pipe", "zsh": "zsh/site-functions/_pipe", "fish": "fish/vendor_completions.d/pipe.fish"}.items():
        files[f"share/{path}"] = (output(BUILD / "bin/pipe", "completion", shell).encode(), False)
    files["share/man/man1/pipe.1"] = (output(BUILD / "bin/pipe", "help", "--man").encode(), False)
    return dict(sorted(files.items()))


def make_tar(folder):
    name = f"pipe-{version()}-linux-{machine()}"
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, (content, is_executable) in {**tree(), "README": (README.encode(), False)}.items():
            entry = tarfile.TarInfo(f"{name}/{path}")
            entry.size, entry.mtime, entry.mode = len(content), committed(), 0o755 if is_executable else 0o644
            archive.addfile(entry, io.BytesIO(content))
    (folder / f"{name}.tar.gz").write_bytes(gzip.compress(packed.getvalue(), 6, mtime=0))


def make_wheel(folder):
    # The program does not use the system's C library, so the tags name the oldest one that pip and uv know, and musl.
    tags = [f"py3-none-manylinux_2_17_{machine()}", f"py3-none-musllinux_1_1_{machine()}"]
    stem = f"pipe_ml-{version()}"
    about = f"{stem}.dist-info"
    files = {f"{stem}.data/{'scripts/pipe' if path == 'bin/pipe' else f'data/{path}'}": file for path, file in tree().items()}
    files.update({f"pipe_ml/{path.name}": (path.read_bytes(), False) for path in sorted((ROOT / "python/pipe_ml").iterdir()) if path.suffix in (".py", ".pyi", ".typed")})
    metadata = [
        "Metadata-Version: 2.1", "Name: pipe-ml", f"Version: {version()}", "Summary: ML pipelines of functions and commands, in containers: the command `pipe`, and the package `pipe_ml`", "License: Apache-2.0",
        "Requires-Python: >=3.8", "Description-Content-Type: text/markdown", "", (ROOT / "README.md").read_text()]
    files[f"{about}/METADATA"] = ("\n".join(metadata).encode(), False)
    files[f"{about}/WHEEL"] = ("".join(f"{line}\n" for line in ["Wheel-Version: 1.0", "Generator: scripts/package", "Root-Is-Purelib: false", *(f"Tag: {tag}" for tag in tags)]).encode(), False)
    digests = {path: base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode() for path, (content, _) in files.items()}
    record = [f"{path},sha256={digests[path]},{len(content)}" for path, (content, _) in files.items()]
    files[f"{about}/RECORD"] = ("\n".join([*record, f"{about}/RECORD,,", ""]).encode(), False)
    platforms = ".".join(tag.removeprefix("py3-none-") for tag in tags)
    with zipfile.ZipFile(folder / f"{stem}-py3-none-{platforms}.whl", "w", zipfile.ZIP_DEFLATED) as archive:
        for path, (content, is_executable) in files.items():
            entry = zipfile.ZipInfo(path)  # its time is fixed: 1980
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, (0o100755 if is_executable else 0o100644) << 16
            archive.writestr(entry, content)


def debian_packages(names):
    """Returns {package: (version, home page)} of the named packages that are installed."""
    form = "${Package}\\t${Version}\\t${Homepage}\\n"
    done = subprocess.run(["dpkg-query", "--show", f"--showformat={form}", *names], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return {name: (version, page) for name, version, page in (line.split("\t") for line in done.stdout.splitlines()) if version}


def make_sbom(folder):
    compiled_in = re.search(r"^BUILD_PACKAGES=\((.*?)\)$", (ROOT / "scripts/lib/packages.sh").read_text(), re.MULTILINE | re.DOTALL)[1]
    carried = debian_packages(licences(libraries()[0].values()))
    packages = {**debian_packages(["libfmt-dev", *re.findall(r"[a-z0-9.+-]+-dev\b", compiled_in)]), **carried}
    system = platform.freedesktop_os_release()["ID"]  # debian or ubuntu
    pipe = {"type": "application", "name": "pipe", "version": version(), "bom-ref": "pipe", "licenses": [{"license": {"id": "Apache-2.0"}}]}
    components = [{
        "type": "library", "name": name, "version": release, "bom-ref": f"pkg:deb/{system}/{name}@{release}", "purl": f"pkg:deb/{system}/{name}@{urllib.parse.quote(release)}",
        **({"externalReferences": [{"type": "website", "url": page}]} if page else {}),
        "properties": [{"name": "pipe:part", "value": "carried" if name in carried else "compiled in"}],
    } for name, (release, page) in sorted(packages.items())]
    document = {
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {"timestamp": datetime.datetime.fromtimestamp(committed(), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"), "component": pipe},
        "components": components, "dependencies": [{"ref": "pipe", "dependsOn": [component["bom-ref"] for component in components]}]}
    (folder / f"pipe-{version()}.cdx.json").write_text(json.dumps(document, indent=2) + "\n")


def make_image(folder):
    with tempfile.TemporaryDirectory() as context:
        make_tar(pathlib.Path(context))
        name = f"pipe-{version()}-linux-{machine()}"
        authorities = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")
        shutil.copy(authorities, context)
        pathlib.Path(context, "Dockerfile").write_text(f"""FROM {os.environ.get("PARENT", "debian:bookworm-slim")}
ADD {name}.tar.gz /opt/
COPY {authorities.name} {authorities}
RUN ln -s /opt/{name}/bin/pipe /usr/local/bin/pipe
WORKDIR /work
ENTRYPOINT ["pipe"]
""")
        subprocess.run(["docker", "build", "--quiet", "--tag", f"pipe:{version()}", context], check=True)


def make_deb(folder):
    with tempfile.TemporaryDirectory() as work:
        subprocess.run(["cpack", "--config", BUILD / "CPackConfig.cmake", "-B", work], check=True, cwd=work, stdout=subprocess.DEVNULL,
                       env={**os.environ, "SOURCE_DATE_EPOCH": str(committed())})
        for package in pathlib.Path(work).glob("*.deb"):
            shutil.copy(package, folder)


def main(kinds):
    makers = {"deb": make_deb, "tar": make_tar, "wheel": make_wheel, "sbom": make_sbom, "image": make_image}
    if is_cross_build():
        kinds = kinds or ["deb"]
        if kinds != ["deb"]:
            print("package: archive, wheel and image are made on the processor that they are for, since they carry what the program loads there; this build is for another one", file=sys.stderr)
            return 2
    else:
        check_commit()
    os.umask(0o022)  # CPack gives the package's folders the modes that the umask leaves
    folder = pathlib.Path(os.environ.get("PACKAGES_DIR", BUILD.parent / "packages"))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for kind in kinds or [kind for kind in makers if kind != "image"]:
        makers[kind](folder)
    made = sorted(folder.iterdir())
    sums = "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in made)
    (folder / "SHA256SUMS").write_text(sums)
    for file in made:
        print(f"{file.stat().st_size / 1e6:6.1f} MB  {file}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"package: {error}")
