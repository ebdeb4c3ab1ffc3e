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
#include "blobs/s3/bucket.hpp"
#include "core/cancel.hpp"
#include "fetch/address.hpp"
#include "fetch/content_range.hpp"
#include "net/http.hpp"

namespace pipeline::fetch {

/// A file of a folder in a bucket.
using Object = blobs::s3::Object;

/// What a server says of content, without the content itself.
struct ContentState {
  std::optional<std::uint64_t> size;
  std::string etag;             ///< Of a folder a digest over the ETags of its objects.
  std::string modified;         ///< The header Last-Modified.
  std::string version;          ///< Version id of an object; empty if the bucket keeps no versions.
  std::vector<Object> objects;  ///< Of a folder; keys are paths in it, sorted.
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
  /// @param store a remote store, whose options say how buckets are reached if it is a bucket, too:
  /// endpoint, region, CA, profile of ~/.aws
  Sources(asio::io_context& loop, const settings::RemoteStoreSettings& store);
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
  blobs::s3::Bucket& bucket(const std::string& name);

  asio::io_context& loop_;
  blobs::s3::BucketSettings settings_;
  std::map<std::string, std::unique_ptr<blobs::s3::Bucket>> buckets_;
  net::HttpClient client_;
};

/// True if the request may succeed later.
bool is_temporary(long status);
/// Returns the pause that the server asks for (Retry-After in seconds), a minute at most.
std::optional<std::chrono::seconds> wanted_pause(const net::Response& response);
/// Returns the range of a 206; nothing for any other text.
std::optional<ContentRange> range_of(const net::Response& response);
/// True if no retry helps.
bool is_permanent(const net::TransportError& error);

}  // namespace pipeline::fetch
