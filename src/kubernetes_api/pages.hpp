/// @file
/// The pages of a list.
#pragma once

#include <string>
#include <unordered_set>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "kubernetes_api/json.hpp"

namespace pipeline::kubernetes_api {

class Pages {
 public:
  /// Returns the token of the next page; empty after the last one. Throws EnvironmentError if the
  /// list does not end.
  std::string next(const nlohmann::json& page) {
    auto token = text_at(page, "/metadata/continue");
    if (token.empty()) return token;
    if (token.size() > max_token || asked_.size() == max_pages || !asked_.insert(token).second)
      throw core::EnvironmentError("a list of the cluster's API server does not end");
    return token;
  }

 private:
  static constexpr std::size_t max_pages = 10'000, max_token = 16 << 10;
  std::unordered_set<std::string> asked_;
};

}  // namespace pipeline::kubernetes_api
