#include "stager/transfer.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <thread>
#include <utility>

#include <openssl/evp.h>

#include "blobs/error_document.hpp"
#include "core/base64.hpp"
#include "core/transfer_advance.hpp"
#include "fetch/content_range.hpp"

namespace pipeline::stager {
namespace {

/// Returns the header Retry-After; zero without one, or for a date.
std::chrono::seconds wanted_pause(const Reply& reply) {
  constexpr std::uint64_t max_seconds = 300;
  const auto header = reply.headers.find("retry-after");
  if (header == reply.headers.end()) return {};
  return std::chrono::seconds(std::min(fetch::number_in(header->second).value_or(0), max_seconds));
}

/// Throws NoAnswer for transient failures, TransferError for permanent ones.
[[noreturn]] void refuse(const std::string& what, const Reply& reply) {
  const auto code = blobs::xml_text(reply.body, "Code"),
             words = blobs::xml_text(reply.body, "Message");
  auto message = "cannot " + what + ": " +
                 (code.empty() ? "status " + std::to_string(reply.status) : code + ": " + words);
  constexpr int not_found = 404;
  if (blobs::is_retryable(reply.status, code)) throw NoAnswer(message, true, wanted_pause(reply));
  if (code == "AccessDenied" && words.find("expired") != words.npos)
    message += "; the driver's signatures are valid for 7 days, or as long as its keys";
  throw TransferError(message, false,
                      code.empty() && reply.status == not_found ? "NoSuchKey" : code);
}

}  // namespace

std::string md5(std::uint64_t size,
                const std::function<std::size_t(std::uint64_t, std::span<char>)>& read) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        &EVP_MD_CTX_free);
  EVP_DigestInit_ex(context.get(), EVP_md5(), nullptr);
  std::array<char, 64 << 10> piece;
  for (std::uint64_t done = 0; done < size;) {
    const auto count =
        read(done, std::span(piece).first(std::min<std::uint64_t>(piece.size(), size - done)));
    if (count == 0) throw core::EnvironmentError("a file became shorter while it was read");
    EVP_DigestUpdate(context.get(), piece.data(), count);
    done += count;
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> sum{};
  unsigned length = 0;
  EVP_DigestFinal_ex(context.get(), sum.data(), &length);
  return {reinterpret_cast<const char*>(sum.data()), length};
}

void pause_before_retry(const TransferRetries& policy, unsigned tries, const NoAnswer& why) {
  if (!why.is_transient() || tries + 1 >= policy.max_tries)
    throw TransferError(why.what(), why.is_transient());
  thread_local std::minstd_rand random{std::random_device{}()};
  const auto limit = std::min<std::chrono::milliseconds>(
                         policy.first_pause * (1LL << std::min(tries, 20u)), policy.max_pause)
                         .count();
  const std::chrono::milliseconds pause(
      std::uniform_int_distribution<long long>(limit / 2, limit)(random));
  std::this_thread::sleep_for(std::max<std::chrono::milliseconds>(pause, why.wanted_pause()));
}

void Transfer::pause(unsigned tries, const NoAnswer& why) {
  threads_.note_failure();
  pause_before_retry(retry_policy_, tries, why);
}

void Transfer::receive(const std::string& what, const std::string& url,
                       const std::function<void(std::string_view)>& on_bytes) {
  std::uint64_t received = 0;
  core::TransferAdvance advance;
  for (unsigned tries = 0;; ++tries) {
    try {
      std::uint64_t offset = received;  // The next byte that arrives.
      bool first = true;
      HttpCall call;
      call.url = url;
      if (received > 0) call.headers.push_back("Range: bytes=" + std::to_string(received) + "-");
      call.on_bytes = [&](bool is_range, std::string_view bytes) {
        if (std::exchange(first, false) && !is_range)
          offset = 0;  // The server does not support ranges and sends the whole object again.
        const auto known = std::min<std::uint64_t>(received - offset, bytes.size());
        offset += known;
        bytes.remove_prefix(known);
        if (bytes.empty()) return;
        on_bytes(bytes);
        offset += bytes.size();
        received = offset;
      };
      const auto reply = http_.send(call);
      if (reply.status < 300 || (reply.status == 416 && received > 0)) return;
      refuse("read " + what, reply);
    } catch (const NoAnswer& error) {
      if (advance.has_advanced(received)) tries = 0;
      pause(tries, error);
    }
  }
}

namespace {

/// The state of a range that is received, over all tries.
class RangeReader {
 public:
  RangeReader(const std::string& what, Transfer::Range range,
              const std::function<void(std::string_view)>& on_bytes)
      : what_(what), begin_(range.begin), at_(range.begin), end_(range.end), on_bytes_(on_bytes) {}

  std::string header() const {
    return "Range: bytes=" + std::to_string(at_) + "-" + std::to_string(end_ - 1);
  }

  void begin() {
    begun_ = first_byte_ = Clock::now();
    received_before_ = at_;
  }

  /// Checks a response's head.
  void accept(const Reply& head) {
    first_byte_ = Clock::now();
    if (head.status >= 300) return;
    skip_ = 0;
    // Some S3 servers answer a range with 200.
    const auto text = head.headers.find("content-range");
    is_whole_ = head.status != 206 && text == head.headers.end();
    if (is_whole_) {
      if (begin_ > 0) throw NoAnswer(what_ + " was answered without a range", true);
      skip_ = at_;
      return;
    }
    const auto got = fetch::range_in(text == head.headers.end() ? "" : text->second);
    if (!got || got->begin != at_) throw NoAnswer(what_ + " was answered with a wrong range", true);
    if (total_ && *total_ != got->total)
      throw TransferError(what_ + " changes while it is downloaded", true);
    total_ = got->total;
    end_ = std::min(end_, got->total);
  }

  void take(std::string_view bytes) {
    const auto known = std::min<std::uint64_t>(skip_, bytes.size());
    skip_ -= known;
    bytes.remove_prefix(known);
    if (!is_whole_ && bytes.size() > end_ - at_)
      throw NoAnswer(what_ + " was answered with more than its range", true);
    if (bytes.empty()) return;
    on_bytes_(bytes);
    at_ += bytes.size();
  }

  /// Returns the result of a response.
  Transfer::Received finish() const {
    if (!is_whole_ && at_ < end_) throw NoAnswer(what_ + " was cut off", true);
    return {is_whole_ ? at_ : total_.value_or(end_),
            {first_byte_ - begun_, Clock::now() - first_byte_, at_ - received_before_}};
  }

  std::uint64_t received() const { return at_ - begin_; }

 private:
  using Clock = std::chrono::steady_clock;

  const std::string& what_;
  const std::uint64_t begin_;
  std::uint64_t at_, end_, skip_ = 0, received_before_ = 0;
  Clock::time_point begun_, first_byte_;  ///< Times of the current try.
  const std::function<void(std::string_view)>& on_bytes_;
  std::optional<std::uint64_t> total_;
  bool is_whole_ = false;  ///< The server sends all of the object.
};

}  // namespace

Transfer::Received Transfer::receive_range(const std::string& what, const std::string& url,
                                           Range range,
                                           const std::function<void(std::string_view)>& on_bytes) {
  RangeReader reader(what, range, on_bytes);
  core::TransferAdvance advance;
  for (unsigned tries = 0;; ++tries) {
    try {
      HttpCall call;
      call.url = url;
      reader.begin();
      call.headers = {reader.header()};
      call.on_headers = [&](const Reply& head) { reader.accept(head); };
      call.on_bytes = [&](bool, std::string_view bytes) { reader.take(bytes); };
      const auto reply = http_.send(call);
      if (reply.status == 416 && range.begin == 0 && reader.received() == 0) return {};  // Empty.
      if (reply.status >= 300) refuse("read " + what, reply);
      const auto received = reader.finish();
      const auto& pace = received.pace;
      threads_.note_success(pace.bytes, pace.wait + pace.transfer);
      return received;
    } catch (const NoAnswer& error) {
      if (advance.has_advanced(reader.received())) tries = 0;
      pause(tries, error);
    }
  }
}

std::optional<std::string> Transfer::find(const std::string& what, const std::string& url) {
  constexpr std::size_t max_bytes = 1 << 20;
  std::string text;
  try {
    receive(what, url, [&](std::string_view bytes) {
      if (text.size() + bytes.size() > max_bytes)
        throw TransferError("cannot read " + what + ": it is too long", false);
      text += bytes;
    });
  } catch (const TransferError& error) {
    if (error.code() != "NoSuchKey") throw;
    return std::nullopt;
  }
  return text;
}

std::string Transfer::send(const std::string& what, const std::string& url, std::uint64_t size,
                           const std::function<std::size_t(std::uint64_t, std::span<char>)>& read,
                           const std::string& sum) {
  HttpCall call;
  call.method = "PUT";
  call.url = url;
  call.size = size;
  call.read = read;
  call.headers = {"Content-Type: application/octet-stream",
                  "Content-MD5: " + core::encode_base64(sum.empty() ? md5(size, read) : sum)};
  for (unsigned tries = 0;; ++tries) {
    try {
      const auto begin = std::chrono::steady_clock::now();
      const auto reply = http_.send(call);
      if (reply.status >= 300) refuse("write " + what, reply);
      threads_.note_success(size, std::chrono::steady_clock::now() - begin);
      const auto tag = reply.headers.find("etag");
      return tag == reply.headers.end() ? "" : tag->second;
    } catch (const NoAnswer& error) {
      pause(tries, error);
    }
  }
}

void Transfer::send_text(const std::string& what, const std::string& url, const std::string& text) {
  send(what, url, text.size(), [&](std::uint64_t offset, std::span<char> into) {
    return text.copy(into.data(), into.size(), offset);
  });
}

}  // namespace pipeline::stager
