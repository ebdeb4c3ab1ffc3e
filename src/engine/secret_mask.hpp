/// @file
/// Replaces secret values in a stream of bytes, wherever the stream is cut, and where they are
/// broken over lines after their first four characters.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace pipeline::engine {

class SecretMask {
 public:
  /// @param secrets values to hide, also in base64, hexadecimal, URLs and JSON, and line by line;
  /// those shorter than three bytes are left alone, as they would hide everything
  explicit SecretMask(const std::vector<std::string>& secrets);
  /// The bytes that can be shown now. What may be the beginning of a secret is held back until more
  /// is known.
  std::string feed(std::string_view bytes);
  /// What was held back, at the end of the stream.
  std::string finish();

 private:
  std::string take(bool at_end);
  std::vector<std::string> secrets_;  ///< In all forms, longest first.
  std::array<bool, 256> begins_{};    ///< Bytes that one of them begins with.
  std::string pending_;
};

}  // namespace pipeline::engine
