/// @file
/// The end of a long output.
#pragma once

#include <string>
#include <string_view>

namespace pipeline::core {

/// Keeps at least the last `size` bytes of what is added, and at most twice as many.
class TailBuffer {
 public:
  explicit TailBuffer(std::size_t size) : size_(size) {}
  void add(std::string_view bytes) {
    text_ += bytes;
    if (text_.size() > 2 * size_) text_.erase(0, text_.size() - size_);
  }
  const std::string& text() const { return text_; }

 private:
  std::size_t size_;
  std::string text_;
};

}  // namespace pipeline::core
