/// @file
/// Walks through the pages of a list.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/page_tokens.hpp"
#include "kubernetes_api/json.hpp"

namespace pipeline::kubernetes_api {

class Pages {
 public:
  /// Returns the token of the next page; empty after the last one. Throws EnvironmentError if the
  /// list does not end.
  std::string next(const nlohmann::json& page) {
    auto token = text_at(page, "/metadata/continue");
    if (token.empty()) return token;
    if (!tokens_.accept(token))
      throw core::EnvironmentError("a list of the cluster's API server does not end");
    return token;
  }

 private:
  core::PageTokens tokens_{16 << 10};  ///< Bytes: far longer than a server's tokens.
};

}  // namespace pipeline::kubernetes_api
