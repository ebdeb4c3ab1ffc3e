/// @file
/// Artifacts in a remote store, addressed by the SHA-256 of their content as in this machine's
/// store: `artifacts/ab/cdef...`. Artifacts that the remote store already has are not sent again.
/// One object serves the whole process, so that each artifact is transferred once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "async/single_flight.hpp"
#include "blobs/key_set.hpp"
#include "blobs/kind.hpp"
#include "blobs/store_lease.hpp"

namespace pipeline::blobs {

/// Thrown for a blob with unexpected content.
class UnusableBlob : public core::EnvironmentError {
 public:
  using core::EnvironmentError::EnvironmentError;
};

/// A `key` is that of a blob in the store, a `digest` the SHA-256 of an artifact in hex, and
/// `is_tree` says that the artifact is a folder.
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
        sending_(loop) {}

  /// Opens the store at the first call. Throws InputError for invalid settings.
  BlobStore& store();
  const std::string& url() const { return settings_.url; }

  /// Same as BlobStore::probe(); a success is remembered and not checked again.
  async::Task<> probe();

  /// Holds a lease from the first use of an artifact until release(), so that no cleaning removes
  /// the artifacts that the run uses. The caller awaits release() before the destruction.
  void hold_for(std::string run, LeaseTimes times = {});
  /// Calls StoreLease::use() for an artifact that a record in the store refers to. Returns true
  /// without a lease.
  async::Task<bool> use(std::string key);
  /// Ends the lease of hold_for().
  async::Task<> release();

  /// Returns the artifact's key; a folder is stored as a tar, with the suffix `.tar`.
  static std::string key_of(const std::string& digest, bool is_tree);

  /// Returns true if the store has the blob under this key.
  async::Task<bool> has(std::string key);
  /// Uploads the file or folder unless the store has it; returns its key.
  async::Task<std::string> send(std::string digest, std::filesystem::path path,
                                core::CancelSource* cancel);
  /// Copies another blob to the artifact's key, within the store. Does nothing if the store cannot
  /// copy a blob of this size; the artifact is then uploaded when it is needed.
  async::Task<> adopt(std::string key, std::string digest, bool is_tree, std::uint64_t bytes);
  /// Returns false with the option `verify: driver`: this process then compares the artifacts that
  /// pods have sent with their digests. Otherwise everyone who downloads an artifact compares it.
  bool is_verified_by_consumers() const { return settings_.option("verify") != "driver"; }
  /// Returns true if a result of another machine is not downloaded before its content is needed.
  /// This holds by default for a step that runs elsewhere (`of_elsewhere`), and with
  /// `verify: consumer` for any step.
  bool leaves_results_in_store(bool of_elsewhere) const {
    return of_elsewhere ? is_verified_by_consumers() : settings_.option("verify") == "consumer";
  }
  /// Returns the store's settings as JSON, for model::Elsewhere.
  std::string settings_json() const;
  /// The report of a pod about a blob that it has sent.
  struct Sent {
    std::uint64_t bytes = 0;
    std::vector<std::string> tags;  ///< See PodAccess::complete_upload().
    std::string crc64nvme;          ///< See Attestation; empty if it is not known.
  };
  /// Makes a blob that a pod has sent the artifact of its digest, without a transfer, if the server
  /// attests that the blob is what was sent. Returns false if the blob has to be received and
  /// compared after all, because the server cannot copy it, or has other content under this digest.
  /// Throws BlobError (damaged_blob) if the server attests something else. A copy is needed,
  /// because the pod's URL was signed before the digest was known, and could be used to replace the
  /// blob later.
  async::Task<bool> keep(std::string key, std::string digest, bool is_tree, Sent sent);
  /// Says whether the store has an artifact that a pod has, too.
  enum class Presence {
    absent,
    same,    ///< The pod has proven that it has this content.
    unknown  ///< There is a blob, but the server says too little about it to compare.
  };
  /// Compares a pod's report about its content with the artifact of that digest, and includes the
  /// artifact in the lease. The digest alone is not a proof, because a step could then obtain an
  /// artifact by naming its digest: the blob's tag has to be made of the MD5s of the pod's parts.
  /// @param sent its tags are the MD5s of the parts
  async::Task<Presence> compare(std::string digest, bool is_tree, Sent sent);
  /// Begins an upload by which a pod writes directly to the artifact's key. Returns the upload's
  /// id; empty if another pod of this process is already uploading the artifact.
  async::Task<std::string> begin_upload(std::string digest, bool is_tree);
  /// Completes an upload of begin_upload(); a repeated call is not an error. The caller knows that
  /// the store has no artifact of this digest. Throws BlobError (damaged_blob) if the server
  /// attests something else than was sent; the next upload of the artifact then replaces the blob.
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
    forget(key);
  }

 private:
  /// Calls `make`, which stores the blob, unless the store has it or another caller is storing it.
  async::Task<> send_once(std::string key, const std::function<async::Task<bool>()>& make,
                          core::CancelSource* cancel);
  void note_stored(const std::string& key);
  void forget(const std::string& key) {
    sending_.forget(key);
    stored_.erase(key);
  }

  asio::io_context& loop_;
  settings::RemoteStoreSettings settings_;
  async::RetryPolicy retry_policy_;
  core::CancelSource* run_;
  std::unique_ptr<BlobStore> store_;
  std::unique_ptr<StoreLease> lease_;
  async::SingleFlight<bool> sending_;  ///< By key. Holds no results, see stored_.
  KeySet stored_;                      ///< Keys of blobs that the store has; not all of them.
  std::set<std::string> damaged_;      ///< Keys.
  std::set<std::string> uploaded_;     ///< Keys whose upload has begun and not ended.
  bool is_probed_ = false;
};

/// Returns true if the owner of the file may execute it.
bool is_executable_file(const std::filesystem::path& file);
/// Returns the bytes of a file, or of a folder as a tar. Throws EnvironmentError.
Body body_of_artifact(const std::filesystem::path& path);

}  // namespace pipeline::blobs
