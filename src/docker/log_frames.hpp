/// @file
/// Decodes the stream of a container's stdout and stderr: frames of `[stream, 0, 0, 0, length as
/// u32 big-endian]` and that many bytes (Engine API, ContainerAttach). Frames are aligned neither
/// with lines nor with network packets.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>

namespace pipeline::docker {

class EngineLogFrames {
 public:
  using OnBytes = std::function<void(bool is_stderr, std::string_view bytes)>;
  explicit EngineLogFrames(OnBytes on_bytes) : on_bytes_(std::move(on_bytes)) {}
  /// Reads the next bytes, split at any point. A terminal's stream has no frames: from the first
  /// invalid header, all bytes go to stdout unchanged.
  void feed(std::string_view bytes);
  /// Ends the stream; passes on an incomplete header.
  void finish();

 private:
  bool header_is_valid() const;

  OnBytes on_bytes_;
  std::array<char, 8> header_{};
  std::size_t header_size_ = 0;
  std::uint32_t left_ = 0;  ///< Bytes of the current frame that have not arrived.
  bool is_stderr_ = false;
  bool raw_ = false;  ///< An invalid header has arrived: the stream has no frames.
};

}  // namespace pipeline::docker
