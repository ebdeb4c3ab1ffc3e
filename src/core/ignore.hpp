/// @file
/// Which paths of a folder are left out: docker's .dockerignore rules and git's .gitignore rules,
/// both exactly.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/glob.hpp"

namespace pipeline::core {

/// Rules of one .dockerignore (github.com/moby/patternmatcher): patterns are rooted at the context,
/// the last match wins, a match on any parent excludes what is below, `!` includes again.
class DockerIgnore {
 public:
  /// Throws InputError where docker would refuse the file: a lone `!`, a malformed class, a `\` at
  /// the end. @param file its name, for messages
  explicit DockerIgnore(std::string_view rules = {}, std::string_view file = ".dockerignore");
  bool ignores(std::string_view relative_path) const;
  /// True if some rule begins with `!`: then an ignored folder may hold files that are not, and
  /// must be walked.
  bool has_exceptions() const { return has_exceptions_; }

 private:
  struct Rule {
    Glob glob;
    bool negated;
  };
  std::vector<Rule> rules_;
  bool has_exceptions_ = false;
};

/// Rules of the .gitignore files of a tree (gitignore(5)): add them from the root down, each with
/// its folder.
class GitIgnore {
 public:
  /// @param folder relative to the root, empty for the root itself
  void add(std::string_view folder, std::string_view rules);
  /// Looks at the folders above the path, too: below an ignored one everything is ignored.
  bool ignores(std::string_view relative_path, bool is_directory) const;

 private:
  struct Rule {
    std::string folder;  ///< With a `/` at its end, or empty.
    std::string prefix;  ///< What stands before the first special character; git compares it apart
                         ///< from the rest.
    Glob rest;
    bool negated, directories_only, anchored;
  };
  std::vector<Rule> rules_;
  bool matches(const Rule& rule, std::string_view path, bool is_directory) const;
};

}  // namespace pipeline::core
