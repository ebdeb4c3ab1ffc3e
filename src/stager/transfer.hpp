/// @file
/// Objects in and out by URLs that carry their own permission; whatever may pass is tried again.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "stager/http.hpp"

namespace pipeline::stager {

struct TransferRetries {
  std::chrono::milliseconds first_pause{200}, longest_pause{10'000};
  unsigned most_tries = 14;  ///< Somewhat more than a minute.
};

/// The server has refused, or was not to be had for long.
class TransferError : public core::EnvironmentError {
 public:
  TransferError(const std::string& message, bool passes, std::string code = {})
      : core::EnvironmentError(message), passes_(passes), code_(std::move(code)) {}
  bool passes() const { return passes_; }            ///< Another attempt, later, may go better.
  const std::string& code() const { return code_; }  ///< Of a refusal: `NoSuchUpload`.

 private:
  bool passes_;
  std::string code_;
};

class Transfer {
 public:
  explicit Transfer(std::string authorities, TransferRetries retry_policy = {})
      : http_(std::move(authorities)), retry_policy_(retry_policy) {}

  /// All bytes of the object, each once and in order, whatever is cut on the way. @param what it
  /// is, for messages
  void receive(const std::string& what, const std::string& url,
               const std::function<void(std::string_view)>& on_bytes);
  /// The object's, or part's, tag (ETag). The server compares the bytes with their MD5.
  std::string send(
      const std::string& what, const std::string& url, std::uint64_t size,
      const std::function<std::size_t(std::uint64_t offset, std::span<char> into)>& read);

 private:
  void pause(unsigned tries, const NoAnswer& why);
  Http http_;
  TransferRetries retry_policy_;
};

}  // namespace pipeline::stager
