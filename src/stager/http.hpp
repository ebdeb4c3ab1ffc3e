/// @file
/// HTTP/1.1 for a static program: plain or TLS, blocking, one connection at a time, which is kept
/// for the next call to the same host. Not Boost.Beast, by which the static program is 538 KB
/// larger (5,509,576 bytes for 4,971,432): its timeouts take asynchronous operations, and so an
/// event loop.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"

namespace pipeline::stager {

struct Call {
  std::string method = "GET";
  std::string url;
  std::vector<std::string> headers = {};  ///< `Name: value`
  std::uint64_t size = 0;  ///< Of what is sent, which `read` gives from any place on.
  std::function<std::size_t(std::uint64_t offset, std::span<char> into)> read = {};
  /// Takes the answer's body, if its status is below 300; else it is collected. @param is_range the
  /// server sends the range that it was asked for, not all
  std::function<void(bool is_range, std::string_view bytes)> on_bytes = {};
};

struct Reply {
  int status = 0;
  std::map<std::string, std::string> headers;  ///< Names in lower case.
  std::string body;
};

/// There was no answer, or only a part of one.
class NoAnswer : public core::EnvironmentError {
 public:
  NoAnswer(const std::string& message, bool passes)
      : core::EnvironmentError(message), passes_(passes) {}
  bool passes() const { return passes_; }  ///< A second try may go better.

 private:
  bool passes_;
};

class Connection;

class Http {
 public:
  /// @param authorities PEM; of whom servers' certificates have to be
  explicit Http(std::string authorities);
  ~Http();
  Http(const Http&) = delete;
  Http& operator=(const Http&) = delete;
  /// Throws NoAnswer. Its messages name the host, never the rest of the URL, which may be a secret.
  Reply send(const Call& call);

 private:
  std::string authorities_;
  std::unique_ptr<Connection> kept_;
};

}  // namespace pipeline::stager
