/// @file
/// Decides which paths of a folder are excluded, exactly by docker's .dockerignore rules and git's
/// .gitignore rules.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/glob.hpp"

namespace pipeline::core {

/// Rules of one .dockerignore (github.com/moby/patternmatcher): patterns are relative to the
/// context's root, the last match wins, a match of a parent excludes everything below it, `!`
/// includes again.
class DockerIgnore {
 public:
  /// Throws InputError for a file that docker rejects: a lone `!`, a malformed class, a `\` at the
  /// end.
  /// @param file its name, for messages
  explicit DockerIgnore(std::string_view rules = {}, std::string_view file = ".dockerignore");
  bool ignores(std::string_view relative_path) const;
  /// Returns true if a rule begins with `!`. An ignored folder can then contain files that are
  /// included, and has to be walked.
  bool has_exceptions() const { return has_exceptions_; }

 private:
  struct Rule {
    Glob glob;
    bool negated;
  };
  std::vector<Rule> rules_;
  bool has_exceptions_ = false;
};

/// Rules of the .gitignore files of a tree (gitignore(5)). Add the files from the root down, each
/// with its folder. libgit2 is not used, because its git_ignore_path_is_ignored() needs a
/// repository, and reads the user's own core.excludesFile. Version 1.5 also disagrees with `git
/// check-ignore` for 1 of 100 random paths: a file below an ignored folder is not ignored if a rule
/// with `!` matches its name.
class GitIgnore {
 public:
  /// @param folder relative to the root, empty for the root itself
  void add(std::string_view folder, std::string_view rules);
  /// Returns whether the path is ignored: also if a folder above it is ignored.
  bool ignores(std::string_view relative_path, bool is_directory) const;

 private:
  struct Rule {
    std::string folder;  ///< Ends with `/`, or empty.
    std::string prefix;  ///< The text before the first special character; git compares it
                         ///< separately from the rest.
    Glob rest;
    bool negated, directories_only;
    bool anchored;  ///< Compared with the path below `folder`, otherwise with the last name only.
  };
  std::vector<Rule> rules_;
  bool matches(const Rule& rule, std::string_view path, bool is_directory) const;
};

}  // namespace pipeline::core
