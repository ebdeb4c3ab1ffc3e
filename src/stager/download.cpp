#include "stager/download.hpp"

#include <cstdint>
#include <vector>

#include "blobs/file_ranges.hpp"
#include "core/file.hpp"

namespace pipeline::stager {

namespace fs = std::filesystem;

namespace {

Transfer::Range range_at(const blobs::FileRanges& ranges, std::size_t i) {
  const auto span = ranges.span(i);
  return {span.begin, span.end};
}

/// The value of TransferError::is_transient() for errors after which another try can succeed.
constexpr bool can_be_tried_again = true;

void check_total(const std::string& what, std::uint64_t total, std::uint64_t expected) {
  if (total != expected)
    throw TransferError(what + " changes while it is downloaded", can_be_tried_again);
}

[[noreturn]] void throw_stopped(const std::string& what) {
  throw TransferError("the download of " + what + " was stopped", can_be_tried_again);
}

}  // namespace

core::Digest download_file(const std::string& url, int file, const fs::path& to,
                           Transfer& transfer) {
  const auto what = to.string();
  core::Hasher hasher;
  std::uint64_t written = 0;
  const auto first =
      transfer.receive_range(what, url, {0, blobs::first_range}, [&](std::string_view bytes) {
        hasher.update(bytes);
        core::write_fully(file, bytes, to);
        written += bytes.size();
      });
  const auto total = first.total;
  if (written >= total) return hasher.finish();
  const blobs::FileRanges rest{total, blobs::range_size(total, first.pace)};
  InOrder hashing([&](std::size_t i) { blobs::hash_span(file, rest.span(i), to, hasher); });
  Workers workers(rest.count(), transfer.threads());
  workers.run([&](std::size_t i) {
    auto at = rest.span(i).begin;
    const auto received =
        transfer.receive_range(what, url, range_at(rest, i), [&](std::string_view bytes) {
          if (workers.is_over()) throw_stopped(what);
          blobs::write_at(file, at, bytes, to);
          at += bytes.size();
        });
    check_total(what, received.total, total);
    hashing.ready(i);
  });
  return hasher.finish();
}

void download_stream(const std::string& what, const std::string& url, Transfer& transfer,
                     const std::function<void(std::string_view)>& on_bytes) {
  constexpr auto window = blobs::ranges_in_memory;
  std::uint64_t passed = 0;
  const std::function<void(std::string_view)> pass = [&](std::string_view bytes) {
    on_bytes(bytes);
    passed += bytes.size();
  };
  const auto first = transfer.receive_range(what, url, {0, blobs::first_range}, pass);
  const auto total = first.total;
  if (passed >= total) return;
  if (!blobs::may_split_stream(first.pace)) {
    check_total(what, transfer.receive_range(what, url, {passed, total}, pass).total, total);
    return;
  }
  const blobs::FileRanges rest{total, blobs::range_in_memory};
  std::vector<std::string> waiting(window);
  InOrder passing([&](std::size_t i) {
    on_bytes(waiting[i % window]);
    waiting[i % window].clear();
  });
  Workers workers(rest.count(), transfer.threads());
  workers.run([&](std::size_t i) {
    try {
      if (!passing.wait(i, window)) return;  // Another thread has failed, and reports it.
      auto& text = waiting[i % window];
      text.reserve(blobs::range_in_memory);
      const auto received = transfer.receive_range(what, url, range_at(rest, i),
                                                   [&](std::string_view bytes) { text += bytes; });
      check_total(what, received.total, total);
      passing.ready(i);
    } catch (...) {
      passing.abandon();
      throw;
    }
  });
}

}  // namespace pipeline::stager
