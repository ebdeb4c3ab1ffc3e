/// @file
/// One bucket of an S3-compatible server: uploads and downloads objects as streams, large ones in
/// parts, and retries transient failures.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "async/retry_policy.hpp"
#include "core/cancel.hpp"
#include "net/http.hpp"
#include "s3/address.hpp"
#include "s3/answer.hpp"
#include "s3/credentials.hpp"
#include "s3/signing.hpp"
#include "settings/artifact_store.hpp"

namespace pipeline::s3 {

/// A bucket's server answers 503 for some seconds at a time, so pauses start short.
inline constexpr async::RetryPolicy bucket_retries{std::chrono::milliseconds(200),
                                                   std::chrono::milliseconds(10'000), 12};

/// Content to upload; read in pieces, and again for a retry.
struct Body {
  std::uint64_t size = 0;
  std::function<std::size_t(std::uint64_t offset, std::span<char> into)>
      read;  ///< Reads at an offset; returns 0 only at the end, throws on failure.
};
Body body_of(std::string text);

/// Returns true if no retry helps, also where curl (1, 3) rejects the address.
bool is_hopeless(const net::TransportError& error);

/// An object of a list.
struct Object {
  std::string key;
  std::uint64_t size = 0;
  std::string etag;
};

class Bucket {
 public:
  /// Makes no request before the first call. Throws InputError for an invalid endpoint.
  Bucket(asio::io_context& loop, settings::ArtifactStoreSettings settings,
         async::RetryPolicy retry_policy = bucket_retries);
  ~Bucket();

  /// The settings, with unset endpoint and region filled from the environment or ~/.aws.
  const settings::ArtifactStoreSettings& settings() const { return settings_; }
  /// Returns the keys in use. Throws as CredentialSource::find() does.
  async::Task<FoundKeys> keys();

  /// Writes, reads and removes a small object. Throws EnvironmentError that names the missing
  /// permission.
  async::Task<> probe();

  // Keys are without the settings' prefix. All functions throw S3Error, and EnvironmentError if the
  // server cannot be reached.
  async::Task<bool> has(std::string key);
  /// Uploads an object; large ones in parts.
  async::Task<> put(std::string key, Body body, core::CancelSource* cancel = nullptr);
  /// Downloads an object. Each byte is passed once and in order, even after interruptions.
  async::Task<> get(std::string key, std::function<void(std::string_view)> on_bytes,
                    core::CancelSource* cancel = nullptr);
  /// Returns an object of at most 64 MiB; throws EnvironmentError for a larger one.
  async::Task<std::string> get_text(std::string key);
  /// Returns a small object, or nothing if it does not exist. For callers that can do without it:
  /// retries for 20 seconds at most, and a few times only where no server can be reached.
  async::Task<std::optional<std::string>> find_text(std::string key,
                                                    core::CancelSource* cancel = nullptr);
  /// The same with its ETag.
  async::Task<std::optional<std::pair<std::string, std::string>>> find_tagged(
      std::string key, core::CancelSource* cancel = nullptr);
  /// Writes a small object if the present one has this ETag; for an empty one, if there is none.
  /// Returns the new ETag, or nothing if it is not so, which can also be the work of this call, if
  /// the response to its first request was lost. Servers without conditional writes, such as
  /// rclone's, write it in any case.
  async::Task<std::optional<std::string>> put_if(std::string key, std::string text,
                                                 std::string etag);
  /// Returns the keys of all objects that begin with the prefix. Throws EnvironmentError for more
  /// than a million.
  async::Task<std::vector<std::string>> list(std::string prefix);
  /// The same with their sizes and ETags. Throws EnvironmentError for more than `most`.
  async::Task<std::vector<Object>> objects(std::string prefix, std::size_t most,
                                           core::CancelSource* cancel = nullptr);
  /// Returns a signed request for an object, for callers that send it themselves, once.
  /// @param headers names in lower case
  async::Task<net::Request> request(std::string method, std::string key, Query query,
                                    std::map<std::string, std::string> headers);
  /// Returns the error for a response to such a request. @param what completes "cannot ..."
  S3Error refused(const std::string& what, const net::Response& response) const;
  /// Returns the names of the folders directly below one: `a` and `b` for the objects `FOLDER/a/x`
  /// and `FOLDER/b/y/z`.
  async::Task<std::vector<std::string>> folders(std::string folder);
  /// Removes an object; a missing object is no error.
  async::Task<> remove(std::string key);
  /// Copies an object of at most 5 GiB on the server.
  async::Task<> copy(std::string from, std::string to);

  // Multipart uploads: the object appears, as a whole, once it is completed.
  async::Task<std::string> begin_upload(std::string key);  ///< Returns the upload's id.
  /// Completes the upload; a repeated call is no error.
  /// @param tags the parts' tags in order, as the server returned them
  async::Task<> complete_upload(std::string key, std::string id, std::vector<std::string> tags);
  async::Task<> abort_upload(std::string key, std::string id);

  /// Returns a URL that allows this request without keys, for 7 days or until temporary keys
  /// expire.
  async::Task<std::string> presigned(std::string method, std::string key, Query query = {});
  /// Presigned URLs of many parts of one upload, split into their common text before and after the
  /// part number, and one signature each.
  struct PartUrls {
    std::string before, after;  ///< URL: BEFORE NUMBER AFTER SIGNATURE.
    std::vector<std::string> signatures;
  };
  async::Task<PartUrls> presigned_parts(std::string key, std::string id, unsigned count);
  /// The same for the objects `KEY1`, `KEY2`, ...
  async::Task<PartUrls> presigned_series(std::string method, std::string key, unsigned count);

 private:
  struct Call;
  async::Task<net::Response> call(Call call);
  async::Task<net::Response> try_once(Call& call);
  async::Task<net::Request> signed_request(const Call& call);
  async::Task<> read_list(std::string folder, Query query, std::size_t most,
                          std::function<std::size_t(std::string_view)> take,
                          core::CancelSource* cancel);
  async::Task<std::string> put_part(std::string key, Query query, const Body& body,
                                    std::uint64_t offset, std::uint64_t size,
                                    core::CancelSource* cancel);
  using SignNumber = std::function<async::Task<std::string>(std::string number)>;
  async::Task<PartUrls> presigned_numbers(SignNumber sign, std::string_view before_number,
                                          char after_number, unsigned count);
  async::Task<> pause(async::Backoff& backoff, const std::string& why, core::CancelSource* cancel);
  core::EnvironmentError unreachable(const std::string& what,
                                     const net::TransportError& error) const;
  Where where() const;

  asio::io_context& loop_;
  settings::ArtifactStoreSettings settings_;
  async::RetryPolicy retry_policy_;
  CredentialSource source_;
  BucketAddress address_, pod_address_;
  std::string origin_of_keys_;
  std::string ca_;  ///< PEM text, read once.
  net::HttpClient http_;
};

}  // namespace pipeline::s3
