/// @file
/// What a Python source imports, found by reading it. Nothing is executed, so what it computes at
/// run time stays unseen.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pipeline::spec {

struct PythonImport {
  unsigned level = 0;  ///< Leading dots: 0 absolute, 1 the own package, ...
  std::string module;  ///< Dotted; may be empty with a level.
  std::vector<std::string>
      names;  ///< Of `from module import names`: each may be a submodule. `*` for all.
  unsigned line = 0;
  bool operator==(const PythonImport&) const = default;
};

/// All import statements, wherever they stand, and `importlib.import_module("...")` and
/// `__import__("...")` with a literal.
std::vector<PythonImport> python_imports(std::string_view source);

}  // namespace pipeline::spec
