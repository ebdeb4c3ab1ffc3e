/// @file
/// The programs of this machine that a step runs with; they are part of its cache key.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <pipeline/spec.hpp>

namespace pipeline::orchestrators::processes {

/// Returns the names of the programs that the command executes: its first word, or the first words
/// of the simple commands in a shell line. Commands of the shell itself, relative paths, and words
/// with placeholders or expansions are left out.
std::vector<std::string> programs_of(const Command& command);

/// A program found on PATH.
struct FoundProgram {
  std::filesystem::path file;  ///< Empty if it was not found.
  /// One line with path, size and time of change; for Python also with the virtual environment, and
  /// with pyenv's choice if its Python was not found.
  std::string identity;
  std::string version;  ///< Version of Python, as far as files show it: `3.11`, `3.11.7`, or empty.
};

/// Finds programs on PATH, and looks each name up only once.
class Programs {
 public:
  /// @param root the folder in which pyenv looks for `.python-version`
  Programs(std::string path, std::filesystem::path root)
      : path_(std::move(path)), root_(std::move(root)) {}
  /// Returns the program of this name; for `python`, `python3` if only that exists; for a Python
  /// that pyenv chooses, the file that its shim starts.
  const FoundProgram& find(const std::string& name);

 private:
  std::string path_;
  std::filesystem::path root_;
  std::unordered_map<std::string, FoundProgram> found_;
};

/// Returns `3.11` for `python:3.11-slim`, if the image is Docker's Python.
std::optional<std::string> python_of_image(std::string_view reference);

}  // namespace pipeline::orchestrators::processes
