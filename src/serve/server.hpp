/// @file
/// An HTTP server for this user's browser, without TLS. One thread serves all connections, and
/// another reads the stores.
#pragma once

#include <string>

#include "serve/api.hpp"
#include "serve/guard.hpp"

namespace pipeline::serve {

class Server {
 public:
  /// Listens. Throws EnvironmentError if the address cannot be used.
  /// @param port 0 for any free port
  Server(const std::string& host, unsigned short port);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  unsigned short port() const;
  /// Answers requests until SIGINT, SIGTERM or SIGHUP; then closes all connections and returns.
  void run(Api& api, const Guard& guard);

 private:
  class Implementation;
  std::unique_ptr<Implementation> self_;
};

}  // namespace pipeline::serve
