/// @file
/// A server for what the stager sends and fetches, on a thread of its own.
#pragma once

#include <map>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/file.hpp"
#include "stager/transfer.hpp"
#include "support/http_server.hpp"

namespace pipeline::stager {

inline constexpr std::size_t mebibyte = 1 << 20;
inline constexpr TransferRetries hasty{std::chrono::milliseconds(1), std::chrono::milliseconds(2),
                                       4};

/// Text in which each place differs from its neighbours, made quickly.
inline std::string counted_text(std::size_t size) {
  std::string text(size, '.');
  constexpr std::size_t step = 1024, digits = 20;
  for (std::size_t i = 0; i + digits < size; i += step) {
    const auto number = std::to_string(i);
    text.replace(i, number.size(), number);
  }
  return text;
}

/// A test with a server on another thread; derived classes answer requests in serve().
class ServerFixture : public testing::Test {
 protected:
  ServerFixture() : thread([this] { loop.run(); }) {}
  virtual async::Task<> serve(test::HttpExchange& exchange) = 0;
  void TearDown() override {
    loop.stop();
    thread.join();
  }

  core::TemporaryFolder folder;
  asio::io_context loop;
  std::map<std::string, std::string> objects;
  test::HttpServer server{loop, [this](test::HttpExchange& exchange) { return serve(exchange); }};
  std::thread thread;
};

}  // namespace pipeline::stager
