/// @file
/// The answer to a request.
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

/// A part of an open file.
struct FileBody {
  core::Descriptor file;
  std::uint64_t from = 0, size = 0;
};

/// Events that are sent while the browser listens. All calls come from one thread at a time.
class Feed {
 public:
  virtual ~Feed() = default;
  /// Returns the events since the last call, as server-sent events; empty if there are none.
  virtual std::string next() = 0;
};

struct Answer {
  unsigned status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
  std::optional<FileBody> file;  ///< Replaces the body.
  std::unique_ptr<Feed> feed;    ///< Replaces the body.
};

Answer json_answer(const nlohmann::json& document);
/// Returns an answer of one line, for a browser or a person.
Answer refusal(unsigned status, std::string text);
/// Returns a server-sent event.
std::string event_text(const char* name, const nlohmann::json& data);

}  // namespace pipeline::serve
