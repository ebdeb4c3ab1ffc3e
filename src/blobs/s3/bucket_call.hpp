/// @file
/// A request to a bucket; only files that implement Bucket include this.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "blobs/s3/bucket.hpp"
#include "net/wanted_pause.hpp"

namespace pipeline::blobs::s3 {

struct Bucket::Call {
  // A constructor instead of an aggregate, because g++ 12 destroys a brace-initialised temporary
  // twice in a co_await expression.
  Call(std::string tried, std::string http_method, std::string object)
      : what(std::move(tried)), method(std::move(http_method)), key(std::move(object)) {}
  std::string what;  ///< Completes the message "cannot ...", before the bucket's name.
  std::string method, key;
  Query query;
  std::map<std::string, std::string> headers;  ///< Names in lower case.
  std::string payload_hash;  ///< SHA-256 of the body in hex; if empty, that of `text`.
  const Body* body = nullptr;
  std::uint64_t offset = 0, size = 0;  ///< Range of the body.
  std::string text;                    ///< A short body.
  std::uint64_t server_bytes = 0;      ///< Bytes that the server moves before it answers.
  std::function<void(std::string_view)> on_body;
  std::function<void(const net::Response&)> on_headers;
  core::CancelSource* cancel = nullptr;
  bool may_be_missing = false;  ///< 404 is returned instead of thrown.
  bool is_lookup = false;       ///< Ends soon without an answer, as Lookup::optional says.
};

}  // namespace pipeline::blobs::s3
