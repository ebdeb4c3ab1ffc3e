/// @file
/// Splits a text that arrives in pieces into lines.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace pipeline::core {

/// Keeps the beginning of a line until the end of the line arrives.
class Lines {
 public:
  /// @param max_line maximum bytes of a line; a longer line is visited in pieces of this size, the
  /// last of which may be shorter, so that memory is bounded
  explicit Lines(std::size_t max_line = std::size_t{16} << 20) : max_line_(max_line) {}

  /// Calls `visit` with each complete line, without its line end.
  template <class Visit>
  void feed(std::string_view bytes, Visit&& visit) {
    while (!bytes.empty()) {
      const auto end = bytes.find('\n');
      const auto piece = bytes.substr(0, std::min(end, max_line_ - rest_.size()));
      rest_ += piece;
      const bool is_whole = piece.size() == end;
      bytes.remove_prefix(piece.size() + (is_whole ? 1 : 0));
      if (!is_whole && rest_.size() < max_line_) return;
      const bool ends_pieces = is_whole && is_in_pieces_ && rest_.empty();
      is_in_pieces_ = !is_whole;
      if (ends_pieces) continue;
      const auto line = std::exchange(rest_, {});
      visit(std::string_view(line));
    }
  }
  /// Returns the beginning of a line whose end has not arrived.
  const std::string& rest() const { return rest_; }
  void clear() {
    rest_.clear();
    is_in_pieces_ = false;
  }

 private:
  std::size_t max_line_;
  std::string rest_;
  bool is_in_pieces_ = false;  ///< The beginning of this line has been visited.
};

}  // namespace pipeline::core
