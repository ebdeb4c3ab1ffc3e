/// @file
/// Which files of the pipeline's folder git leaves out: by the .gitignore files from the
/// repository's top down and by .git/info/exclude, but never a file that it tracks (gitignore(5)).
/// A user's own core.excludesFile is not read: machines would see different code.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/ignore.hpp"

namespace pipeline::code {

class GitRules {
 public:
  /// @param root the pipeline's folder, canonical; in a repository or not
  explicit GitRules(const std::filesystem::path& root);

  /// Adds the .gitignore file of a folder of the pipeline. Add them from the root down.
  /// @param folder relative to the root, empty for the root itself
  void add(const std::string& folder, std::string_view rules);

  /// Returns true if the rules leave out the path, tracked or not.
  bool match(const std::string& relative, bool is_folder) const;

  /// Returns true if the rules leave out the path and git tracks neither it nor a file below it.
  /// @param looked_at receives git's index if the result depends on it
  bool exclude(const std::string& relative, bool is_folder, std::set<std::string>& looked_at);

  /// Returns true if the repository is a sparse checkout, or was one.
  bool is_sparse() const { return is_sparse_; }

  /// The files above the root that the rules come from, whether they exist or not.
  const std::vector<std::filesystem::path>& sources() const { return sources_; }

 private:
  bool tracks(const std::string& relative);

  std::filesystem::path root_, index_;
  std::string prefix_;  ///< The root below the repository's top, ends with `/`; empty for the top,
                        ///< and where rules above do not count.
  std::vector<std::filesystem::path> sources_;
  bool is_sparse_ = false;
  core::GitIgnore ignore_;
  /// Outside of a repository, the rules within each submodule, to which those around it do not
  /// apply; keyed by its folder with `/`.
  std::map<std::string, core::GitIgnore> submodules_;
  std::optional<std::vector<std::string>> tracked_;  ///< Read when a rule first matches.
};

}  // namespace pipeline::code
