/// @file
/// Errors in the user's input: the position, what was expected, and the likely fix. All errors of
/// an input are reported at once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pipeline::core {

/// A range of a source text. Lines and columns count from 1, columns in bytes; line 0 means the
/// text as a whole. The struct is small because each value of a large pipeline has one.
struct Span {
  unsigned line = 0;
  unsigned column = 0;
  std::uint16_t length = 1;  ///< In bytes; see span_length().
  std::uint16_t file = 0;    ///< Number of the source text, for an input of several files.
};

/// Returns the length as a Span has it; a longer range is shown up to 65,535 bytes.
constexpr std::uint16_t span_length(std::size_t length) {
  return static_cast<std::uint16_t>(std::min<std::size_t>(length, UINT16_MAX));
}

enum class Severity { error, warning };

struct Diagnostic {
  /// Stable name of the error class, such as `unknown-key`; docs/errors.md explains each.
  std::string code;
  std::string message;
  Span span;
  /// For example the permitted values, or the position of another definition.
  std::vector<std::string> notes;
  /// The likely fix, such as `did you mean 'parent_image'?`; may be empty.
  std::string suggestion;
  Severity severity = Severity::error;
};

/// Returns the text as it may be shown: control characters, invalid UTF-8 and marks that change the
/// writing direction become escapes such as `\x1b` or `\u202e`.
std::string printable(std::string_view text);

/// Renders `FILE:LINE:COLUMN: error: MESSAGE`, the source line with a caret under the span, notes
/// and suggestion, one per line, without a line end after the last. `source` is the whole text of
/// `file`. All texts are made printable, without the secrets of addresses. Without a line, the
/// result begins with `FILE: error: MESSAGE`; without a file, with `error: MESSAGE`.
std::string render(const Diagnostic& diagnostic, std::string_view file, std::string_view source);

/// Returns the candidate that `word` most likely stands for, if any. This is the nearest candidate
/// by Damerau-Levenshtein distance, without regard to `-`, `_` and case, if the distance is at most
/// a third of the word's length. Otherwise it is the only candidate that begins with `word`, if
/// `word` has at least three letters.
std::optional<std::string> closest(std::string_view word, std::span<const std::string> candidates);

/// Returns `did you mean 'X'?`, or an empty text.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

/// A file of the user's input.
struct SourceText {
  std::string file;  ///< Name of the file, for messages.
  std::string text;
};

/// The user's input is invalid. Carries all diagnostics and the texts that they refer to.
class InputError : public std::exception {
 public:
  /// @param sources indexed by Span::file; not empty
  InputError(std::vector<Diagnostic> diagnostics, std::vector<SourceText> sources);
  InputError(std::vector<Diagnostic> diagnostics, std::string file, std::string source);
  /// An error without a position in a file, such as a bad option.
  explicit InputError(std::string message, std::string suggestion = {});
  const char* what() const noexcept override { return rendered_.c_str(); }
  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }
  /// The first file; empty if there is none.
  const std::string& file() const { return sources_.front().file; }
  /// The file that the diagnostic refers to.
  const std::string& file_of(const Diagnostic& diagnostic) const;

 private:
  std::vector<Diagnostic> diagnostics_;
  std::vector<SourceText> sources_;
  std::string rendered_;
};

}  // namespace pipeline::core
