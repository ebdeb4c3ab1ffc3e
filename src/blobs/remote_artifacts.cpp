#include "blobs/remote_artifacts.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <exception>
#include <memory>
#include <optional>

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <nlohmann/json.hpp>

#include "blobs/ranged_read.hpp"
#include "core/base64.hpp"
#include "core/digest.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/free_room.hpp"
#include "core/log.hpp"
#include "file_tree/content.hpp"
#include "file_tree/unpack.hpp"

namespace pipeline::blobs {

namespace fs = std::filesystem;

namespace {

/// Limits the number of a folder's entries: 100,000, and one more for every 64 bytes of its
/// announced size. Without a limit, empty files could fill the file system's table.
constexpr std::uint64_t max_small_entries = 100'000, bytes_of_entry = 64;
/// Maximum number of keys that are known to be stored. The store is asked for others each time.
constexpr std::size_t max_remembered = 20'000;

/// Returns the bytes of 32 hexadecimal digits, as an MD5 is written; nothing for another text.
std::optional<std::string> md5_of(std::string_view hex) {
  if (hex.size() != 32) return std::nullopt;
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    unsigned value = 0;
    const auto* end = hex.data() + i + 2;
    const auto read = std::from_chars(hex.data() + i, end, value, 16);
    if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
    bytes += static_cast<char>(value);
  }
  return bytes;
}

/// Returns whether an object with this tag was made of these parts; nothing if the tags are not
/// MD5s, as for encrypted objects. Amazon's server and most others give an object of parts the MD5
/// of the parts' MD5s as its tag: `HEX-COUNT`.
std::optional<bool> is_made_of(std::string_view tag, const std::vector<std::string>& tags) {
  const auto dash = tag.find('-');
  std::string all;
  for (std::string_view part : tags) {
    while (part.starts_with('"')) part.remove_prefix(1);
    while (part.ends_with('"')) part.remove_suffix(1);
    const auto sum = md5_of(part);
    if (!sum) return std::nullopt;
    all += *sum;
  }
  const auto given = md5_of(tag.substr(0, dash));
  if (!given || (dash == tag.npos && tags.size() != 1)) return std::nullopt;
  if (dash == tag.npos) return *given == all;
  if (tag.substr(dash + 1) != std::to_string(tags.size())) return false;
  std::array<unsigned char, EVP_MAX_MD_SIZE> sum{};
  unsigned length = 0;
  EVP_Digest(all.data(), all.size(), sum.data(), &length, EVP_md5(), nullptr);
  return *given == std::string(reinterpret_cast<const char*>(sum.data()), length);
}

/// Returns the CRC of an Attestation as bytes; nothing if there is none. A server that cannot
/// compute this CRC, such as moto without its library, writes a sum of another length in its place.
std::optional<std::string> crc_of(std::string_view base64) {
  auto sum = core::decode_base64(base64);
  if (sum && sum->size() != sizeof(std::uint64_t)) sum.reset();
  return sum;
}

/// Returns true if both sums are known, and differ.
bool is_other_sum(std::string_view a, std::string_view b) {
  const auto sum_a = crc_of(a), sum_b = crc_of(b);
  return sum_a && sum_b && sum_a != sum_b;
}

/// Returns true unless the server's description contradicts the pod's report.
bool is_what_was_sent(const Attestation& found, const RemoteArtifacts::Sent& sent) {
  return found.size == sent.bytes && !is_other_sum(found.crc64nvme, sent.crc64nvme) &&
         is_made_of(found.tag, sent.tags).value_or(true);
}

/// Returns true if the pod has proven that it has the content: it knows the MD5s of the parts, of
/// which the server has made the blob's tag.
bool is_proven(const Attestation& found, const RemoteArtifacts::Sent& sent) {
  return found.size == sent.bytes && !is_other_sum(found.crc64nvme, sent.crc64nvme) &&
         is_made_of(found.tag, sent.tags).value_or(false);
}

BlobError not_what_was_sent(const std::string& url, const std::string& key,
                            const Attestation& found) {
  return {BlobError::Kind::damaged_blob,
          url + " has other content under " + key +
              " than was sent: " + std::to_string(found.size) + " bytes, ETag " + found.tag +
              (found.crc64nvme.empty() ? "" : ", CRC64NVME " + found.crc64nvme)};
}

/// Returns false also if the server says too little to decide. Equal CRCs are not enough: anyone
/// who knows the CRC of an artifact could make other content with that CRC, and obtain the
/// artifact.
bool is_same_content(const Attestation& a, const Attestation& b) {
  return a.size == b.size && a.tag == b.tag && md5_of(a.tag.substr(0, a.tag.find('-'))) &&
         !is_other_sum(a.crc64nvme, b.crc64nvme);
}

}  // namespace

bool is_executable_file(const fs::path& file) {
  struct stat status {};
  return ::stat(file.c_str(), &status) == 0 && (status.st_mode & S_IXUSR);
}

Body body_of_artifact(const fs::path& path) {
  auto content = std::make_shared<const file_tree::Content>(  // Shared because a Body is copied.
      fs::is_directory(path) ? file_tree::Content(path, file_tree::scan_tree(path))
                             : file_tree::Content(path));
  Body body;
  body.size = content->size();
  body.read = [content](std::uint64_t offset, std::span<char> into) {
    return content->read(offset, into);
  };
  return body;
}

BlobStore& RemoteArtifacts::store() {
  if (store_) return *store_;
  store_ = open(loop_, settings_, retry_policy_);
  if (run_) store_->stop_calls_by(*run_);
  return *store_;
}

async::Task<> RemoteArtifacts::probe() {
  if (is_probed_) co_return;
  co_await store().probe();
  is_probed_ = true;
}

void RemoteArtifacts::hold_for(std::string run, LeaseTimes times) {
  const auto on_lost = [this](const std::string& key) { forget(key); };
  lease_ = std::make_unique<StoreLease>(loop_, open(loop_, settings_, retry_policy_),
                                        std::move(run), run_, on_lost, times);
}

async::Task<bool> RemoteArtifacts::use(std::string key) {
  if (!lease_) co_return true;
  const bool is_kept = co_await lease_->use(key);
  if (!is_kept) forget(key);
  co_return is_kept;
}

async::Task<> RemoteArtifacts::release() {
  const auto lease = std::move(lease_);
  if (lease) co_await lease->end();
}

std::string RemoteArtifacts::key_of(const std::string& digest, bool is_tree) {
  return "artifacts/" + digest.substr(0, 2) + "/" + digest.substr(2) + (is_tree ? ".tar" : "");
}

async::Task<bool> RemoteArtifacts::has(std::string key) {
  if (damaged_.contains(key)) co_return false;
  if (stored_.contains(key)) co_return true;
  co_await use(key);
  const bool is_stored = co_await store().has(key);
  if (is_stored) note_stored(key);
  co_return is_stored;
}

void RemoteArtifacts::note_stored(const std::string& key) {
  if (stored_.size() < max_remembered) stored_.insert(key);
}

async::Task<> RemoteArtifacts::send_once(std::string key,
                                         const std::function<async::Task<bool>()>& make,
                                         core::CancelSource* cancel) {
  if (stored_.contains(key)) co_return;
  co_await sending_.get(key, make, cancel);
  if (!sending_.find(key)) co_return;  // forget() was called meanwhile.
  note_stored(key);
  sending_.forget(key);
}

async::Task<std::string> RemoteArtifacts::send(std::string digest, fs::path path,
                                               core::CancelSource* cancel) {
  const auto key = key_of(digest, fs::is_directory(path));
  const std::function<async::Task<bool>()> make = [&]() -> async::Task<bool> {
    co_await use(key);
    if (!damaged_.contains(key)) {
      const bool is_stored = co_await store().has(key);
      if (is_stored) co_return true;
    }
    auto body = body_of_artifact(path);
    co_await store().put(key, std::move(body), cancel);
    damaged_.erase(key);
    co_return true;
  };
  co_await send_once(key, make, cancel);
  co_return key;
}

async::Task<> RemoteArtifacts::adopt(std::string key, std::string digest, bool is_tree,
                                     std::uint64_t bytes) {
  const auto to = key_of(digest, is_tree);
  if (bytes > store().max_copy_bytes()) co_return;
  const std::function<async::Task<bool>()> make = [&]() -> async::Task<bool> {
    co_await use(to);
    co_await store().copy(key, to, bytes);
    damaged_.erase(to);
    co_return true;
  };
  try {
    co_await send_once(to, make, nullptr);
  } catch (const BlobError& error) {
    core::log::info(error.what());
  }
}

std::string RemoteArtifacts::settings_json() const { return settings::to_json(settings_).dump(); }

async::Task<bool> RemoteArtifacts::keep(std::string key, std::string digest, bool is_tree,
                                        Sent sent) {
  auto* pods = store().pod_access();
  if (!pods || sent.bytes > store().max_copy_bytes()) co_return false;
  const auto found = co_await pods->attest(key);
  if (!found) throw BlobError(BlobError::Kind::missing_blob, store().url() + " has lost " + key);
  if (!is_what_was_sent(*found, sent)) throw not_what_was_sent(store().url(), key, *found);
  const auto to = key_of(digest, is_tree);
  co_await use(to);
  if (!damaged_.contains(to)) {
    const auto existing = co_await pods->attest(to);
    if (existing && is_same_content(*existing, *found)) co_return true;
    if (existing) co_return false;
  }
  std::optional<BlobError> refused;
  try {
    co_await store().copy(key, to, sent.bytes);
  } catch (const BlobError& error) {
    if (error.kind() == BlobError::Kind::missing_blob) throw;
    refused = error;
  }
  if (refused) {
    core::log::info(refused->what());
    co_return false;
  }
  const auto copied = co_await pods->attest(to);
  if (!copied || copied->size != sent.bytes || is_other_sum(copied->crc64nvme, sent.crc64nvme))
    throw BlobError(BlobError::Kind::damaged_blob, store().url() + " could not copy " + key);
  damaged_.erase(to);
  note_stored(to);
  co_return true;
}

async::Task<RemoteArtifacts::Presence> RemoteArtifacts::compare(std::string digest, bool is_tree,
                                                                Sent sent) {
  const auto key = key_of(digest, is_tree);
  co_await use(key);
  if (damaged_.contains(key)) co_return Presence::absent;
  const auto found = co_await store().pod_access()->attest(key);
  if (!found) co_return Presence::absent;
  if (!is_proven(*found, sent)) co_return Presence::unknown;
  note_stored(key);
  co_return Presence::same;
}

async::Task<std::string> RemoteArtifacts::begin_upload(std::string digest, bool is_tree) {
  const auto key = key_of(digest, is_tree);
  std::string upload;
  if (!uploaded_.insert(key).second) co_return upload;
  std::exception_ptr failed;
  try {
    upload = co_await store().pod_access()->begin_upload(key);
  } catch (...) {
    failed = std::current_exception();
  }
  if (failed) uploaded_.erase(key);
  if (failed) std::rethrow_exception(failed);
  co_return upload;
}

async::Task<> RemoteArtifacts::complete_upload(std::string upload, std::string digest, bool is_tree,
                                               Sent sent) {
  auto* pods = store().pod_access();
  const auto key = key_of(digest, is_tree);
  co_await use(key);
  uploaded_.erase(key);
  co_await pods->complete_upload(key, upload, sent.tags);
  const auto found = co_await pods->attest(key);
  if (!found) throw BlobError(BlobError::Kind::missing_blob, store().url() + " has lost " + key);
  if (!is_what_was_sent(*found, sent)) {
    invalidate(key);
    throw not_what_was_sent(store().url(), key, *found);
  }
  damaged_.erase(key);
  note_stored(key);
}

async::Task<> RemoteArtifacts::abort_upload(std::string key, std::string upload) {
  uploaded_.erase(key);
  co_await store().pod_access()->abort_upload(key, upload);
}

async::Task<std::string> RemoteArtifacts::receive(std::string key, fs::path to, Form form,
                                                  std::uint64_t max_bytes,
                                                  core::CancelSource* cancel) {
  core::Hasher hasher;
  max_bytes = std::min(max_bytes, core::free_room(to.parent_path()));
  if (form == Form::tree) {
    core::make_folders(to);
    file_tree::Unpacker unpacker(to, {.bytes = max_bytes,
                                      .entries = max_small_entries + max_bytes / bytes_of_entry,
                                      .requires_exact_form = true});
    const auto unpack = [&key](const auto& step) {
      try {
        step();
      } catch (const core::EnvironmentError& error) {
        throw UnusableBlob("cannot unpack " + key + ": " + error.what(), error.advice());
      }
    };
    const std::function<void(std::string_view)> on_bytes = [&](std::string_view bytes) {
      hasher.update(bytes);
      unpack([&] { unpacker.feed(bytes); });
    };
    co_await read_stream(store(), key, on_bytes, cancel);
    unpack([&] { unpacker.finish(); });
  } else {
    const core::Descriptor file(::open(to.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
                                       form == Form::executable ? 0755 : 0644));
    if (!file) throw core::system_error("cannot write " + to.string(), errno);
    OpenFile opened{file.get(), to};
    co_return co_await read_to_file(store(), key, std::move(opened), max_bytes, cancel);
  }
  co_return hasher.finish().hex();
}

}  // namespace pipeline::blobs
