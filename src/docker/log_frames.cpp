#include "docker/log_frames.hpp"

#include <algorithm>
#include <utility>

namespace pipeline::docker {

bool EngineLogFrames::header_is_valid() const {
  // Stream 0 is echoed stdin, 1 stdout, 2 stderr, and 3 an error of the engine itself.
  return static_cast<unsigned char>(header_[0]) <= 3 && header_[1] == 0 && header_[2] == 0 &&
         header_[3] == 0;
}

void EngineLogFrames::feed(std::string_view bytes) {
  while (!bytes.empty()) {
    if (raw_) return on_bytes_(false, bytes);
    if (left_ > 0) {
      const auto piece = bytes.substr(0, left_);
      left_ -= static_cast<std::uint32_t>(piece.size());
      bytes.remove_prefix(piece.size());
      on_bytes_(is_stderr_, piece);
      continue;
    }
    const auto taken = std::min(header_.size() - header_size_, bytes.size());
    std::copy_n(bytes.begin(), taken, header_.begin() + static_cast<std::ptrdiff_t>(header_size_));
    header_size_ += taken;
    bytes.remove_prefix(taken);
    if (header_size_ < header_.size()) return;
    if (!header_is_valid()) {
      finish();
      raw_ = true;
      continue;
    }
    header_size_ = 0;
    is_stderr_ = header_[0] >= 2;
    for (int i = 4; i < 8; ++i)
      left_ = left_ << 8 | static_cast<unsigned char>(header_[static_cast<std::size_t>(i)]);
  }
}

void EngineLogFrames::finish() {
  if (const auto size = std::exchange(header_size_, 0); size > 0)
    on_bytes_(false, std::string_view(header_.data(), size));
}

}  // namespace pipeline::docker
