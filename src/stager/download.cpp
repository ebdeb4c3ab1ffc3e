#include "stager/download.hpp"

#include <algorithm>
#include <cerrno>
#include <vector>

#include <unistd.h>

#include "core/file.hpp"

namespace pipeline::stager {

namespace fs = std::filesystem;

namespace {

/// The ranges of an object behind its first one.
class Rest {
 public:
  Rest(std::uint64_t total, std::uint64_t size) : total_(total), size_(size) {}
  std::size_t count() const {
    return total_ <= blobs::first_range ? 0 : (total_ - blobs::first_range + size_ - 1) / size_;
  }
  Transfer::Range range(std::size_t i) const {
    const auto begin = blobs::first_range + i * size_;
    return {begin, std::min(begin + size_, total_)};
  }

 private:
  std::uint64_t total_, size_;
};

void write_at(int file, std::uint64_t at, std::string_view bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const auto count = ::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw core::system_error("cannot write " + path.string(), errno);
    at += static_cast<std::uint64_t>(count);
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

/// Adds a range of a file to the hash.
void hash(int file, Transfer::Range range, const fs::path& path, core::Hasher& hasher) {
  std::vector<char> piece(256 << 10);
  while (range.begin < range.end) {
    const auto count =
        ::pread(file, piece.data(), std::min<std::uint64_t>(piece.size(), range.end - range.begin),
                static_cast<off_t>(range.begin));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw core::system_error("cannot read " + path.string(), errno);
    if (count == 0) throw core::EnvironmentError(path.string() + " became shorter meanwhile");
    hasher.update({piece.data(), static_cast<std::size_t>(count)});
    range.begin += static_cast<std::uint64_t>(count);
  }
}

void check_total(const std::string& what, std::uint64_t total, std::uint64_t expected) {
  if (total != expected) throw TransferError(what + " changes while it is downloaded", true);
}

[[noreturn]] void stopped(const std::string& what) {
  throw TransferError("the download of " + what + " was stopped", true);
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
  const Rest rest(total, blobs::range_size(total, first.pace));
  InOrder hashing([&](std::size_t i) { hash(file, rest.range(i), to, hasher); });
  Workers workers(rest.count(), transfer.threads());
  workers.run([&](std::size_t i) {
    auto at = rest.range(i).begin;
    const auto received =
        transfer.receive_range(what, url, rest.range(i), [&](std::string_view bytes) {
          if (workers.is_over()) stopped(what);
          write_at(file, at, bytes, to);
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
  const Rest rest(total, blobs::range_in_memory);
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
      const auto of_range = transfer.receive_range(what, url, rest.range(i),
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
