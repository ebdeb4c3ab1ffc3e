// The part of PodStaging for inputs that were gathered from many steps. Such an input may have
// 100,000 pieces, so that no list of them is held in memory.
#include <cerrno>
#include <fstream>

#include <boost/asio/post.hpp>

#include "async/parallel.hpp"
#include "core/digest.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/scope_guard.hpp"
#include "orchestrators/kubernetes/pod_staging.hpp"
#include "orchestrators/kubernetes/staging_keys.hpp"

namespace pipeline::orchestrators::kubernetes {

using nlohmann::json;
namespace fs = std::filesystem;

namespace {

// A Secret holds 1 MiB, for all items of a pod.
constexpr std::uint64_t max_text_in_secret = 100'000;
// Concurrent requests. Most of them only ask whether the store has a piece, and it has.
constexpr std::size_t asked_at_a_time = 32;
constexpr std::size_t rows_at_a_time = 1'000;

/// Returns a line of the list: `KIND DIGEST KEY SIGNATURE NAME`.
std::string row_of(const AttemptPiece& piece, const blobs::PodAccess::KeyedUrls& urls) {
  const std::string kind = piece.is_directory    ? "tree "
                           : piece.is_executable ? "executable "
                                                 : "file ";
  const auto digest = piece.digest.hex();
  const auto key = blobs::RemoteArtifacts::key_of(digest, piece.is_directory);
  return kind + digest + " " + key + " " + urls.signature(key) + " " + piece.file + "\n";
}

/// Writes the lines of all pieces to a file. Other coroutines run meanwhile.
async::Task<> write_rows(const AttemptInput& input, const blobs::PodAccess::KeyedUrls& urls,
                         const fs::path& to) {
  std::ofstream file(to, std::ios::binary | std::ios::trunc);
  for (std::size_t i = 0; i < input.pieces.size() && file; ++i) {
    file << row_of(input.pieces[i], urls);
    if (i % rows_at_a_time == 0)
      co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
  }
  file.close();
  if (!file) throw core::system_error("cannot write " + to.string(), errno);
}

}  // namespace

/// Makes sure that the store has all pieces of an input.
async::Task<> PodStaging::send_pieces(const Attempt& attempt, const AttemptInput& input) {
  const std::function<async::Task<>(std::size_t)> send = [&](std::size_t i) -> async::Task<> {
    const auto piece = input.pieces[i];
    if (piece.is_elsewhere)
      co_await stored_key(piece.digest.hex(), piece.is_directory);
    else
      co_await artifacts_.send(piece.digest.hex(), input.path / piece.file, &attempt.io.cancel);
  };
  co_await async::for_each(input.pieces.size(), asked_at_a_time, send);
}

/// Stores a list beside the attempt's outputs, and returns the URL by which the pod reads it.
async::Task<std::string> PodStaging::put_document(const Attempt& attempt, blobs::Body body,
                                                  std::string key) {
  co_await store_.put(key, std::move(body), &attempt.io.cancel);
  documents_.insert(key);
  co_return co_await pods_.presigned(blobs::PodAccess::Method::read, std::move(key));
}

/// Describes all pieces of an input as one item. An item for each, with a URL of its own, would
/// exceed what the pod reads; a row has only what differs, some 250 bytes.
async::Task<json> PodStaging::pieces_item(const Attempt& attempt, std::string to,
                                          const AttemptInput& input) {
  co_await send_pieces(attempt, input);
  const auto urls = co_await pods_.presigned_reads();
  const auto list = attempt.scratch / "pieces";
  const core::ScopeGuard remove([&list] {
    std::error_code ignored;  // The engine empties the folder at the end of the attempt.
    fs::remove(list, ignored);
  });
  co_await write_rows(input, urls, list);
  json made;
  made["to"] = std::move(to);
  made["kind"] = "pieces";
  made["before"] = urls.before;
  made["after"] = urls.after;
  if (fs::file_size(list) <= max_text_in_secret) {
    made["rows"] = core::read_file(list);
    co_return made;
  }
  auto body = blobs::body_of_artifact(list);
  made["list"] =
      co_await put_document(attempt, std::move(body), pieces_key(folder_of(attempt), input.name));
  co_return made;
}

/// Describes the index of a gathered input, which its folder on this machine has.
async::Task<json> PodStaging::index_item(const Attempt& attempt, const std::string& to,
                                         const AttemptInput& input) {
  const auto file = input.path / "index.json";
  json made;
  made["to"] = to + "/index.json";
  if (fs::file_size(file) <= max_text_in_secret) {
    made["kind"] = "text";
    made["text"] = core::read_file(file);
    co_return made;
  }
  made["kind"] = "file";
  made["digest"] = core::sha256_file(file).hex();
  made["executable"] = false;
  auto body = blobs::body_of_artifact(file);
  made["url"] =
      co_await put_document(attempt, std::move(body), index_key(folder_of(attempt), input.name));
  co_return made;
}

}  // namespace pipeline::orchestrators::kubernetes
