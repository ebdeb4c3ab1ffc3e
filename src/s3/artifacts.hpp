/// @file
/// Artifacts in a bucket by their content, `artifacts/ab/cdef...`, as in the store of this machine:
/// what is there is not sent again. For all in a process who send or fetch some, so that each goes
/// once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>

#include "async/single_flight.hpp"
#include "core/error.hpp"
#include "s3/bucket.hpp"

namespace pipeline::s3 {

/// An object is not what it should be.
class UnusableObject : public core::EnvironmentError {
 public:
  using core::EnvironmentError::EnvironmentError;
};

class Artifacts {
 public:
  /// Costs nothing before the bucket is first asked for.
  Artifacts(asio::io_context& loop, settings::ArtifactStoreSettings settings,
            async::RetryPolicy retry_policy = bucket_retries)
      : loop_(loop), settings_(std::move(settings)), retry_policy_(retry_policy), there_(loop) {}

  /// Throws InputError for an endpoint that is none.
  Bucket& bucket();
  const settings::ArtifactStoreSettings& settings() const { return settings_; }

  /// As Bucket::probe(), once: what it finds right is not looked at again.
  async::Task<> probe();

  /// The object's name; of a folder, which is a tar there, with `.tar`.
  static std::string key_of(const std::string& digest, bool is_tree);

  /// Sends the file or folder, as far as the bucket lacks it; its key.
  async::Task<std::string> send(std::string digest, std::filesystem::path path,
                                core::CancelSource* cancel);
  /// Another object becomes the artifact, on the server; not where that cannot be done: then it is
  /// sent by whoever needs it.
  async::Task<> adopt(std::string object, std::string digest, bool is_tree, std::uint64_t bytes);
  /// An object becomes a file or a folder here. What is in it is the caller's to compare, and what
  /// is there after a failure the caller's to remove. Throws UnusableObject for a folder that is
  /// none, and for what is larger than it should be.
  /// @param to a path where nothing is
  /// @param most_bytes of the file, or of all files of the folder
  /// @return the SHA-256 of the bytes as they came
  async::Task<std::string> receive(std::string object, std::filesystem::path to, bool is_tree,
                                   bool is_executable, std::uint64_t most_bytes,
                                   core::CancelSource* cancel);
  /// What the bucket has under this key is not what it should be: it is sent again.
  void invalidate(const std::string& key) {
    distrusted_.insert(key);
    there_.forget(key);
  }

 private:
  asio::io_context& loop_;
  settings::ArtifactStoreSettings settings_;
  async::RetryPolicy retry_policy_;
  std::optional<Bucket> bucket_;
  async::SingleFlight<bool> there_;  ///< What the bucket has, by key.
  std::set<std::string> distrusted_;
  bool is_probed_ = false;
};

bool is_executable_file(const std::filesystem::path& file);

}  // namespace pipeline::s3
