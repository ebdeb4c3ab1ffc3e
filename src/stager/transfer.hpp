/// @file
/// Downloads and uploads objects by signed URLs; retries transient failures.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "stager/http.hpp"
#include "stager/workers.hpp"

namespace pipeline::stager {

struct TransferRetries {
  std::chrono::milliseconds first_pause{200}, max_pause{10'000};
  unsigned max_tries = 14;  ///< The tries take somewhat more than a minute.
};

/// The server has refused a request, or could not be reached for long.
class TransferError : public core::EnvironmentError {
 public:
  TransferError(const std::string& message, bool is_transient, std::string code = {})
      : core::EnvironmentError(message), is_transient_(is_transient), code_(std::move(code)) {}
  bool is_transient() const { return is_transient_; }  ///< A later attempt can succeed.
  const std::string& code() const { return code_; }  ///< Code of a refusal, such as `NoSuchUpload`.

 private:
  bool is_transient_;
  std::string code_;
};

/// Sleeps before the next try. Throws TransferError if there is no next try.
/// @param tries number of tries that have failed before this one
void pause_before_retry(const TransferRetries& policy, unsigned tries, const NoAnswer& why);

/// Returns the MD5 of content, as 16 bytes.
std::string md5(std::uint64_t size,
                const std::function<std::size_t(std::uint64_t offset, std::span<char> into)>& read);

/// Requests by signed URLs to one store. May be used by several threads, each with a connection of
/// its own.
class Transfer {
 public:
  explicit Transfer(std::string authorities, TransferRetries retry_policy = {})
      : http_(std::move(authorities)), retry_policy_(retry_policy) {}

  /// Downloads the object. Each byte is passed once and in order, even after interruptions.
  /// @param what name of the object for messages
  void receive(const std::string& what, const std::string& url,
               const std::function<void(std::string_view)>& on_bytes);
  struct Range {
    std::uint64_t begin, end;  ///< `end` is one past the last byte, and may exceed the object.
  };
  /// The result of receive_range().
  struct Received {
    std::uint64_t total;  ///< Size of the whole object.
    blobs::Pace pace;     ///< Time and bytes of the last try.
  };
  /// Downloads a range of the object as receive() does. A server without ranges is accepted if the
  /// range begins with the object: then all of the object is passed.
  Received receive_range(const std::string& what, const std::string& url, Range range,
                         const std::function<void(std::string_view)>& on_bytes);
  /// Returns a small object; nothing if it does not exist.
  std::optional<std::string> find(const std::string& what, const std::string& url);
  /// Uploads an object or part and returns its ETag. The server checks the bytes' MD5.
  /// @param sum the result of md5(), if it is known
  std::string send(
      const std::string& what, const std::string& url, std::uint64_t size,
      const std::function<std::size_t(std::uint64_t offset, std::span<char> into)>& read,
      const std::string& sum = {});
  void send_text(const std::string& what, const std::string& url, const std::string& text);
  /// The threads that use this object; failures and successes of its requests change their number.
  ThreadBudget& threads() { return threads_; }

 private:
  void pause(unsigned tries, const NoAnswer& why);

  Http http_;
  ThreadBudget threads_;
  TransferRetries retry_policy_;
};

}  // namespace pipeline::stager
