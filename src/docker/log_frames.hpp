/// @file
/// The stream that a container's stdout and stderr come in: frames of `[stream, 0, 0, 0, length as
/// u32 big-endian]` and that many bytes (Engine API, ContainerAttach). A frame is neither a line
/// nor a piece of what the network delivers.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>

namespace pipeline::docker {

class LogFrames {
 public:
  using OnBytes = std::function<void(bool is_stderr, std::string_view bytes)>;
  explicit LogFrames(OnBytes on_bytes) : on_bytes_(std::move(on_bytes)) {}
  /// Takes the next bytes, cut anywhere. From the first header that cannot be one, as in a
  /// terminal's stream, all goes to stdout as it stands: nothing is ever lost.
  void feed(std::string_view bytes);
  /// Passes on the beginning of a header that turned out to be none because the stream ended.
  void finish();

 private:
  bool header_is_valid() const;

  OnBytes on_bytes_;
  std::array<char, 8> header_{};
  std::size_t header_size_ = 0;
  std::uint32_t left_ = 0;  ///< Bytes of the current frame still to come.
  bool is_stderr_ = false, raw_ = false;
};

}  // namespace pipeline::docker
