/// @file
/// The port to a remote store: blobs by key, kept by an S3-compatible server, in a shared folder,
/// or elsewhere. A new kind of store is a folder beside `s3/` with a class that implements
/// BlobStore and a Kind (kind.hpp), and its name in src/CMakeLists.txt. Each kind has to pass the
/// test tests/support/blob_conformance.hpp.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "async/retry_policy.hpp"
#include "async/task.hpp"
#include "blobs/transfer_plan.hpp"
#include "core/cancel.hpp"
#include "core/error.hpp"
#include "settings/remote_store.hpp"

namespace pipeline::blobs {

/// The retries of requests to stores, for about a minute. The first pauses are short, because an
/// overloaded server that answers 503 often answers the next request.
inline constexpr async::RetryPolicy store_retries{.first_pause = std::chrono::milliseconds(200),
                                                  .max_pause = std::chrono::milliseconds(10'000),
                                                  .max_tries = 12};

inline constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();

/// The store answered, and refused. If a store does not answer, a plain EnvironmentError is thrown.
class BlobError : public core::EnvironmentError {
 public:
  enum class Kind {
    missing_blob,
    missing_upload,
    /// This blob cannot be read or replaced, has other content than its key says, or has more than
    /// the 64 MiB of a text. The store's other blobs may be intact.
    damaged_blob,
    other
  };
  BlobError(Kind kind, const std::string& message, std::vector<std::string> advice = {})
      : core::EnvironmentError(message, std::move(advice)), kind_(kind) {}
  Kind kind() const { return kind_; }

 private:
  Kind kind_;
};

/// Content to upload; read in pieces, and again for a retry, by one thread at a time.
struct Body {
  std::uint64_t size = 0;
  /// Reads bytes at an offset and returns their number, which is 0 only at the end. Throws on
  /// failure.
  std::function<std::size_t(std::uint64_t offset, std::span<char> into)> read;
};
Body body_of(std::string text);

/// Returns the error for a blob that is too large to be read into memory as a text.
BlobError too_large(const std::string& key, const std::string& url);

/// A part of a blob, in bytes. If the blob ends within the range, the part ends there.
struct Range {
  std::uint64_t begin = 0, size = unlimited;
};

/// A small blob, and the tag that identifies this content of the key.
struct Tagged {
  std::string text, tag;
};

/// How long a lookup waits for a store that does not answer.
enum class Lookup {
  required,  ///< As long as all other calls.
  /// The caller can do without the blob, or asks again: 20 seconds at most, and if no server can be
  /// reached, only a few tries.
  optional,
};

/// A blob in a list of blobs.
struct Entry {
  std::string key;
  std::uint64_t size = 0;
  std::chrono::system_clock::time_point modified;  ///< By the clock of the store's machine.
};

/// A blob's description by the store's server (S3: the response to a HEAD request), without a
/// transfer of the blob.
struct Attestation {
  std::uint64_t size = 0;
  std::string tag;        ///< The ETag, without quotes.
  std::string crc64nvme;  ///< Of the whole blob, in base64; empty if the server keeps none.
};

/// An upload in parts that was begun, but neither completed nor aborted.
struct OpenUpload {
  std::string key, id;
  std::chrono::system_clock::time_point begun;  ///< By the clock of the store's machine.
};

/// Gives access to the store to pods, which have no access keys and see no files of this machine.
class PodAccess {
 public:
  virtual ~PodAccess() = default;

  enum class Method { read, write };
  /// Returns a URL that allows this request without access keys, for 7 days or until temporary
  /// access keys expire.
  virtual async::Task<std::string> presigned(Method method, std::string key) = 0;
  /// Many presigned URLs, split into their common text before and after a number, and one
  /// signature each.
  struct NumberedUrls {
    std::string before, after;  ///< URL: BEFORE NUMBER AFTER SIGNATURE.
    std::vector<std::string> signatures;
  };
  /// Returns the URLs by which the parts of one upload are written, from number 1.
  virtual async::Task<NumberedUrls> presigned_parts(std::string key, std::string upload,
                                                    unsigned count) = 0;
  /// Returns the URLs of the blobs `KEY1`, `KEY2`, ...
  virtual async::Task<NumberedUrls> presigned_series(Method method, std::string key,
                                                     unsigned count) = 0;

  /// URLs of blobs with any keys: BEFORE KEY AFTER SIGNATURE. All carry the same time of signing.
  struct KeyedUrls {
    std::string before, after;
    std::function<std::string(const std::string& key)> signature;
  };
  /// Returns the URLs by which blobs are read.
  virtual async::Task<KeyedUrls> presigned_reads() = 0;

  // Uploads in parts: the blob appears, as a whole, once its upload is completed.
  virtual async::Task<std::string> begin_upload(std::string key) = 0;  ///< Returns the upload's id.
  /// Completes the upload; a repeated call is not an error.
  /// @param tags the parts' tags in order, as the server returned them
  virtual async::Task<> complete_upload(std::string key, std::string upload,
                                        std::vector<std::string> tags) = 0;
  virtual async::Task<> abort_upload(std::string key, std::string upload) = 0;
  /// Returns the open uploads of all blobs. Returns none if the server does not list uploads, or
  /// the access keys do not permit a list (s3:ListBucketMultipartUploads).
  virtual async::Task<std::vector<OpenUpload>> open_uploads() = 0;
  /// Returns the server's description of a blob, or nothing if there is no such blob.
  virtual async::Task<std::optional<Attestation>> attest(std::string key) = 0;

  /// Returns the CA certificates with which pods verify the server, as PEM text; empty if the CAs
  /// of their own system suffice.
  virtual std::string authorities() const = 0;
  /// Returns the settings by which a program in a pod opens the store.
  /// @param authorities the file in the pod with authorities()
  virtual settings::RemoteStoreSettings settings_in_pod(
      const std::filesystem::path& authorities) const = 0;
  /// Access keys for a program in a pod. They must never be shown.
  struct Keys {
    std::map<std::string, std::string> variables;  ///< Environment variables with the keys.
    std::string origin;  ///< For messages: `the environment (AWS_ACCESS_KEY_ID)`.
    std::optional<std::chrono::system_clock::time_point> expiry;  ///< Unset if it is not known.
  };
  /// Returns the access keys of this process.
  virtual async::Task<Keys> keys_for_pod() = 0;
};

/// A remote store. A key is `a/b/c`: names that consist of letters, digits and `-._=+`, are not `.`
/// or `..`, and do not begin with `.pipe-`. No key is the folder of another key. All functions
/// throw BlobError, and EnvironmentError if the store cannot be reached. Callbacks run on the
/// loop's thread.
class BlobStore {
 public:
  virtual ~BlobStore() = default;

  /// Returns the store's address for messages: `s3://team/pipe`.
  virtual std::string url() const = 0;
  /// Makes `run` cancel the calls that are made without a CancelSource of their own: probe() at any
  /// stop of `run`, the others at an immediate stop. `run` must outlive this object. A second call
  /// replaces the source for calls from then on; no cancelled call may still be in progress.
  virtual void stop_calls_by(core::CancelSource& /*run*/) {}
  /// Returns the access for pods; null if they cannot reach the store by presigned URLs
  /// (Kind::can_presign).
  virtual PodAccess* pod_access() { return nullptr; }
  /// Returns the size in bytes up to which the store can copy() a blob.
  virtual std::uint64_t max_copy_bytes() const { return unlimited; }

  /// Checks the access by writing, reading and removing a small blob. Throws EnvironmentError with
  /// the missing permission.
  virtual async::Task<> probe() = 0;
  virtual async::Task<bool> has(std::string key) = 0;
  /// Writes a blob. Readers see the old content or the new content, never a part.
  virtual async::Task<> put(std::string key, Body body, core::CancelSource* cancel = nullptr) = 0;
  /// Reads a range of a blob. Each byte is passed once and in order, even after interruptions.
  virtual async::Task<> get(std::string key, Range range,
                            std::function<void(std::string_view)> on_bytes,
                            core::CancelSource* cancel = nullptr) = 0;
  /// Returns the size of a blob of which several ranges can be read at a time; nothing for a blob
  /// that is better read as a whole.
  virtual async::Task<std::optional<std::uint64_t>> size_for_ranges(std::string /*key*/) {
    co_return std::nullopt;
  }
  /// Returns how many ranges to read at a time at present, in view of the store's recent speed and
  /// errors.
  virtual std::size_t connection_limit() const { return max_connections; }
  /// Returns a blob with its tag, or nothing if it does not exist. Throws BlobError
  /// (damaged_blob) above 64 MiB.
  virtual async::Task<std::optional<Tagged>> find_tagged(std::string key,
                                                         core::CancelSource* cancel = nullptr,
                                                         Lookup lookup = Lookup::required) = 0;
  /// Writes a small blob if the present blob has this tag, or, for an empty tag, if there is none.
  /// Callers never write such a key by put() as well. Returns the new tag, or nothing
  /// if the condition does not hold. Nothing may also be returned after a write: if the response to
  /// the first request was lost, the retry finds the blob that this call has written. Servers
  /// without conditional writes, such as rclone's, write the blob in any case; the returned tag is
  /// then empty.
  virtual async::Task<std::optional<std::string>> put_if(std::string key, std::string text,
                                                         std::string tag) = 0;
  /// Returns all blobs whose keys begin with the prefix. Throws EnvironmentError for more than a
  /// million.
  virtual async::Task<std::vector<Entry>> entries(std::string prefix) = 0;
  /// Returns the names of the folders directly below one: `a` and `b` for the keys `FOLDER/a/x` and
  /// `FOLDER/b/y/z`.
  virtual async::Task<std::vector<std::string>> folders(std::string folder) = 0;
  /// Removes a blob; a missing blob is not an error.
  virtual async::Task<> remove(std::string key) = 0;
  /// Copies a blob within the store, without a transfer to this machine.
  /// @param bytes size of the blob; 0 if it is not known. A large blob of known size is copied in
  ///        parts of the size in which a pod writes them, so that its tag stays the same
  virtual async::Task<> copy(std::string from, std::string to, std::uint64_t bytes = 0) = 0;

  /// Returns the keys of entries().
  async::Task<std::vector<std::string>> list(std::string prefix);
  /// Returns a blob; throws BlobError (damaged_blob) above 64 MiB.
  async::Task<std::string> get_text(std::string key);
  /// Returns the text of find_tagged().
  async::Task<std::optional<std::string>> find_text(std::string key,
                                                    core::CancelSource* cancel = nullptr,
                                                    Lookup lookup = Lookup::required);
};

}  // namespace pipeline::blobs
