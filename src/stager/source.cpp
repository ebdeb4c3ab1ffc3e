#include "stager/source.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <optional>

#include <fcntl.h>
#include <unistd.h>

#include "blobs/file_ranges.hpp"
#include "core/file.hpp"
#include "core/transfer_advance.hpp"
#include "fetch/address.hpp"
#include "fetch/content_range.hpp"
#include "stager/workers.hpp"

namespace pipeline::stager {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr std::size_t max_connections = 4;  ///< For one file: the server belongs to others.
constexpr unsigned max_redirects = 5;
constexpr auto range_size = blobs::first_range;
constexpr auto unlimited = std::numeric_limits<std::uint64_t>::max();

core::Descriptor new_file(const fs::path& path) {
  core::make_folders(path.parent_path());
  core::Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0444));
  if (!file) throw core::system_error("cannot write " + path.string(), errno);
  return file;
}

/// Downloads the content of a URL to a file.
class Download {
 public:
  /// @param size in bytes; 0: not known
  Download(std::string shown, std::string url, std::uint64_t size, const fs::path& path,
           const TransferRetries& policy)
      : shown_(std::move(shown)),
        url_(std::move(url)),
        size_(size),
        path_(path),
        file_(new_file(path)),
        policy_(policy) {}

  void read(const std::string& authorities) {
    Http http(authorities);
    read_range(http, {0, range_size}, nullptr);
    if (!total_ || *total_ <= range_size) return;
    ThreadBudget threads(max_connections);
    Workers workers((*total_ - 1) / range_size, threads);
    workers.run([&](std::size_t i) {
      const auto begin = (i + 1) * range_size;
      read_range(http, {begin, std::min(begin + range_size, *total_)}, &workers);
    });
  }

 private:
  struct Range {
    std::uint64_t begin, end;  ///< The missing bytes; `end` is one past the last byte.
  };

  void read_range(Http& http, Range range, const Workers* workers) {
    const auto begin = range.begin;
    core::TransferAdvance advance;
    for (unsigned tries = 0; range.begin < range.end;) {
      const auto before = range.begin;
      try {
        read_once(http, range, workers);
        if (range.begin < range.end && range.begin < before + core::TransferAdvance::min_bytes)
          throw NoAnswer(shown_ + " was cut off", true);
      } catch (const NoAnswer& error) {
        if (advance.has_advanced(range.begin - std::min(begin, range.begin))) tries = 0;
        pause_before_retry(policy_, tries++, error);
      }
    }
  }

  void read_once(Http& http, Range& range, const Workers* workers) {
    HttpCall call;
    call.headers = {"Range: bytes=" + std::to_string(range.begin) + "-" +
                    std::to_string(range.end - 1)};
    bool is_whole = false;  // The server has no ranges.
    call.on_headers = [&](const Reply& head) {
      if (head.status >= 300) return;
      // Some S3 servers answer a range with 200.
      if (head.status == 206 || head.headers.contains("content-range")) return accept(head, range);
      is_whole = true;
      begin_anew(head, range);
    };
    call.on_bytes = [&](bool, std::string_view bytes) {
      if (workers && workers->is_over()) throw TransferError(shown_ + " was stopped", true);
      if (bytes.size() > range.end - range.begin)
        throw TransferError(shown_ + " sends more bytes than announced", false);
      write(range.begin, bytes);
      range.begin += bytes.size();
    };
    const auto reply = send(http, call);
    if (reply.status == 416 && range.begin == 0)
      range.end = 0;  // The content is empty.
    else if (reply.status >= 300)
      refuse(reply.status);
    if (is_whole) range.end = range.begin;
  }

  /// Sends the request, and follows redirections.
  Reply send(Http& http, HttpCall& call) const {
    call.url = url_;
    for (unsigned redirects = 0; redirects <= max_redirects; ++redirects) {
      auto reply = http.send(call);
      const auto location = reply.headers.find("location");
      if (reply.status < 300 || reply.status >= 400 || location == reply.headers.end())
        return reply;
      call.url = fetch::redirected(call.url, location->second);
      if (call.url.empty())
        throw TransferError(shown_ + " is redirected to an address that pods do not follow", false);
    }
    throw TransferError(shown_ + " is redirected too often", false);
  }

  void check_size(std::uint64_t size) const {
    if (size_ && size != size_)
      throw TransferError(
          shown_ + " has " + std::to_string(size) + " bytes, not " + std::to_string(size_), false);
  }

  /// Checks the head of a range.
  void accept(const Reply& head, Range& range) {
    const auto text = head.headers.find("content-range");
    const auto got = fetch::range_in(text == head.headers.end() ? "" : text->second);
    if (!got || got->begin != range.begin)
      throw TransferError(shown_ + " was answered with a wrong range", false);
    check_size(got->total);
    if (total_ && got->total != *total_)
      throw TransferError(shown_ + " changes while it is fetched", false);
    if (!total_) total_ = got->total;
    range.end = std::min(range.end, got->end);
  }

  /// Checks the head of a response with all content, which only the first request may have: no
  /// other is running then.
  void begin_anew(const Reply& head, Range& range) {
    if (total_) throw TransferError(shown_ + " was answered without a range", false);
    if (const auto size = head.headers.find("content-length"); size != head.headers.end())
      check_size(fetch::number_in(size->second).value_or(0));
    if (::ftruncate(file_.get(), 0) != 0) throw core::system_error("cannot write " + path_, errno);
    range = {0, size_ ? size_ : unlimited};
  }

  void write(std::uint64_t at, std::string_view bytes) const {
    blobs::write_at(file_.get(), at, bytes, path_);
  }

  [[noreturn]] void refuse(int status) const {
    const auto text = shown_ + ": the server answered " + std::to_string(status);
    if (status == 408 || status == 429 || status >= 500) throw NoAnswer(text, true);
    throw TransferError(text, false);
  }

  const std::string shown_, url_;
  const std::uint64_t size_;
  const std::string path_;
  const core::Descriptor file_;
  const TransferRetries policy_;
  std::optional<std::uint64_t> total_;  ///< Total size, from the first range.
};

}  // namespace

void SourceReader::read_file(const json& source, const fs::path& to) const {
  Download(source.at("shown"), source.at("url"), source.at("size"), to, policy_).read(authorities_);
}

void SourceReader::read_folder(const json& files, const fs::path& to) const {
  core::make_folders(to);
  Transfer transfer(authorities_, policy_);
  Workers workers(files.size(), transfer.threads());
  workers.run([&](std::size_t i) {
    const std::string name = files[i].at("path");
    if (!fetch::is_safe_path(name)) throw TransferError("a key is not a path: " + name, false);
    const auto path = to / name;
    const auto file = new_file(path);
    transfer.receive(name, files[i].at("url"),
                     [&](std::string_view bytes) { core::write_fully(file.get(), bytes, path); });
  });
}

}  // namespace pipeline::stager
