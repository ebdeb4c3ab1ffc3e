/// @file
/// The pipeline's folder as a source of code: what lies where, and which files a folder or glob
/// stands for. Nothing outside of it is ever answered.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/ignore.hpp"

namespace pipeline::spec {

/// `folder/name`, or `name` where the folder is the root itself.
inline std::string join_path(const std::string& folder, const std::string& name) {
  return folder.empty() ? name : folder + "/" + name;
}

class CodeTree {
 public:
  enum class Kind { none, file, folder };

  explicit CodeTree(std::filesystem::path root);

  /// What lies at a normal relative path (`a/b`; empty: the root). Links are followed; throws
  /// InputError for one that leaves the root.
  Kind kind(const std::string& relative);

  /// The files below the folder that .dockerignore and .gitignore leave; all of them if the folder
  /// itself is ignored, for then it was named on purpose. Without .git, .pipe and __pycache__.
  /// Sorted. @param looked_at receives the folders and ignore files that the answer depends on
  std::vector<std::string> files_below(const std::string& folder, std::set<std::string>& looked_at);

  /// The files that an entry of `code:` stands for: a file, a folder, or a glob. Throws InputError
  /// if there is none, or if it leaves the root.
  std::vector<std::string> expand(const std::string& pattern, std::set<std::string>& looked_at);

  std::filesystem::path path_of(const std::string& relative) const {
    return relative.empty() ? root_ : root_ / relative;
  }

 private:
  void walk(const std::string& folder, bool ignoring, std::vector<std::filesystem::path>& above,
            std::vector<std::string>& files, std::set<std::string>& looked_at);
  void read_ignore_files(const std::string& folder, std::set<std::string>& looked_at);
  bool ignores(const std::string& relative, bool is_folder) const;

  std::filesystem::path root_, canonical_root_;
  std::unordered_map<std::string, Kind> kinds_;
  core::DockerIgnore docker_ignore_;
  core::GitIgnore git_ignore_;
  std::set<std::string> ignore_files_read_;  ///< Folders.
};

/// The path without `.` and `..`, without a `/` at its end, `.` as the empty path; nothing if it is
/// absolute or leaves the folder it starts from.
std::optional<std::string> normal_relative_path(const std::string& path);

}  // namespace pipeline::spec
