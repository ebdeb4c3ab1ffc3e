"""The C++ compilers of this machine that have what the public headers need."""

import os
import shutil
import subprocess


def takes_source_locations(compiler):
    """clang before 15 has no std::source_location with libstdc++."""
    source = "#include <source_location>\nconstexpr auto here = std::source_location::current();\n"
    return subprocess.run([compiler, "-std=c++20", "-fsyntax-only", "-x", "c++", "-"], input=source, text=True, capture_output=True).returncode == 0


def compilers():
    """$CXX or g++, and the first clang++ that will do; it is often installed under its version only."""
    clangs = ["clang++", *(f"clang++-{version}" for version in range(30, 13, -1))]
    found = [os.environ.get("CXX", "g++"), next((clang for clang in clangs if shutil.which(clang) and takes_source_locations(clang)), None)]
    return list(dict.fromkeys(filter(None, found)))
