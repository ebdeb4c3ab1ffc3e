/// @file
/// Replaces secret values in a stream of bytes, wherever the stream is split, and also where line
/// breaks are inserted after their first four characters.
#pragma once

#include <compare>
#include <string>
#include <string_view>
#include <vector>

#include <pipeline/events.hpp>

namespace pipeline::engine {

class SecretMask {
 public:
  /// A text that shows a secret: the secret itself, or encoded in some way.
  struct Form {
    std::string text;
    bool has_open_end = false;  ///< The next digit of base64 also has bits of the secret.
    bool has_backslash = false;
    auto operator<=>(const Form&) const = default;
  };

  /// @param secrets values to hide, also in base64, hexadecimal, URLs and JSON, and line by line;
  /// values shorter than three bytes are not hidden, because they occur everywhere
  explicit SecretMask(const std::vector<std::string>& secrets);
  /// Returns the bytes that can be shown now. A possible beginning of a secret is held back until
  /// more bytes arrive.
  std::string feed(std::string_view bytes);
  /// Returns the bytes held back, at the end of the stream.
  std::string finish();
  /// Ends a stream whose end is missing, as finish() does. Also hides three bytes or more with
  /// which a secret begins.
  std::string finish_cut();

 private:
  enum class End { none, reached, cut };
  std::string take(End end);
  /// The forms of all secrets, indexed by first byte, the longest first. Empty without secrets, to
  /// save memory: thousands of attempts may wait at the same time.
  std::vector<std::vector<Form>> forms_;
  std::string pending_;  ///< The bytes held back.
};

/// Returns the text with the secrets replaced, as SecretMask does it.
std::string without_secrets(std::string_view text, const std::vector<std::string>& secrets);
/// Does the same for a text whose end is missing, perhaps from within a secret.
std::string without_cut_secrets(std::string_view text, const std::vector<std::string>& secrets);
/// Replaces the secrets in all texts of a failure: an orchestrator may quote what services and
/// their checks have printed.
void hide_secrets(Failure& failure, const std::vector<std::string>& secrets);

}  // namespace pipeline::engine
