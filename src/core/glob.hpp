/// @file
/// One compiled pattern of file names, in the dialects of docker, git and our own `code:`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pipeline::core {

/// Matching takes time proportional to the lengths of pattern and path, whatever the pattern: no
/// pattern of a stranger's blows it up.
class Glob {
 public:
  /// github.com/moby/patternmatcher, for a cleaned pattern and a whole path. `**/` stands for any
  /// number of folders, `**` at the end for anything;
  /// `*` and `?` match no `/`, a class may. Nothing if Go's filepath.Match calls the pattern
  /// malformed.
  static std::optional<Glob> docker(std::string_view pattern);
  /// git's wildmatch with WM_PATHNAME: like docker's, but `**` counts only between slashes, a class
  /// matches no `/`, `[!a]` negates as `[^a]`, and classes such as `[:alpha:]` are known. Bytes,
  /// not characters. A malformed pattern matches nothing.
  static Glob git(std::string_view pattern);

  bool matches(std::string_view path) const;

 private:
  /// `folders` is `(.*/)?`, and followed by `folders_inside`, the state within its `.*`.
  enum class Kind : unsigned char { literal, any, set, star, anything, folders, folders_inside };
  struct Token {
    Kind kind;
    std::string literal;  ///< One character.
    bool negated = false;
    std::vector<std::pair<char32_t, char32_t>> ranges;
    bool accepts(char32_t c, std::string_view bytes) const;
  };
  friend class GlobCompiler;
  void finish();

  std::vector<Token> tokens_;  ///< Between prefix and suffix.
  std::string prefix_,
      suffix_;  ///< What every match begins and ends with: most paths are told apart by them.
  bool characters_ = false;  ///< `?` and classes stand for UTF-8 characters, not bytes.
  bool never_ = false;
};

/// One component against a pattern with `*`, `?`, `[a-z]` and `\`; none of them crosses a `/`.
bool matches_component(std::string_view pattern, std::string_view component);
/// A relative path against a glob whose components may be `**`.
bool matches_glob(std::string_view glob, std::string_view relative_path);

}  // namespace pipeline::core
