/// @file
/// Decides which files of the pipeline's folder git leaves out (gitignore(5)): those that match the
/// .gitignore files from the repository's top down or .git/info/exclude, unless git tracks them. A
/// user's own core.excludesFile is not read, because machines would then see different code.
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

  /// Adds the .gitignore file of a folder of the pipeline. Must be called from the root down,
  /// because later rules take precedence.
  /// @param folder relative to the root, empty for the root itself
  void add(const std::string& folder, std::string_view rules);

  /// Returns true if the rules leave out the path, tracked or not.
  bool match(const std::string& relative, bool is_folder) const;

  /// Returns true if the rules leave out the path and git tracks neither it nor a file below it.
  /// @param looked_at receives git's index if the result depends on it
  bool exclude(const std::string& relative, bool is_folder, std::set<std::string>& looked_at);

  /// Returns true if the repository is a sparse checkout, or was one.
  bool is_sparse() const { return is_sparse_; }

  /// Returns the files outside the root that the rules come from; they need not exist.
  const std::vector<std::filesystem::path>& sources() const { return sources_; }

 private:
  bool tracks(const std::string& relative);

  std::filesystem::path root_, index_;
  /// The path of the root below the repository's top, with `/` at its end. Empty if the root is the
  /// top, and if the repository's rules leave out the root.
  std::string prefix_;
  std::vector<std::filesystem::path> sources_;
  bool is_sparse_ = false;
  core::GitIgnore ignore_;
  /// Outside of a repository, the rules within each submodule, keyed by its folder with `/` at the
  /// end. The rules around a submodule do not apply in it.
  std::map<std::string, core::GitIgnore> submodules_;
  std::optional<std::vector<std::string>> tracked_;  ///< Read when a rule first matches.
};

}  // namespace pipeline::code
