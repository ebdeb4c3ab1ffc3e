/// @file
/// Lists that a server sends page by page, each page with the token of the next page.
#pragma once

#include <string>
#include <unordered_set>

namespace pipeline::core {

/// Recognises a list that does not end.
class PageTokens {
 public:
  /// @param max_token maximum length of a token, in bytes
  explicit PageTokens(std::size_t max_token) : max_token_(max_token) {}
  /// Returns false if the list does not end: the server has sent this token before, or too many
  /// pages, or the token is too long. An empty token, after the last page, is accepted.
  bool accept(const std::string& token) {
    if (token.size() > max_token_ || asked_.size() == max_pages) return false;
    return token.empty() || asked_.insert(token).second;
  }

 private:
  static constexpr std::size_t max_pages = 10'000;
  const std::size_t max_token_;
  std::unordered_set<std::string> asked_;
};

}  // namespace pipeline::core
