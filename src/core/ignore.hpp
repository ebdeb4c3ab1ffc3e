/// @file
/// Which paths of a folder are left out: docker's .dockerignore rules and git's .gitignore rules, both exactly.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pipeline {

/// Rules of one .dockerignore (github.com/moby/patternmatcher): patterns are rooted at the context, the last match wins, a match on any parent
/// excludes what is below, `!` includes again.
class DockerIgnore {
 public:
  explicit DockerIgnore(std::string_view rules = {});
  bool ignores(std::string_view relative_path) const;
  /// True if some rule begins with `!`: then an ignored folder may hold files that are not, and must be walked.
  bool has_exceptions() const { return has_exceptions_; }

 private:
  struct Rule { std::vector<std::string> components; bool negated; };
  std::vector<Rule> rules_;
  bool has_exceptions_ = false;
};

/// Rules of the .gitignore files of a tree (gitignore(5)): add them from the root down, each with its folder.
class GitIgnore {
 public:
  /// @param folder relative to the root, empty for the root itself
  void add(std::string_view folder, std::string_view rules);
  bool ignores(std::string_view relative_path, bool is_directory) const;

 private:
  struct Rule { std::string folder; std::vector<std::string> components; bool negated, directories_only, anchored; };
  std::vector<Rule> rules_;
};

/// One component against a pattern with `*`, `?`, `[a-z]` and `\`; none of them crosses a `/`.
bool matches_component(std::string_view pattern, std::string_view component);
/// A relative path against a glob whose components may be `**`.
bool matches_glob(std::string_view glob, std::string_view relative_path);

}  // namespace pipeline
