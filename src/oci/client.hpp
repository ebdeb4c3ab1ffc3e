/// @file
/// Pulls images from registries (github.com/opencontainers/distribution-spec), without an engine.
/// The logins are those of `docker login`; they are sent to the registry, and to the host that it
/// names for tokens. Connections use TLS, except those to this machine's loopback addresses.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "async/retry_policy.hpp"
#include "async/task.hpp"
#include "core/cancel.hpp"
#include "docker/credentials.hpp"
#include "net/http.hpp"
#include "oci/challenge.hpp"
#include "oci/manifest.hpp"

namespace pipeline::oci {

/// An image of a registry.
struct Image {
  std::string manifest;        ///< Digest of the manifest of its platform.
  nlohmann::json description;  ///< See describe().
  std::vector<Blob> layers;    ///< The lowest first.
};

/// A repository of a registry, with a tag or a digest in it.
struct Repository {
  std::string registry;  ///< The result of docker::registry_of().
  std::string name;      ///< `library/debian`.
  std::string tag;       ///< `12`, or a digest.
  std::string url;       ///< `https://registry-1.docker.io/v2/library/debian/`.
};

/// Completes a reference as docker's own client does: without a registry, it is on Docker Hub.
Repository repository_of(const std::string& reference);

/// Pulls images. Used only from the loop's thread.
class Client {
 public:
  explicit Client(asio::io_context& loop, async::RetryPolicy retries = default_retries)
      : http_(loop), retries_(retries) {}

  /// Finds the image that the reference names. Throws EnvironmentError with advice.
  /// @param platform `OS/ARCHITECTURE[/VARIANT]`; empty: that of this machine
  async::Task<Image> find(std::string reference, std::string platform, core::CancelSource& cancel);

  /// Downloads a layer, packed as in the registry, into a file, and compares it with its digest.
  /// Throws EnvironmentError with advice.
  async::Task<> download(std::string reference, Blob blob, std::filesystem::path file,
                         core::CancelSource& cancel);

  /// Returns the reasons for which logins could not be read.
  const std::set<std::string>& notices() const { return notices_; }

  static constexpr async::RetryPolicy default_retries{
      .first_pause = std::chrono::milliseconds(500),
      .max_pause = std::chrono::milliseconds(10'000),
      .max_tries = 5};

 private:
  /// The receiver of a body; `begin` is called before each try.
  struct Sink {
    std::function<void()> begin;
    std::function<void(std::string_view)> write;
  };

  async::Task<> get(const Repository& repository, std::string path, std::string accept,
                    const Sink& sink, core::CancelSource& cancel);
  async::Task<net::Response> try_once(const Repository& repository, std::string url,
                                      std::string accept, const Sink& sink,
                                      core::CancelSource& cancel);
  async::Task<> log_in(const Repository& repository, const net::Response& refused,
                       core::CancelSource& cancel);
  async::Task<std::string> token_of(const Repository& repository, Challenge challenge,
                                    docker::Credentials login, core::CancelSource& cancel);
  /// Returns the bytes of a manifest or a configuration.
  /// @param digest compared with the bytes, unless empty
  async::Task<std::string> text_of(const Repository& repository, std::string path,
                                   std::string accept, std::string digest,
                                   core::CancelSource& cancel);

  net::HttpClient http_;
  const async::RetryPolicy retries_;
  std::map<std::string, std::string> authorizations_;  ///< Keyed by Repository::url.
  std::set<std::string> notices_;
};

}  // namespace pipeline::oci
