/// @file
/// Which programs of this machine a step runs with: a part of its cache key.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <pipeline/spec.hpp>

namespace pipeline::orchestrators {

/// What the command executes by name: its first word, or those of the simple commands in a shell
/// line, as far as they are written out.
std::vector<std::string> programs_of(const Command& command);

/// A program as PATH finds it.
struct Program {
  std::filesystem::path file;  ///< Empty: there is none.
  std::string identity;  ///< Path, size, time of change; of Python also the virtual environment and
                         ///< pyenv's choice. One line.
  std::string version;   ///< Of Python, as far as files tell: `3.11`, `3.11.7`, or empty.
};

/// Looks each name up once.
class Programs {
 public:
  /// @param root where pyenv looks for `.python-version`
  Programs(std::string path, std::filesystem::path root)
      : path_(std::move(path)), root_(std::move(root)) {}
  const std::string& path() const { return path_; }
  /// `python` is `python3` where only that is there.
  const Program& find(const std::string& name);

 private:
  std::string path_;
  std::filesystem::path root_;
  std::unordered_map<std::string, Program> found_;
};

/// `3.11` of `python:3.11-slim`, if the image is Docker's Python.
std::optional<std::string> python_of_image(std::string_view reference);

}  // namespace pipeline::orchestrators
