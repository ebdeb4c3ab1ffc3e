/// @file
/// A bucket of an S3-compatible server: uploads and downloads objects as streams, large ones in
/// parts, and retries transient failures.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "blobs/kind.hpp"
#include "blobs/s3/address.hpp"
#include "blobs/s3/answer.hpp"
#include "blobs/s3/credentials.hpp"
#include "blobs/s3/settings.hpp"
#include "blobs/s3/signing.hpp"
#include "net/http.hpp"

namespace pipeline::blobs::s3 {

/// Returns true if no retry helps: the certificate is not trusted, or curl rejects the address
/// (CURLE_UNSUPPORTED_PROTOCOL, CURLE_URL_MALFORMAT).
bool is_permanent(const net::TransportError& error);

/// An object in a list of objects.
struct Object {
  std::string key;
  std::uint64_t size = 0;
  std::string etag;
  std::chrono::system_clock::time_point modified = {};
};

/// A bucket, or the part of a bucket below a prefix. Keys do not contain the settings' prefix. If
/// the server refuses a request, an S3Error is thrown.
class Bucket final : public BlobStore, private PodAccess {
 public:
  /// Makes no request before the first call. Throws InputError for an invalid endpoint.
  Bucket(asio::io_context& loop, BucketSettings settings,
         async::RetryPolicy retry_policy = store_retries);
  ~Bucket() override;

  std::string url() const override { return url_of(settings_); }
  void stop_calls_by(core::CancelSource& run) override {
    stop_calls_by(run, core::StopLevel::immediate);
  }
  PodAccess* pod_access() override { return this; }
  std::uint64_t max_copy_bytes() const override;
  async::Task<> probe() override;
  async::Task<bool> has(std::string key) override;
  async::Task<> put(std::string key, Body body, core::CancelSource* cancel = nullptr) override;
  async::Task<> get(std::string key, Range range, std::function<void(std::string_view)> on_bytes,
                    core::CancelSource* cancel = nullptr) override;
  async::Task<std::optional<std::uint64_t>> size_for_ranges(std::string key) override;
  std::size_t connection_limit() const override { return limit_.value(); }
  async::Task<std::optional<Tagged>> find_tagged(std::string key, core::CancelSource* cancel,
                                                 Lookup lookup) override;
  async::Task<std::optional<std::string>> put_if(std::string key, std::string text,
                                                 std::string tag) override;
  async::Task<std::vector<Entry>> entries(std::string prefix) override;
  async::Task<std::vector<std::string>> folders(std::string folder) override;
  async::Task<> remove(std::string key) override;
  async::Task<> copy(std::string from, std::string to, std::uint64_t bytes = 0) override;

  // The following functions are for addresses of users' data in buckets.
  /// Returns the objects whose keys begin with the prefix. Throws EnvironmentError for more than
  /// `max` objects.
  async::Task<std::vector<Object>> objects(std::string prefix, std::size_t max,
                                           core::CancelSource* cancel = nullptr);
  /// Returns a signed request for an object, for callers that send it themselves, once.
  /// @param headers names in lower case
  async::Task<net::Request> request(std::string method, std::string key, Query query,
                                    std::map<std::string, std::string> headers);
  /// Returns the error for a refused request of request(). @param what completes "cannot ..."
  S3Error refused(const std::string& what, const net::Response& response) const;
  /// Returns a presigned URL as PodAccess::presigned() does, for any method and query.
  async::Task<std::string> presigned_request(std::string method, std::string key, Query query = {});

 private:
  async::Task<std::string> presigned(Method method, std::string key) override;
  async::Task<NumberedUrls> presigned_parts(std::string key, std::string upload,
                                            unsigned count) override;
  async::Task<NumberedUrls> presigned_series(Method method, std::string key,
                                             unsigned count) override;
  async::Task<KeyedUrls> presigned_reads() override;
  async::Task<std::string> begin_upload(std::string key) override;
  async::Task<> complete_upload(std::string key, std::string upload,
                                std::vector<std::string> tags) override;
  async::Task<> abort_upload(std::string key, std::string upload) override;
  async::Task<std::vector<OpenUpload>> open_uploads() override;
  async::Task<std::optional<Attestation>> attest(std::string key) override;
  std::string authorities() const override { return authorities_; }
  settings::RemoteStoreSettings settings_in_pod(
      const std::filesystem::path& authorities) const override;
  async::Task<Keys> keys_for_pod() override;

  /// @param from the lowest level of a stop that cancels calls
  void stop_calls_by(core::CancelSource& run, core::StopLevel from);
  struct Call;
  async::Task<FoundKeys> keys();
  async::Task<net::Response> call(Call call);
  async::Task<net::Response> try_once(Call& call);
  /// Returns the headers of an object, with its checksum if the server has one. The status 404 is
  /// returned, not thrown.
  async::Task<net::Response> head_of(std::string key);
  async::Task<net::Request> signed_request(const Call& call);
  async::Task<> read_list(std::string folder, Query query, std::size_t max,
                          std::function<std::size_t(std::string_view)> take,
                          core::CancelSource* cancel);
  /// The bytes of a body that one request sends.
  struct BodyPart {
    const Body& body;
    std::uint64_t offset, size;
  };
  /// Sends a whole small object, or one part of a large one; returns its tag.
  async::Task<std::string> put_part(std::string key, Query query, BodyPart part,
                                    core::CancelSource* cancel);
  using WritePart = std::function<async::Task<std::string>(std::string upload, std::size_t part)>;
  /// Writes an object in parts; aborts the upload if a part fails.
  /// @param write_part writes a part, counted from 0, and returns its tag
  async::Task<> write_in_parts(std::string key, std::size_t count, WritePart write_part);
  std::string copy_source(const std::string& key) const;
  /// Returns false, without a copy, if the server does not support copies of parts.
  async::Task<bool> copy_in_parts(std::string from, std::string to, std::uint64_t bytes);
  using SignNumber = std::function<async::Task<std::string>(std::string number)>;
  async::Task<NumberedUrls> presigned_numbers(SignNumber sign, std::string_view before_number,
                                              char after_number, unsigned count);
  async::Task<> pause(async::Backoff& backoff, const std::string& why, core::CancelSource* cancel,
                      std::optional<std::chrono::seconds> wanted);
  core::EnvironmentError unreachable(const std::string& what,
                                     const net::TransportError& error) const;
  BucketIdentity identity() const;

  asio::io_context& loop_;
  BucketSettings settings_;
  async::RetryPolicy retry_policy_;
  CredentialSource credentials_;
  BucketAddress address_, pod_address_;
  std::string origin_of_keys_;
  std::string authorities_;  ///< PEM text, read once.
  net::HttpClient http_;
  ConnectionLimit limit_;
  bool has_ranges_ = true;             ///< False once a range was answered with the whole object.
  bool knows_checksums_ = true;        ///< False once a request for a checksum was refused.
  bool copies_parts_ = true;           ///< False once a copy of a part was refused.
  core::CancelSource* run_ = nullptr;  ///< See BlobStore::stop_calls_by().
  core::CancelSource stopped_;
  std::optional<core::CancelSource::Listener> listener_;
};

/// Returns the kind of stores with the addresses `s3://BUCKET[/PREFIX]`.
const Kind& kind();

}  // namespace pipeline::blobs::s3
