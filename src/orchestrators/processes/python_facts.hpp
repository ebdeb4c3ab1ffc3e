/// @file
/// An interpreter's description of itself.
#pragma once

#include <filesystem>
#include <string>

namespace pipeline::orchestrators::processes {

struct PythonFacts {
  std::string version;   ///< `3.11.7`.
  std::string tag;       ///< Python's own tag for wheels: `cp311`.
  std::string platform;  ///< The newest platform of wheels that it accepts:
                         ///< `manylinux_2_36_x86_64`.
};

/// Runs the interpreter, which takes some 20 ms. Throws EnvironmentError.
PythonFacts read_python_facts(const std::filesystem::path& python);

}  // namespace pipeline::orchestrators::processes
