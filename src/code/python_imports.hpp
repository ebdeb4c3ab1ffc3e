/// @file
/// Finds the imports of a Python source by parsing its text. Nothing is executed, so imports that
/// are computed at run time are not found.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pipeline::code {

struct PythonImport {
  unsigned level = 0;  ///< Number of leading dots: 0 for an absolute import, 1 for the own package.
  std::string module;  ///< Dotted name; may be empty if `level` > 0.
  /// The names of `from module import names`: each may be a submodule; `*` for all.
  std::vector<std::string> names;
  unsigned line = 0;
  bool operator==(const PythonImport&) const = default;
};

/// Returns all import statements at any nesting, and calls of `importlib.import_module("...")` and
/// `__import__("...")` with a literal.
std::vector<PythonImport> python_imports(std::string_view source);

}  // namespace pipeline::code
