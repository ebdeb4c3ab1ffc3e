/// @file
/// What a user wrote wrong: where, what was expected, and the likely fix. As many at once as there
/// are.
#pragma once

#include <cstddef>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pipeline::core {

/// A stretch of a source text. Lines and columns count from 1, columns in bytes; line 0 means "the
/// text as a whole".
struct Span {
  unsigned line = 0;
  unsigned column = 0;
  unsigned length = 1;
};

enum class Severity { error, warning };

struct Diagnostic {
  std::string code;  ///< Stable name of the error class, as `unknown-key`; docs/errors.md has one
                     ///< entry for each.
  std::string message;
  Span span;
  std::vector<std::string> notes;  ///< What is allowed, where the other definition is, ...
  std::string suggestion;  ///< The likely fix, as in `did you mean 'parent_image'?`; may be empty.
  Severity severity = Severity::error;
};

/// The text as it may be shown: control characters, bytes that are no UTF-8 and marks that turn the
/// direction of writing become `\n`, `\x1b`, `\u202e`.
std::string printable(std::string_view text);

/// `FILE:LINE:COLUMN: error: MESSAGE`, the source line with a caret under the span, notes and
/// suggestion, one per line, no end of line after the last. `source` is the whole text of `file`;
/// all texts are made printable. Without a line: `FILE: error: MESSAGE`, without a file `error:
/// MESSAGE`.
std::string render(const Diagnostic& diagnostic, std::string_view file, std::string_view source);

/// The candidate that `word` most likely stands for, if any: by Damerau-Levenshtein distance, at
/// most a third of the word's length, where `-`, `_` and the letters' case do not count; else the
/// only candidate that begins with `word`, if that has three letters or more.
std::optional<std::string> closest(std::string_view word, std::span<const std::string> candidates);

/// `did you mean 'X'?`, or empty.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

/// The user's input is wrong. Carries every diagnostic, with the text that they refer to.
class InputError : public std::exception {
 public:
  InputError(std::vector<Diagnostic> diagnostics, std::string file, std::string source);
  /// An error with no place in a file, such as a bad option.
  explicit InputError(std::string message, std::string suggestion = {});
  const char* what() const noexcept override { return rendered_.c_str(); }
  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }
  const std::string& file() const { return file_; }
  const std::string& source() const { return source_; }

 private:
  std::vector<Diagnostic> diagnostics_;
  std::string file_, source_, rendered_;
};

}  // namespace pipeline::core
