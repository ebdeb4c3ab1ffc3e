"""Rooms (the folders below src/) include one another only as src/CMakeLists.txt allows, and public headers keep what docs/architecture.md claims."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from compilers import compilers  # noqa: E402

OF_THE_SYSTEM = {"net/if.h"}  # A system header in a folder that has the name of a room.
# By the beginning of a library's headers: the name under which a room DEPENDS on the library. These are the libraries that cost time at start-up or in
# compilation, or should stay replaceable.
LIBRARIES = {
    "boost/": "asio",
    "curl/": "curl",
    "git2": "git2",
    "sqlite3": "sqlite",
    "yaml-cpp/": "yaml",
    "openssl/": "crypto",
}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def read_rooms(cmake_file):
    """Returns {room: (rooms that it may use, libraries that it depends on)}."""
    rooms = {}
    for function, name, arguments in re.findall(r"^pipeline_(room|orchestrator)\(([\w/]+)([^)]*)\)", cmake_file.read_text(), re.MULTILINE):
        lists, current = {"USES": [], "DEPENDS": []}, None
        for word in arguments.split():
            if word in lists:
                current = lists[word]
            elif word != "COMPUTES":  # COMPUTES only changes the compiler's options.
                current.append(word)
        rooms[f"orchestrators/{name}" if function == "orchestrator" else name] = (set(lists["USES"]), set(lists["DEPENDS"]))
    return rooms


def room_of(path, rooms):
    """Returns the innermost room of a path below src/. An orchestrator's entry.cpp belongs to the catalog, into which it is compiled."""
    folder = pathlib.PurePath(path).parent.as_posix()
    if re.fullmatch(r"orchestrators/\w+/entry\.cpp", pathlib.PurePath(path).as_posix()):
        return "orchestrators/catalog"
    while folder not in rooms and "/" in folder:
        folder = folder.rsplit("/", 1)[0]
    return folder


def find_cycle(rooms):
    """Returns the rooms of a cycle of uses; None if there is none."""
    finished = set()

    def visit(room, path):
        if room in path:
            return path[path.index(room):] + [room]
        if room not in finished:
            for used in sorted(rooms[room][0]):
                cycle = visit(used, path + [room])
                if cycle:
                    return cycle
            finished.add(room)
        return None

    return next((cycle for room in sorted(rooms) if (cycle := visit(room, []))), None)


def reachable(rooms, room):
    """Returns the rooms that a room uses, directly or through others."""
    found, waiting = set(), [room]
    while waiting:
        new = rooms[waiting.pop()][0] - found
        found |= new
        waiting.extend(new)
    return found


def includes(file):
    """Yields for each include of a file its line, `<` or `"`, and the header."""
    for number, line in enumerate(file.read_text().splitlines(), 1):
        if match := INCLUDE.match(line):
            yield number, match[1], match[2]


def sources(folder):
    return sorted(path for path in folder.rglob("*") if path.suffix in (".hpp", ".cpp", ".h", ".ipp"))


def check_rooms(root):
    """Returns a line of text for each include that is not allowed."""
    rooms = read_rooms(root / "src/CMakeLists.txt")
    found = []
    for file in sources(root / "src"):
        room = room_of(file.relative_to(root / "src"), rooms)
        if room not in rooms:
            continue
        uses, depends = rooms[room]
        reachable = set(depends).union(*(rooms[used][1] for used in uses)) if uses else set(depends)
        for line, kind, header in includes(file):
            place = f"{file.relative_to(root)}:{line}"
            target = room_of(header, rooms)
            library = next((name for prefix, name in LIBRARIES.items() if header.startswith(prefix)), None)
            if kind == "<" and target in rooms and "/" in header and header not in OF_THE_SYSTEM:
                found.append(f'{place}: <{header}>: rooms include each other with quotes: "{header}"')
            elif kind == '"' and target not in rooms:
                found.append(f'{place}: "{header}" names no room; write "ROOM/FILE.hpp"')
            elif kind == '"' and target != room and target not in uses:
                found.append(f'{place}: {room} may not include "{header}"; it may use: {", ".join(sorted(uses)) or "no other room"}')
            elif kind == "<" and library and library not in reachable:
                found.append(f"{place}: {room} may not include <{header}>: neither it nor a room that it uses DEPENDS on {library}")
    return found


def check_public(root):
    """Returns a line of text for each include of a public header that is not the standard library, nlohmann's forward declarations or a public header."""
    allowed = re.compile(r"\w+|nlohmann/json_fwd\.hpp|pipeline/(detail/)?\w+\.hpp")
    return [
        f"{file.relative_to(root)}:{line}: a public header may not include {header}"
        for file in sources(root / "include")
        for line, kind, header in includes(file)
        if not (kind == "<" and allowed.fullmatch(header))
    ]


def check_json(root):
    """Returns the sources that call the JSON parser itself without is_within(), which keeps its limits (core/bounded_json.hpp)."""
    return [
        str(file.relative_to(root))
        for file in sources(root / "src")
        if re.search(r"\bjson::(parse|accept|sax_parse)\(", text := file.read_text()) and not re.search(r"\bis_within\(", text)
    ]


def public_graph(root):
    """Returns {header: (public headers that it includes, ())}, for find_cycle()."""
    folder = root / "include"
    return {
        file.relative_to(folder).as_posix(): ({header for _, _, header in includes(file) if header.startswith("pipeline/")}, ())
        for file in sources(folder)
    }


# Lines of public headers that would affect the user's code, each with the reason.
LEAKS = (
    (re.compile(r"^\s*using\s+namespace\b"), "a using-directive leaks into the user's code"),
    (re.compile(r"^namespace detail\b|^namespace pipeline::detail\b"), "internals belong in include/pipeline/detail"),
)
PRAGMA = re.compile(r"#\s*pragma\s+GCC\s+diagnostic\s+(\w+)")


def check_integers(root):
    """Returns the sources of the agent and the stager that use an integer such as std::uint16_t without <cstdint>. Both programs are compiled without a precompiled
    header, and newer compilers refuse them."""
    files = sorted(file for room in ("agent", "stager") for file in root.glob(f"src/{room}/*.?pp"))
    return [str(file.relative_to(root)) for file in files
            if re.search(r"std::(u?int\d+_t|uintptr_t)\b", text := file.read_text()) and "#include <cstdint>" not in text]


def check_leaks(root):
    """Returns a line of text for each using-directive, diagnostic pragma that outlives its header, and internal namespace outside detail/."""
    found = []
    for file in sources(root / "include"):
        open_pushes = 0
        for number, line in enumerate(file.read_text().splitlines(), 1):
            where = f"{file.relative_to(root)}:{number}"
            for pattern, why in LEAKS:
                if pattern.search(line) and not ("detail" in pattern.pattern and file.parent.name == "detail"):
                    found.append(f"{where}: {why}")
            if pragma := PRAGMA.search(line):
                open_pushes += {"push": 1, "pop": -1}.get(pragma[1], 0)
                if pragma[1] == "ignored" and open_pushes == 0:
                    found.append(f"{where}: the pragma is never undone: the user's code loses a warning")
        if open_pushes:
            found.append(f"{file.relative_to(root)}: a diagnostic push without a pop")
    return found


PUBLIC = sorted(file.name for file in (ROOT / "include/pipeline").glob("*.hpp"))
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]


def compile_headers(compiler, standard, headers, *options):
    """Compiles a source that includes the public headers and nothing else. Returns the finished process."""
    return subprocess.run(
        [compiler, f"-std={standard}", *WARNINGS, "-fsyntax-only", "-I", ROOT / "include", *options, "-x", "c++", "-"],
        input="".join(f"#include <pipeline/{header}>\n" for header in headers), capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"},
    )


def outer_rooms(rooms):
    """Returns the rooms as read_rooms() does, with nested rooms merged into the outer one. Uses of the catalog are left out: it is plain data, which any room
    may read."""
    outer = {room: (set(), set()) for room in rooms if "/" not in room}
    for room, (uses, _) in rooms.items():
        name = room.split("/")[0]
        outer[name][0].update({used.split("/")[0] for used in uses if used != "orchestrators/catalog"} - {name})
    return outer


def described_rooms(document):
    """Returns the rooms in the table of docs/architecture.md, and the edges (user, used) of its drawing."""
    rooms = re.findall(r"^\| `(\w+)` \|", document, re.MULTILINE)
    drawing = next(block for block in re.findall(r"```mermaid\n(.*?)```", document, re.DOTALL) if block.startswith("flowchart TB"))
    edges = [
        (user, used)
        for users, uses in re.findall(r"^  ([\w &]+?) --> ([\w &]+)$", drawing, re.MULTILINE)
        for user in users.split(" & ")
        for used in uses.split(" & ")
    ]
    return rooms, edges


class Rooms(unittest.TestCase):
    def test_no_room_includes_what_it_may_not(self):
        self.assertEqual(check_rooms(ROOT), [])

    def test_public_headers_include_only_the_standard_library_and_json_forward_declarations(self):
        self.assertEqual(check_public(ROOT), [])

    def test_json_is_parsed_within_limits(self):
        self.assertEqual(check_json(ROOT), [])

    def test_integers_of_a_width_have_their_header_where_none_is_precompiled(self):
        self.assertEqual(check_integers(ROOT), [])

    def test_public_headers_include_each_other_in_no_circle(self):
        self.assertIsNone(find_cycle(public_graph(ROOT)))

    def test_public_headers_leak_nothing_into_the_users_code(self):
        self.assertEqual(check_leaks(ROOT), [])

    def test_every_public_header_compiles_by_itself_without_a_warning(self):
        for header in PUBLIC:
            with self.subTest(header=header):
                done = compile_headers(compilers()[0], "c++20", [header])
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_public_headers_compile_without_a_warning_with_each_compiler_and_standard(self):
        for compiler in compilers():
            for standard in ("c++20", "c++2b"):
                with self.subTest(compiler=compiler, standard=standard):
                    done = compile_headers(compiler, standard, PUBLIC)
                    self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_header_of_a_program_brings_in_no_heavy_header(self):
        for header in ("pipeline.hpp", "settings.hpp"):
            brought = compile_headers(compilers()[0], "c++20", [header], "-E", "-H").stderr
            names = {line.rsplit("/", 1)[-1] for line in brought.splitlines() if line.startswith(".")}
            self.assertIn("json_fwd.hpp", names)
            self.assertEqual(names & {"chrono", "filesystem", "functional", "iostream", "sstream", "variant"}, set())
            self.assertNotIn("nlohmann/json.hpp", brought)

    def test_rooms_use_each_other_in_no_circle(self):
        self.assertIsNone(find_cycle(read_rooms(ROOT / "src/CMakeLists.txt")))

    def test_every_folder_below_src_is_a_room(self):
        folders = {path.name for path in (ROOT / "src").iterdir() if path.is_dir()}
        rooms = set(read_rooms(ROOT / "src/CMakeLists.txt"))
        self.assertEqual(folders, {room for room in rooms if "/" not in room})
        nested = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src/orchestrators").iterdir() if path.is_dir()}
        self.assertEqual(nested, {room for room in rooms if "/" in room})

    def test_orchestrators_use_neither_each_other_nor_the_registry(self):
        rooms = read_rooms(ROOT / "src/CMakeLists.txt")
        names = re.findall(r"^pipeline_orchestrator\((\w+)", (ROOT / "src/CMakeLists.txt").read_text(), re.MULTILINE)
        self.assertIn("local", names)
        apart = {f"orchestrators/{name}" for name in names} | {"orchestrators/executor", "orchestrators/registry"}
        for room in apart:
            self.assertEqual(reachable(rooms, room) & apart, set(), room)

    def test_rooms_below_the_port_do_not_use_it(self):
        rooms = read_rooms(ROOT / "src/CMakeLists.txt")
        self.assertEqual([room for room in rooms["orchestrators"][0] if room.startswith("orchestrators/") and room != "orchestrators/catalog"], [])

    def test_the_document_describes_every_room_and_draws_its_place(self):
        rooms = outer_rooms(read_rooms(ROOT / "src/CMakeLists.txt"))
        described, edges = described_rooms((ROOT / "docs/architecture.md").read_text())
        self.assertEqual(sorted(described), sorted(rooms))
        self.assertEqual([(user, used) for user, used in edges if used not in rooms[user][0]], [], "the drawing has only edges that are allowed")
        drawn = {room: ({used for user, used in edges if user == room}, set()) for room in rooms}
        reached = {room: reachable(drawn, room) for room in rooms}
        missing = [(user, used) for user in rooms for used in rooms[user][0] if used not in reached[user]]
        self.assertEqual(missing, [], "the drawing implies every edge that is allowed")


class TheCheckItself(unittest.TestCase):
    """The checks above find what they should, in a small project of the test."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        self.write("src/CMakeLists.txt", "pipeline_room(low DEPENDS crypto)\npipeline_room(high USES low)\npipeline_room(side\n  DEPENDS asio)\n")

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def test_an_upward_include_is_found(self):
        self.write("src/low/a.cpp", '#include <vector>\n#include "high/b.hpp"\n')
        self.assertEqual(check_rooms(self.root), ['src/low/a.cpp:2: low may not include "high/b.hpp"; it may use: no other room'])

    def test_nested_rooms_that_include_one_another_are_found(self):
        self.write("src/CMakeLists.txt", "pipeline_room(orchestrators/catalog)\npipeline_room(orchestrators)\n"
                                         "pipeline_orchestrator(a USES orchestrators orchestrators/catalog)\npipeline_orchestrator(b USES orchestrators)\n")
        self.write("src/orchestrators/a/run.cpp", '#include "orchestrators/port.hpp"\n#include "orchestrators/b/run.hpp"\n#include "orchestrators/a/run.hpp"\n')
        self.write("src/orchestrators/port.hpp", '#include "orchestrators/a/run.hpp"\n')
        self.write("src/orchestrators/a/entry.cpp", '#include "orchestrators/catalog/catalog.hpp"\n#include "orchestrators/port.hpp"\n')
        self.assertEqual([line.split("; it may use")[0] for line in check_rooms(self.root)], [
            'src/orchestrators/a/entry.cpp:2: orchestrators/catalog may not include "orchestrators/port.hpp"',
            'src/orchestrators/a/run.cpp:2: orchestrators/a may not include "orchestrators/b/run.hpp"',
            'src/orchestrators/port.hpp:1: orchestrators may not include "orchestrators/a/run.hpp"',
        ])

    def test_a_library_of_another_room_is_found(self):
        self.write("src/high/a.hpp", "#include <openssl/evp.h>\n  # include <boost/asio.hpp>\n")
        self.assertEqual(len(check_rooms(self.root)), 1)
        self.assertIn("src/high/a.hpp:2: high may not include <boost/asio.hpp>", check_rooms(self.root)[0])

    def test_an_include_around_the_rooms_is_found(self):
        self.write("src/high/a.hpp", '#include "../low/a.hpp"\n#include <low/a.hpp>\n')
        self.assertEqual(len(check_rooms(self.root)), 2)

    def test_allowed_includes_are_allowed(self):
        self.write("src/high/a.hpp", '#include "high/b.hpp"\n#include "low/a.hpp"\n#include <map>\n#include <pipeline/spec.hpp>\n')
        self.assertEqual(check_rooms(self.root), [])

    def test_a_library_in_a_public_header_is_found(self):
        self.write("include/pipeline/a.hpp", "#include <string>\n#include <nlohmann/json_fwd.hpp>\n#include <sqlite3.h>\n#include \"core/digest.hpp\"\n")
        self.assertEqual(
            check_public(self.root),
            [f"include/pipeline/a.hpp:{line}: a public header may not include {header}" for line, header in ((3, "sqlite3.h"), (4, "core/digest.hpp"))],
        )

    def test_json_without_limits_is_found(self):
        self.write("src/low/a.cpp", "auto value = nlohmann::json::parse(text, nullptr, false);\n")
        self.write("src/low/b.cpp", "if (!is_within(text, {})) return;\nauto value = json::parse(text);\n")
        self.assertEqual(check_json(self.root), ["src/low/a.cpp"])

    def test_an_integer_without_its_header_is_found(self):
        self.write("src/agent/a.cpp", "#include <string>\nstd::uint16_t port;\n")
        self.write("src/agent/b.cpp", "#include <cstdint>\nstd::uint16_t port;\n")
        self.assertEqual(check_integers(self.root), ["src/agent/a.cpp"])

    def test_a_circle_of_public_headers_is_found(self):
        self.write("include/pipeline/a.hpp", "#include <pipeline/b.hpp>\n")
        self.write("include/pipeline/b.hpp", "#include <pipeline/a.hpp>\n")
        self.assertEqual(find_cycle(public_graph(self.root)), ["pipeline/a.hpp", "pipeline/b.hpp", "pipeline/a.hpp"])

    def test_a_leak_is_found(self):
        self.write("include/pipeline/a.hpp", "using namespace std;\n#pragma GCC diagnostic ignored \"-Wshadow\"\nnamespace detail {\n")
        self.write("include/pipeline/detail/b.hpp", "#pragma GCC diagnostic push\n#pragma GCC diagnostic ignored \"-Wshadow\"\n"
                                                    "#pragma GCC diagnostic pop\nnamespace pipeline::detail {\n")
        found = check_leaks(self.root)
        self.assertEqual([line.split(": ")[0] for line in found], [f"include/pipeline/a.hpp:{number}" for number in (1, 2, 3)])

    def test_a_circle_is_found(self):
        self.write("src/CMakeLists.txt", "pipeline_room(a USES b)\npipeline_room(b USES c)\npipeline_room(c USES a)\n")
        self.assertEqual(find_cycle(read_rooms(self.root / "src/CMakeLists.txt")), ["a", "b", "c", "a"])


if __name__ == "__main__":
    unittest.main()
