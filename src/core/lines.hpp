/// @file
/// A text that comes in pieces, line by line.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace pipeline::core {

class Lines {
 public:
  /// Calls `visit` with each line that is whole now, without its end.
  template <class Visit>
  void feed(std::string_view bytes, Visit&& visit) {
    rest_ += bytes;
    std::size_t begin = 0;
    for (auto end = rest_.find('\n'); end != rest_.npos; end = rest_.find('\n', begin)) {
      visit(std::string_view(rest_).substr(begin, end - begin));
      begin = end + 1;
    }
    rest_.erase(0, begin);
  }
  /// What has come of a line that has not ended.
  const std::string& rest() const { return rest_; }
  void clear() { rest_.clear(); }

 private:
  std::string rest_;
};

}  // namespace pipeline::core
