/// @file
/// One bucket of an S3-compatible server: objects in and out as streams, large ones in parts,
/// whatever may pass tried again.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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

/// What is to be sent; read in pieces, and again for a second try.
struct Body {
  std::uint64_t size = 0;
  std::function<std::size_t(std::uint64_t offset, std::span<char> into)>
      read;  ///< 0 only at its end; throws where it cannot.
};
Body body_of(std::string text);

class Bucket {
 public:
  /// Nothing is asked before the first call. Throws InputError for an endpoint that is none.
  Bucket(asio::io_context& loop, settings::ArtifactStoreSettings settings,
         async::RetryPolicy retry_policy = bucket_retries);
  ~Bucket();

  /// With what the environment or ~/.aws says where they say nothing: endpoint and region.
  const settings::ArtifactStoreSettings& settings() const { return settings_; }
  /// Those that it uses. Throws as CredentialSource::find().
  async::Task<FoundKeys> keys();

  /// Writes, reads and removes a small object. Throws EnvironmentError that says what is missing,
  /// and of whom.
  async::Task<> probe();

  // Keys are without the settings' prefix. All throw S3Error, and EnvironmentError where the server
  // cannot be reached.
  async::Task<bool> has(std::string key);
  /// In parts where it is large.
  async::Task<> put(std::string key, Body body, core::CancelSource* cancel = nullptr);
  /// All bytes, each once and in order, whatever is cut on the way.
  async::Task<> get(std::string key, std::function<void(std::string_view)> on_bytes,
                    core::CancelSource* cancel = nullptr);
  /// Of at most 64 MiB; throws EnvironmentError for more.
  async::Task<std::string> get_text(std::string key);
  /// Of a small object that may not be there, for those who can do without: asked for with less
  /// patience.
  async::Task<std::optional<std::string>> find_text(std::string key,
                                                    core::CancelSource* cancel = nullptr);
  /// What is not there is fine.
  async::Task<> remove(std::string key);
  /// On the server; at most 5 GiB.
  async::Task<> copy(std::string from, std::string to);

  // An object that comes in parts; it is there, whole, once it is completed.
  async::Task<std::string> begin_upload(std::string key);  ///< Its id.
  /// @param tags of the parts, in their order, as the server has answered them. Done twice it is
  /// fine.
  async::Task<> complete_upload(std::string key, std::string id, std::vector<std::string> tags);
  async::Task<> abort_upload(std::string key, std::string id);

  /// A URL that lets a pod do this, without keys, for 7 days, or until temporary keys run out.
  async::Task<std::string> presigned(std::string method, std::string key, Query query = {});
  /// Of many part numbers of one upload: what all have in common, up to the number, what comes
  /// between, and a signature each.
  struct PartUrls {
    std::string before, after;  ///< BEFORE NUMBER AFTER SIGNATURE
    std::vector<std::string> signatures;
  };
  async::Task<PartUrls> presigned_parts(std::string key, std::string id, unsigned count);

 private:
  struct Call;
  async::Task<net::Response> call(Call call);
  async::Task<net::Response> try_once(Call& call);
  async::Task<std::string> put_part(std::string key, Query query, const Body& body,
                                    std::uint64_t offset, std::uint64_t size,
                                    core::CancelSource* cancel);
  async::Task<> pause(unsigned tries, const std::string& why, core::CancelSource* cancel);
  core::EnvironmentError unreachable(const std::string& what,
                                     const net::TransportError& error) const;
  Where where() const;

  asio::io_context& loop_;
  settings::ArtifactStoreSettings settings_;
  async::RetryPolicy retry_policy_;
  CredentialSource source_;
  Address address_, pod_address_;
  std::string origin_of_keys_;
  std::string ca_;  ///< Read once.
  net::HttpClient http_;
};

}  // namespace pipeline::s3
