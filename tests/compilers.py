"""C++ compilers of this machine that can compile the public headers."""

import os
import shutil
import subprocess


def takes_source_locations(compiler):
    """Returns whether a compiler has std::source_location, which clang before 15 lacks with libstdc++."""
    source = "#include <source_location>\nconstexpr auto here = std::source_location::current();\n"
    return subprocess.run([compiler, "-std=c++20", "-fsyntax-only", "-x", "c++", "-"], input=source, text=True, capture_output=True).returncode == 0


def compilers():
    """Returns $CXX or g++, and the newest clang++ that suffices; it is often installed only with its version in the name."""
    clangs = ["clang++", *(f"clang++-{version}" for version in range(30, 13, -1))]
    found = [os.environ.get("CXX", "g++"), next((clang for clang in clangs if shutil.which(clang) and takes_source_locations(clang)), None)]
    return list(dict.fromkeys(filter(None, found)))
