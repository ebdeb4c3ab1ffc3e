/// @file
/// Artifacts in a bucket by their content, `artifacts/ab/cdef...`, as in this machine's store.
/// Artifacts that the bucket has are not sent again. One object serves the whole process, so that
/// each artifact is transferred once.
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

/// An object has unexpected content.
class UnusableObject : public core::EnvironmentError {
 public:
  using core::EnvironmentError::EnvironmentError;
};

class BucketArtifacts {
 public:
  /// Makes no request before the bucket is first used.
  BucketArtifacts(asio::io_context& loop, settings::ArtifactStoreSettings settings,
                  async::RetryPolicy retry_policy = bucket_retries)
      : loop_(loop), settings_(std::move(settings)), retry_policy_(retry_policy), there_(loop) {}

  /// Throws InputError for an invalid endpoint.
  Bucket& bucket();
  const settings::ArtifactStoreSettings& settings() const { return settings_; }

  /// Same as Bucket::probe(); a success is remembered and not checked again.
  async::Task<> probe();

  /// Returns the object's key; a folder is stored as a tar, with the suffix `.tar`.
  static std::string key_of(const std::string& digest, bool is_tree);

  /// Returns true if the bucket has the object under this key.
  async::Task<bool> has(std::string key);
  /// Uploads the file or folder unless the bucket has it; returns its key.
  async::Task<std::string> send(std::string digest, std::filesystem::path path,
                                core::CancelSource* cancel);
  /// Copies another object to the artifact's key, on the server. Does nothing if the server cannot;
  /// the artifact is then uploaded when it is needed.
  async::Task<> adopt(std::string object, std::string digest, bool is_tree, std::uint64_t bytes);
  /// Downloads an object to a file or a folder. The caller compares the content, and removes what
  /// is there after a failure. Throws UnusableObject for a folder that is no valid tar, and for an
  /// object that exceeds its limit.
  /// @param to a path that does not exist
  /// @param most_bytes limit for the file, or for all files of the folder
  /// @return the SHA-256 of the received bytes
  async::Task<std::string> receive(std::string object, std::filesystem::path to, bool is_tree,
                                   bool is_executable, std::uint64_t most_bytes,
                                   core::CancelSource* cancel);
  /// Records that the object under this key is damaged, so that it is uploaded again.
  void invalidate(const std::string& key) {
    distrusted_.insert(key);
    there_.forget(key);
  }

 private:
  asio::io_context& loop_;
  settings::ArtifactStoreSettings settings_;
  async::RetryPolicy retry_policy_;
  std::optional<Bucket> bucket_;
  async::SingleFlight<bool> there_;  ///< Whether the bucket has an object, by key.
  std::set<std::string> distrusted_;
  bool is_probed_ = false;
};

bool is_executable_file(const std::filesystem::path& file);

}  // namespace pipeline::s3
