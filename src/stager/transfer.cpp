#include "stager/transfer.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <thread>
#include <utility>

#include <openssl/evp.h>

#include "blobs/error_document.hpp"
#include "core/base64.hpp"
#include "core/transfer_advance.hpp"

namespace pipeline::stager {
namespace {

/// Throws NoAnswer for transient failures, TransferError for permanent ones.
[[noreturn]] void refuse(const std::string& what, const Reply& reply) {
  const auto code = blobs::xml_text(reply.body, "Code"),
             words = blobs::xml_text(reply.body, "Message");
  auto message = "cannot " + what + ": " +
                 (code.empty() ? "status " + std::to_string(reply.status) : code + ": " + words);
  constexpr int not_found = 404;
  if (blobs::is_retryable(reply.status, code)) throw NoAnswer(message, true);
  if (code == "AccessDenied" && words.find("expired") != words.npos)
    message += "; the driver's signatures are valid for 7 days, or as long as its keys";
  throw TransferError(message, false,
                      code.empty() && reply.status == not_found ? "NoSuchKey" : code);
}

/// Returns the value of the header Content-MD5 for the content.
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
  return core::encode_base64({reinterpret_cast<const char*>(sum.data()), length});
}

}  // namespace

void pause_before_retry(const TransferRetries& policy, unsigned tries, const NoAnswer& why) {
  if (!why.is_transient() || tries + 1 >= policy.max_tries)
    throw TransferError(why.what(), why.is_transient());
  thread_local std::minstd_rand random{std::random_device{}()};
  const auto limit = std::min<std::chrono::milliseconds>(
                         policy.first_pause * (1LL << std::min(tries, 20u)), policy.max_pause)
                         .count();
  std::this_thread::sleep_for(std::chrono::milliseconds(
      std::uniform_int_distribution<long long>(limit / 2, limit)(random)));
}

void Transfer::receive(const std::string& what, const std::string& url,
                       const std::function<void(std::string_view)>& on_bytes) {
  std::uint64_t received = 0;
  core::TransferAdvance advance;
  for (unsigned tries = 0;; ++tries) {
    try {
      std::uint64_t place = received;
      bool first = true;
      HttpCall call;
      call.url = url;
      if (received > 0) call.headers.push_back("Range: bytes=" + std::to_string(received) + "-");
      call.on_bytes = [&](bool is_range, std::string_view bytes) {
        if (std::exchange(first, false) && !is_range)
          place = 0;  // The server does not support ranges and sends the whole object again.
        const auto known = std::min<std::uint64_t>(received - place, bytes.size());
        place += known;
        bytes.remove_prefix(known);
        if (bytes.empty()) return;
        on_bytes(bytes);
        place += bytes.size();
        received = place;
      };
      const auto reply = http_.send(call);
      if (reply.status < 300 || (reply.status == 416 && received > 0)) return;
      refuse("read " + what, reply);
    } catch (const NoAnswer& error) {
      if (advance.is_made(received)) tries = 0;
      pause_before_retry(retry_policy_, tries, error);
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
                           const std::function<std::size_t(std::uint64_t, std::span<char>)>& read) {
  HttpCall call;
  call.method = "PUT";
  call.url = url;
  call.size = size;
  call.read = read;
  call.headers = {"Content-Type: application/octet-stream", "Content-MD5: " + md5(size, read)};
  for (unsigned tries = 0;; ++tries) {
    try {
      const auto reply = http_.send(call);
      if (reply.status >= 300) refuse("write " + what, reply);
      const auto tag = reply.headers.find("etag");
      return tag == reply.headers.end() ? "" : tag->second;
    } catch (const NoAnswer& error) {
      pause_before_retry(retry_policy_, tries, error);
    }
  }
}

}  // namespace pipeline::stager
