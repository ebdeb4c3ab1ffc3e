/// @file
/// Reads content and its state from addresses, by HTTP and from S3-compatible buckets.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/retry_policy.hpp"
#include "async/task.hpp"
#include "blobs/s3/bucket.hpp"
#include "core/cancel.hpp"
#include "fetch/address.hpp"
#include "fetch/content_range.hpp"
#include "net/http.hpp"
#include "net/wanted_pause.hpp"

namespace pipeline::fetch {

/// A file of a folder in a bucket.
using Object = blobs::s3::Object;

/// The state of content as the server reports it, without the content itself.
struct ContentState {
  std::optional<std::uint64_t> size;
  std::string etag;             ///< For a folder, a digest over the ETags of its objects.
  std::string modified;         ///< The header Last-Modified.
  std::string version;          ///< Version id of an object; empty if the bucket keeps no versions.
  std::vector<Object> objects;  ///< Objects of a folder; keys are paths in the folder, sorted.
};

/// Thrown if the server cannot be reached, or cannot answer now.
class Unreachable : public core::EnvironmentError {
 public:
  using core::EnvironmentError::EnvironmentError;
};

/// A request for content: its method, headers and callbacks.
struct Reading {
  std::string method = "GET";
  std::map<std::string, std::string> headers;                 ///< Names in lower case.
  std::function<void(const net::Response&)> on_headers = {};  ///< Not for redirections.
  std::function<void(std::string_view)> on_body = {};  ///< Called for status 200 and 206 only.
};

inline constexpr async::RetryPolicy source_retries{.max_tries = 6};

/// Clients of the servers and buckets that addresses name.
class Sources {
 public:
  /// @param store a remote store; if it is a bucket, its endpoint, region, CA and profile of ~/.aws
  /// apply to all buckets
  Sources(asio::io_context& loop, const settings::RemoteStoreSettings& store);
  ~Sources();

  /// Returns the state of the content. Throws EnvironmentError if the content does not exist, or
  /// the server cannot be asked.
  async::Task<ContentState> state(const DataAddress& from, core::CancelSource& stop,
                                  async::RetryPolicy retries = source_retries);
  /// Sends a request once, and follows redirections. Returns the response, whatever its status.
  /// Throws TransportError, also after a minute of silence.
  async::Task<net::Response> read(const DataAddress& from, Reading& reading,
                                  core::CancelSource& stop);
  /// Returns a URL with which a machine without keys can read the content for some days.
  async::Task<std::string> signed_url(const DataAddress& from);
  /// Returns the error for an unexpected response.
  core::EnvironmentError refused(const DataAddress& from, const net::Response& response);

 private:
  async::Task<ContentState> list(const DataAddress& from, core::CancelSource& stop);
  async::Task<std::optional<ContentState>> ask(const DataAddress& from, core::CancelSource& stop,
                                               std::optional<net::Response>& busy);
  async::Task<net::Request> request(const DataAddress& from, const std::string& url,
                                    const Reading& reading);
  blobs::s3::Bucket& bucket(const std::string& name);

  asio::io_context& loop_;
  blobs::s3::BucketSettings settings_;
  std::map<std::string, std::unique_ptr<blobs::s3::Bucket>> buckets_;
  net::HttpClient client_;
};

/// Returns true if a request that was answered with this status may succeed later.
bool is_temporary(long status);
/// Returns the range that a response contains; nothing if the response names none.
std::optional<ContentRange> range_of(const net::Response& response);
/// Returns true if no retry can help.
bool is_permanent(const net::TransportError& error);

}  // namespace pipeline::fetch
