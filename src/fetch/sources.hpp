/// @file
/// What servers have at addresses: asked for, and read, by HTTP and from S3-compatible buckets.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/retry_policy.hpp"
#include "core/cancel.hpp"
#include "fetch/address.hpp"
#include "fetch/content_range.hpp"
#include "net/http.hpp"
#include "s3/bucket.hpp"
#include "settings/artifact_store.hpp"

namespace pipeline::fetch {

/// What a server says of content, without the content itself.
struct ContentState {
  std::optional<std::uint64_t> size;
  std::string etag;      ///< Of a folder a digest over the ETags of its objects.
  std::string modified;  ///< The header Last-Modified.
  std::string version;   ///< Version id of an object; empty if the bucket keeps no versions.
  std::vector<s3::Object> objects;  ///< Of a folder; keys are paths in it, sorted.
};

/// The server cannot be reached, or has no answer for now.
class Unreachable : public core::EnvironmentError {
 public:
  using core::EnvironmentError::EnvironmentError;
};

/// Callbacks and headers of one request.
struct Reading {
  std::string method = "GET";
  std::map<std::string, std::string> headers;                 ///< Names in lower case.
  std::function<void(const net::Response&)> on_headers = {};  ///< Not for redirections.
  std::function<void(std::string_view)> on_body = {};         ///< Of status 200 and 206 only.
};

inline constexpr async::RetryPolicy source_retries{.most_tries = 6};

class Sources {
 public:
  /// @param buckets how buckets are reached: endpoint, region, CA, profile of ~/.aws; its own
  /// bucket and prefix have no meaning here
  Sources(asio::io_context& loop, settings::ArtifactStoreSettings buckets);
  ~Sources();

  /// Returns what the server says of the content. Throws EnvironmentError if there is none, or if
  /// it cannot be asked.
  async::Task<ContentState> state(const DataAddress& from, core::CancelSource& stop,
                                  async::RetryPolicy retries = source_retries);
  /// Sends one request, once, and follows redirections. Returns the response whatever its status
  /// is. Throws TransportError, also after a minute of silence.
  async::Task<net::Response> read(const DataAddress& from, Reading& reading,
                                  core::CancelSource& stop);
  /// Returns a URL by which a machine without keys reads the content, for some days.
  async::Task<std::string> signed_url(const DataAddress& from);
  /// Returns the error for a response that is none of the expected ones.
  core::EnvironmentError refused(const DataAddress& from, const net::Response& response);

 private:
  async::Task<ContentState> list(const DataAddress& from, core::CancelSource& stop);
  async::Task<std::optional<ContentState>> ask(const DataAddress& from, core::CancelSource& stop,
                                               std::optional<net::Response>& busy);
  async::Task<net::Request> request(const DataAddress& from, const std::string& url,
                                    const Reading& reading);
  s3::Bucket& bucket(const std::string& name);

  asio::io_context& loop_;
  settings::ArtifactStoreSettings settings_;
  std::map<std::string, std::unique_ptr<s3::Bucket>> buckets_;
  net::HttpClient client_;
};

/// True if the request may succeed later.
bool is_temporary(long status);
/// Returns the pause that the server asks for (Retry-After in seconds), a minute at most.
std::optional<std::chrono::seconds> wanted_pause(const net::Response& response);
/// Returns the range of a 206; nothing for any other text.
std::optional<ContentRange> range_of(const net::Response& response);
/// True if no retry helps.
bool is_hopeless(const net::TransportError& error);

}  // namespace pipeline::fetch
