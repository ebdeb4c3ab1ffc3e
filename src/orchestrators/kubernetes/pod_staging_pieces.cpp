// The part of PodStaging for inputs that were gathered from many steps.
#include "async/parallel.hpp"
#include "orchestrators/kubernetes/pod_staging.hpp"
#include "orchestrators/kubernetes/staging_keys.hpp"

namespace pipeline::orchestrators::kubernetes {

using nlohmann::json;
namespace fs = std::filesystem;

namespace {

// A Secret holds 1 MiB, for all items of a pod.
constexpr std::size_t max_rows_in_secret = 100'000;
// Concurrent requests. Most of them only ask whether the store has a piece, and it has.
constexpr std::size_t asked_at_a_time = 32;

/// Returns a line of the list: `KIND DIGEST KEY SIGNATURE NAME`.
std::string row_of(const AttemptPiece& piece, const std::string& key,
                   const std::string& signature) {
  const bool is_tree =
      piece.elsewhere ? piece.elsewhere->is_directory : fs::is_directory(piece.path);
  const bool is_executable =
      piece.elsewhere ? piece.elsewhere->is_executable : blobs::is_executable_file(piece.path);
  const std::string kind = is_tree ? "tree " : is_executable ? "executable " : "file ";
  return kind + piece.digest + " " + key + " " + signature + " " + piece.file + "\n";
}

}  // namespace

/// Describes all pieces of an input as one item, and makes sure that the store has them. An item
/// for each of 100,000 pieces, with a URL of its own, would exceed what the pod reads and what the
/// driver should hold; a row has only what differs, some 250 bytes.
async::Task<json> PodStaging::pieces_item(const Attempt& attempt, std::string to,
                                          const AttemptInput& input) {
  std::vector<std::string> keys(input.pieces.size());
  const std::function<async::Task<>(std::size_t)> send = [&](std::size_t i) -> async::Task<> {
    const auto& piece = input.pieces[i];
    if (piece.elsewhere)
      keys[i] = co_await stored_key(piece.digest, piece.elsewhere->is_directory);
    else
      keys[i] = co_await artifacts_.send(piece.digest, piece.path, &attempt.io.cancel);
  };
  co_await async::for_each(keys.size(), asked_at_a_time, send);
  auto urls = co_await pods_.presigned_reads(keys);
  std::string rows;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    rows += row_of(input.pieces[i], keys[i], urls.signatures[i]);
    if (i == 0) rows.reserve((rows.size() + rows.size() / 8) * keys.size());
    // The rows of 100,000 pieces are 25 MB, and so are these texts.
    std::string().swap(keys[i]);
    std::string().swap(urls.signatures[i]);
  }
  json made;
  made["to"] = std::move(to);
  made["kind"] = "pieces";
  made["before"] = std::move(urls.before);
  made["after"] = std::move(urls.after);
  if (rows.size() <= max_rows_in_secret) {
    made["rows"] = std::move(rows);
    co_return made;
  }
  const auto key = pieces_key(folder_of(attempt), input.name);
  co_await store_.put(key, blobs::body_of(std::move(rows)), &attempt.io.cancel);
  documents_.insert(key);
  made["list"] = co_await pods_.presigned(blobs::PodAccess::Method::read, key);
  co_return made;
}

}  // namespace pipeline::orchestrators::kubernetes
