/// @file
/// File name patterns in two dialects: docker's, and git's, in which `code:` and other settings are
/// written, too.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pipeline::core {

/// A compiled pattern. A match takes time proportional to the lengths of pattern and path, for
/// every pattern.
class Glob {
 public:
  /// Compiles a pattern of github.com/moby/patternmatcher, for a cleaned pattern and a whole path.
  /// `**/` matches any number of folders, `**` at the end anything; `*` and `?` match no `/`, a
  /// class may. Returns nothing if Go's filepath.Match calls the pattern malformed.
  static std::optional<Glob> docker(std::string_view pattern);
  /// Compiles a pattern of git's wildmatch with WM_PATHNAME. Unlike in docker's dialect, `**`
  /// counts only between slashes, a class matches no `/`, `[!a]` negates as `[^a]` does, and
  /// classes such as `[:alpha:]` are known. Matches bytes, not characters. A malformed pattern
  /// matches nothing.
  static Glob git(std::string_view pattern);

  bool matches(std::string_view path) const;

 private:
  /// As regular expressions: `any` is `[^/]`, `star` is `[^/]*`, `anything` is `.*`, `folders` is
  /// `(.*/)?`. `folders_inside` follows `folders`, and is the state within its `.*`.
  enum class Kind : unsigned char { literal, any, set, star, anything, folders, folders_inside };
  struct Token {
    Kind kind;
    std::string literal;  ///< A single character.
    bool negated = false;
    std::vector<std::pair<char32_t, char32_t>> ranges;
    bool accepts(char32_t c, std::string_view bytes) const;
  };
  /// The unit that `?` and classes match; characters are those of UTF-8.
  enum class Unit : unsigned char { byte, character };
  friend class GlobCompiler;
  void finish();

  std::vector<Token> tokens_;  ///< The tokens between prefix and suffix.
  /// The literal beginning and end of every match; they decide most comparisons.
  std::string prefix_, suffix_;
  Unit unit_ = Unit::byte;
  bool never_ = false;  ///< The pattern matches nothing.
};

/// Returns true if the relative path matches the glob, in git's dialect.
bool matches_glob(std::string_view glob, std::string_view relative_path);

}  // namespace pipeline::core
