// Streams of a pod that a server opens badly.
#include "kubernetes_api/channels.hpp"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/http_server.hpp"
#include "support/run_task.hpp"

namespace pipeline::kubernetes_api {
namespace {

using test::HttpExchange;
using testing::HasSubstr;

class TheChannels : public testing::Test {
 protected:
  void SetUp() override { setenv("PIPE_SERVER_TIMEOUT", "1s", 1); }
  void TearDown() override { unsetenv("PIPE_SERVER_TIMEOUT"); }
  /// Why they were not opened.
  std::string failure() {
    ClusterAccess access;
    access.server = server.url();
    access.origin = "context 'test'";
    Client client(loop, access);
    try {
      test::run_task(loop, open_channels(client, "attach to the pod p", "/attach"));
    } catch (const core::EnvironmentError& error) {
      return error.what();
    }
    return "none";
  }

  asio::io_context loop;
  test::HttpServer::Handler handler;
  test::HttpServer server{loop, [this](HttpExchange& exchange) { return handler(exchange); }};
};

TEST_F(TheChannels, that_a_server_never_opens_are_given_up) {
  handler = [](HttpExchange& exchange) { return exchange.hang(); };
  EXPECT_EQ(failure(), "cannot attach to the pod p: no answer came in time");
  handler = [](HttpExchange& exchange) -> async::Task<> {
    co_await exchange.write("HTTP/1.1 101 Switching Protocols\r\nX: y");
    co_await exchange.hang();
  };
  EXPECT_EQ(failure(), "cannot attach to the pod p: no answer came in time");
}

TEST_F(TheChannels, whose_refusal_never_ends_are_refused) {
  handler = [](HttpExchange& exchange) -> async::Task<> {
    co_await exchange.write("HTTP/1.1 403 Forbidden\r\n\r\n{\"message\": \"no");
    co_await exchange.hang();
  };
  EXPECT_THAT(failure(), HasSubstr("cannot attach to the pod p: status 403"));
}

TEST_F(TheChannels, of_another_protocol_are_an_error) {
  handler = [](HttpExchange& exchange) -> async::Task<> {
    co_await exchange.write("HTTP/1.1 101 Switching Protocols\r\nX: " + std::string(100'000, 'y') +
                            "\r\n\r\n");
    co_await exchange.hang();
  };
  EXPECT_THAT(failure(), HasSubstr("violates the WebSocket protocol: its response is too long"));
  handler = [](HttpExchange& exchange) -> async::Task<> {
    exchange.cut();
    co_return;
  };
  EXPECT_THAT(failure(), HasSubstr("violates the WebSocket protocol: it has closed"));
}

}  // namespace
}  // namespace pipeline::kubernetes_api
