/// @file
/// The server's response to a request of a browser.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/file.hpp"

namespace pipeline::serve {

/// A part of an open file that is sent as the body.
struct FileBody {
  core::Descriptor file;
  std::uint64_t from = 0, size = 0;  ///< Offset and length in bytes.
};

/// A source of events, which the server sends while the browser keeps the connection open. Calls of
/// next() do not overlap.
class Feed {
 public:
  virtual ~Feed() = default;
  /// Returns the events since the last call, as server-sent events; empty if there are none.
  virtual std::string next() = 0;
};

/// An HTTP response. At most one of `file` and `feed` is set, and then sent instead of `body`.
struct Response {
  unsigned status = 200;                           ///< The HTTP status.
  std::string type = "text/plain; charset=utf-8";  ///< The Content-Type.
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;  ///< Further headers, by name.
  std::optional<FileBody> file;
  std::unique_ptr<Feed> feed;
};

/// Returns a response with the document as its body.
Response json_response(const nlohmann::json& document);
/// Returns a response with an error's status and, as its body, the reason in one line.
Response refusal(unsigned status, std::string text);
/// Returns a server-sent event of this name, with the data as its text.
std::string event_text(const char* name, const nlohmann::json& data);

}  // namespace pipeline::serve
