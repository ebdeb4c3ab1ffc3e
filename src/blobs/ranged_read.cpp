#include "blobs/ranged_read.hpp"

#include <map>
#include <set>

#include "async/parallel.hpp"
#include "blobs/file_ranges.hpp"
#include "blobs/remote_artifacts.hpp"
#include "core/digest.hpp"
#include "core/file.hpp"

namespace pipeline::blobs {

namespace {

Range range_at(const FileRanges& ranges, std::size_t i) {
  const auto span = ranges.span(i);
  return {span.begin, span.end - span.begin};
}

/// Throws unless a range has been received as a whole.
void check_range(const std::string& key, std::uint64_t received, const Range& range) {
  if (received != range.size)
    throw UnusableBlob("cannot use " + key + ": it became shorter while it was read");
}

/// The result of reading the first range.
struct FirstRange {
  std::uint64_t total;  ///< Bytes of the whole blob.
  Pace pace;            ///< How fast the first range arrived.
};

/// Reads the first range. If the blob ends there, or the store does not support ranges, reads the
/// whole blob and returns nothing.
async::Task<std::optional<FirstRange>> read_first(BlobStore& store, const std::string& key,
                                                  std::function<void(std::string_view)> on_bytes,
                                                  core::CancelSource* cancel) {
  using Clock = std::chrono::steady_clock;
  std::uint64_t received = 0;
  const auto begun = Clock::now();
  auto first_byte = begun;
  const std::function<void(std::string_view)> count = [&](std::string_view bytes) {
    if (received == 0) first_byte = Clock::now();
    received += bytes.size();
    on_bytes(bytes);
  };
  co_await store.get(key, Range{0, first_range}, count, cancel);
  std::optional<FirstRange> first;
  if (received < first_range) co_return first;
  const Pace pace{first_byte - begun, Clock::now() - first_byte, received};
  const auto total = co_await store.size_for_ranges(key);
  if (!total) co_await store.get(key, Range{received, unlimited}, count, cancel);
  if (total && *total > received) first = FirstRange{*total, pace};
  co_return first;
}

}  // namespace

async::Task<> read_stream(BlobStore& store, std::string key,
                          std::function<void(std::string_view)> on_bytes,
                          core::CancelSource* cancel) {
  const auto first = co_await read_first(store, key, on_bytes, cancel);
  if (!first) co_return;
  if (!may_split_stream(first->pace))
    co_return co_await store.get(key, Range{first_range, unlimited}, on_bytes, cancel);
  const FileRanges ranges{first->total, range_in_memory};
  std::map<std::size_t, std::string> waiting;  // Ranges that were received, by number.
  std::size_t begun = 0, due = 0;  // Number of begun ranges; the range that is passed on next.
  const std::function<std::size_t()> limit = [&] {
    return begun < due + ranges_in_memory ? store.connection_limit() : 0;
  };
  const std::function<async::Task<>(std::size_t)> read = [&](std::size_t i) -> async::Task<> {
    ++begun;
    const auto range = range_at(ranges, i);
    std::string text;
    text.reserve(range.size);
    const std::function<void(std::string_view)> append = [&](std::string_view bytes) {
      text += bytes;
    };
    co_await store.get(key, range, append, cancel);
    check_range(key, text.size(), range);
    waiting.emplace(i, std::move(text));
    for (auto next = waiting.begin(); next != waiting.end() && next->first == due; ++due) {
      const auto bytes = std::move(next->second);
      next = waiting.erase(next);
      on_bytes(bytes);
    }
  };
  co_await async::for_each(ranges.count(), limit, read);
}

async::Task<std::string> read_to_file(BlobStore& store, std::string key, OpenFile file,
                                      std::uint64_t max_bytes, core::CancelSource* cancel) {
  core::Hasher hasher;
  std::uint64_t left = max_bytes;
  const auto refuse = [&] {
    throw UnusableBlob("cannot use " + key + ": it has more than the " + std::to_string(max_bytes) +
                       " bytes that were announced, or for which the disk has room");
  };
  const std::function<void(std::string_view)> on_bytes = [&](std::string_view bytes) {
    if (bytes.size() > left) refuse();
    left -= bytes.size();
    hasher.update(bytes);
    core::write_fully(file.descriptor, bytes, file.path);
  };
  if (max_bytes <= first_range) {
    co_await store.get(key, Range{}, on_bytes, cancel);
    co_return hasher.finish().hex();
  }
  const auto first = co_await read_first(store, key, on_bytes, cancel);
  if (!first) co_return hasher.finish().hex();
  if (first->total > max_bytes) refuse();
  const FileRanges ranges{first->total, range_size(first->total, first->pace)};
  std::set<std::size_t> written;
  std::size_t due = 0;  // The range that is hashed next.
  const std::function<std::size_t()> limit = [&] { return store.connection_limit(); };
  const std::function<async::Task<>(std::size_t)> read = [&](std::size_t i) -> async::Task<> {
    const auto range = range_at(ranges, i);
    std::uint64_t received = 0;
    const std::function<void(std::string_view)> write = [&](std::string_view bytes) {
      write_at(file.descriptor, range.begin + received, bytes, file.path);
      received += bytes.size();
    };
    co_await store.get(key, range, write, cancel);
    check_range(key, received, range);
    // The hash follows the ranges in order, while their bytes are in the page cache.
    for (written.insert(i); written.erase(due) > 0; ++due)
      hash_span(file.descriptor, ranges.span(due), file.path, hasher);
  };
  co_await async::for_each(ranges.count(), limit, read);
  co_return hasher.finish().hex();
}

}  // namespace pipeline::blobs
