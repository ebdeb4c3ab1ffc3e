/// @file
/// The pipeline's folder as a source of code: its files and folders, and the files that a folder or
/// glob of `code:` includes. Paths outside of the folder are never returned.
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "code/git_rules.hpp"
#include "core/ignore.hpp"

namespace pipeline::code {

/// Name of the file with values of variables and secrets beside a pipeline file; a file of this
/// name is never a step's code.
inline constexpr std::string_view env_file_name = ".env";

/// Returns `folder/name`, or `name` if the folder is the root itself.
inline std::string join_path(const std::string& folder, const std::string& name) {
  return folder.empty() ? name : folder + "/" + name;
}

class CodeTree {
 public:
  enum class Kind { none, file, folder };

  explicit CodeTree(std::filesystem::path root);

  /// Returns the kind of file at a normal relative path (`a/b`; empty: the root); none for `.env`.
  /// Follows links; throws InputError for a link that leaves the root.
  Kind kind(const std::string& relative);

  /// Returns the files below the folder that .dockerignore and .gitignore do not exclude, sorted
  /// and without .git, .pipe, .env and __pycache__; .gitignore excludes no file that git tracks. If
  /// the folder itself is ignored, returns all its files, because the user named it explicitly.
  /// @param looked_at receives the folders and ignore files that the result depends on
  std::vector<std::string> files_below(const std::string& folder, std::set<std::string>& looked_at);

  /// Returns the files that an entry of `code:` includes: a file, a folder, or a glob. Throws
  /// InputError if it matches nothing or leaves the root.
  std::vector<std::string> expand(const std::string& pattern, std::set<std::string>& looked_at);

  /// Throws InputError for the folder of a submodule that is not checked out.
  void check_submodule(const std::string& folder) const;
  /// Throws InputError for a file or folder that a sparse checkout leaves out.
  /// @param path relative to the root
  void check_left_out(const std::string& path);

  std::filesystem::path path_of(const std::string& relative) const {
    return relative.empty() ? root_ : root_ / relative;
  }

 private:
  /// @param ignoring whether ignore files are obeyed
  /// @param above real paths of the folders above, to recognise links to them
  void walk(const std::string& folder, bool ignoring, std::vector<std::filesystem::path>& above,
            std::vector<std::string>& files, std::set<std::string>& looked_at);
  void read_ignore_files(const std::string& folder, std::set<std::string>& looked_at);
  bool ignores(const std::string& relative, bool is_folder);
  GitRules& git_rules();

  std::filesystem::path root_, canonical_root_;
  std::unordered_map<std::string, Kind> kinds_;
  core::DockerIgnore docker_ignore_;
  std::optional<GitRules> git_rules_;  ///< Read on first use.
  /// The number of paths by which walk() has reached each real folder.
  std::unordered_map<std::string, unsigned> paths_to_;
  std::set<std::string> ignore_files_read_;  ///< Folders whose ignore files have been read.
};

/// Returns the path without `.`, `..` and a trailing `/`; `.` becomes the empty path. Returns
/// nothing for a path that is absolute or leaves its starting folder.
std::optional<std::string> normal_relative_path(const std::string& path);

}  // namespace pipeline::code
