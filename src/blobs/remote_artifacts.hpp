/// @file
/// Artifacts in a remote store by their content, `artifacts/ab/cdef...`, as in this machine's
/// store. Artifacts that the remote store has are not sent again. One object serves the whole
/// process, so that each artifact is transferred once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "async/single_flight.hpp"
#include "blobs/kind.hpp"
#include "blobs/store_lease.hpp"

namespace pipeline::blobs {

/// A blob has unexpected content.
class UnusableBlob : public core::EnvironmentError {
 public:
  using core::EnvironmentError::EnvironmentError;
};

class RemoteArtifacts {
 public:
  /// Makes no request before the store is first used.
  /// @param run see BlobStore::stop_calls_by()
  RemoteArtifacts(asio::io_context& loop, settings::RemoteStoreSettings settings,
                  async::RetryPolicy retry_policy = store_retries,
                  core::CancelSource* run = nullptr)
      : loop_(loop),
        settings_(std::move(settings)),
        retry_policy_(retry_policy),
        run_(run),
        stored_(loop) {}

  /// Throws InputError for invalid settings.
  BlobStore& store();
  const std::string& url() const { return settings_.url; }

  /// Same as BlobStore::probe(); a success is remembered and not checked again.
  async::Task<> probe();

  /// Holds a lease from the first use of an artifact until release(), so that no cleaning removes
  /// what the run uses. The caller awaits release() before the destruction.
  void hold_for(std::string run, LeaseTimes times = {});
  /// Same as StoreLease::use(), for an artifact that a record names; true without a lease.
  async::Task<bool> use(std::string key);
  async::Task<> release();

  /// Returns the artifact's key; a folder is stored as a tar, with the suffix `.tar`.
  static std::string key_of(const std::string& digest, bool is_tree);

  /// Returns true if the store has the blob under this key.
  async::Task<bool> has(std::string key);
  /// Uploads the file or folder unless the store has it; returns its key.
  async::Task<std::string> send(std::string digest, std::filesystem::path path,
                                core::CancelSource* cancel);
  /// Copies another blob to the artifact's key, within the store. Does nothing if the store cannot;
  /// the artifact is then uploaded when it is needed.
  async::Task<> adopt(std::string key, std::string digest, bool is_tree, std::uint64_t bytes);
  /// Returns true if a folder or file that a pod has sent is not compared here with its digest, but
  /// by all who take it: unless the option is `verify: driver`.
  bool is_verified_by_consumers() const { return settings_.option("verify") != "driver"; }
  /// Returns true if a result of another machine stays in the store until its content is needed:
  /// by default that of a step which runs elsewhere, with `verify: consumer` any.
  bool keeps_results(bool of_elsewhere) const {
    return of_elsewhere ? is_verified_by_consumers() : settings_.option("verify") == "consumer";
  }
  /// Returns the store's settings as text, for model::Elsewhere.
  std::string place() const;
  /// The report of a pod about a blob that it has sent.
  struct Sent {
    std::uint64_t bytes = 0;
    std::vector<std::string> tags;  ///< See PodAccess::complete_upload().
    std::string crc64nvme;          ///< See Attestation; empty if it is not known.
  };
  /// Makes another blob the artifact under its digest, without a transfer, if the server attests
  /// that the blob is what was sent. Returns false if it has to be received and compared
  /// after all: the server cannot copy it, or has other content under this digest.
  /// Throws BlobError (damaged_blob) if the server attests something else. The server copies the
  /// blob, because its key is signed before its digest is known, and because the pod's URL for the
  /// whole blob could replace it later.
  async::Task<bool> keep(std::string key, std::string digest, bool is_tree, Sent sent);
  /// Whether the store has an artifact that a pod has, too.
  enum class Presence {
    absent,
    same,    ///< The pod has proven that it has this content.
    unknown  ///< There is a blob under the digest, of which the server says too little to compare.
  };
  /// Compares what a pod says of its content with the artifact under its digest, and holds that. A
  /// digest alone is no proof, or a step could obtain an artifact by naming it: the tag of the blob
  /// has to be made of the MD5s of the pod's parts.
  /// @param sent its tags are the MD5s of the parts
  async::Task<Presence> compare(std::string digest, bool is_tree, Sent sent);
  /// Begins an upload by which a pod writes the artifact itself. Returns its id; empty if another
  /// pod of this process has such an upload.
  async::Task<std::string> begin_upload(std::string digest, bool is_tree);
  /// Completes such an upload, if it is not completed. The caller knows that the store has no
  /// artifact under the digest. Throws BlobError (damaged_blob) if the server attests something
  /// else than was sent; the artifact is then replaced by the next that is sent.
  async::Task<> complete_upload(std::string upload, std::string digest, bool is_tree, Sent sent);
  /// Aborts an upload to any key.
  async::Task<> abort_upload(std::string key, std::string upload);
  /// The form in which receive() leaves a blob.
  enum class Form { file, executable, tree };
  static Form form_of(bool is_tree, bool is_executable) {
    return is_tree ? Form::tree : is_executable ? Form::executable : Form::file;
  }
  /// Downloads a blob to a file or a folder. The caller compares the content, and removes what was
  /// written before a failure. Throws UnusableBlob for a folder that is not a valid tar, and for a
  /// blob that exceeds its limit.
  /// @param to a path that does not exist
  /// @param max_bytes limit for the file, or for all files of the folder
  /// @return the SHA-256 of the received bytes
  async::Task<std::string> receive(std::string key, std::filesystem::path to, Form form,
                                   std::uint64_t max_bytes, core::CancelSource* cancel);
  /// Records that the blob under this key is damaged, so that it is uploaded again.
  void invalidate(const std::string& key) {
    damaged_.insert(key);
    stored_.forget(key);
  }

 private:
  asio::io_context& loop_;
  settings::RemoteStoreSettings settings_;
  async::RetryPolicy retry_policy_;
  core::CancelSource* run_;
  std::unique_ptr<BlobStore> store_;
  std::unique_ptr<StoreLease> lease_;
  async::SingleFlight<bool> stored_;  ///< Whether the store has a blob, by key.
  std::set<std::string> damaged_;     ///< Keys.
  std::set<std::string> uploaded_;    ///< Keys of begin_upload() that are not ended.
  bool is_probed_ = false;
};

bool is_executable_file(const std::filesystem::path& file);

}  // namespace pipeline::blobs
