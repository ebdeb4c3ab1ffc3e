// Certificates and names as a kubeconfig has them, against a TLS server that wants a client's
// certificate (openssl s_server).
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/file.hpp"
#include "kubernetes_api/client.hpp"
#include "support/http_server.hpp"
#include "support/run_task.hpp"

namespace pipeline::kubernetes_api {
namespace {

using testing::HasSubstr;

class OverTls : public testing::Test {
 protected:
  void SetUp() override {
    // A CA, and of it a server's certificate for api.lab and a client's.
    const std::string script =
        "cd " + folder.path().string() +
        " && exec 2>errors && ec='ec -pkeyopt ec_paramgen_curve:P-256' &&"
        " openssl req -x509 -newkey $ec -nodes -keyout ca.key -out ca.pem -days 2 -subj "
        "/CN=test-ca &&"
        " for who in server client; do"
        " openssl req -newkey $ec -nodes -keyout $who.key -out $who.csr -subj /CN=$who &&"
        " echo subjectAltName=DNS:api.lab > ext &&"
        " openssl x509 -req -in $who.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile "
        "ext -out $who.pem || exit 1; done &&"
        " exec openssl s_server -accept 127.0.0.1:0 -cert server.pem -key server.key -CAfile "
        "ca.pem -Verify 1 -verify_return_error -www";
    server = popen(("sh -c \"echo \\$\\$; " + escaped(script) + "\"").c_str(), "r");
    ASSERT_TRUE(server);
    ASSERT_EQ(std::fscanf(server, "%d", &pid), 1);
    char line[200];
    while (std::fgets(line, sizeof line, server)) {
      const std::string text = line;
      if (text.starts_with("ACCEPT")) {
        port = text.substr(text.rfind(':') + 1);
        while (!port.empty() && std::isspace(static_cast<unsigned char>(port.back())))
          port.pop_back();
        break;
      }
    }
    ASSERT_FALSE(port.empty()) << core::read_file(folder.path() / "errors");
    access.server = "https://127.0.0.1:" + port;
    access.origin = "context 'test'";
    access.tls_server_name = "api.lab";
    access.tls.ca = pem("ca.pem");
    access.tls.cert = pem("client.pem");
    access.tls.key = pem("client.key");
  }
  void TearDown() override {
    if (pid > 0) kill(pid, SIGKILL);
    if (server) pclose(server);
  }
  static std::string escaped(std::string script) {
    std::string result;
    for (const char c : script) result += c == '$' ? "\\$" : std::string(1, c);
    return result;
  }
  std::string pem(const std::string& name) const { return core::read_file(folder.path() / name); }
  long status() {
    Client client(loop, access, {std::chrono::milliseconds(1), std::chrono::milliseconds(2), 2});
    ApiCall call("look", "GET", "/");
    return test::run_task(loop, client.send(std::move(call))).status;
  }
  std::string failure() {
    try {
      Client client(loop, access, {std::chrono::milliseconds(1), std::chrono::milliseconds(2), 2});
      test::run_task(loop, client.get("look", "/"));
    } catch (const core::EnvironmentError& error) {
      return error.what() + (error.advice().empty() ? "" : " | " + error.advice().front());
    }
    return "none";
  }

  asio::io_context loop;
  core::TemporaryFolder folder;
  ClusterAccess access;
  std::string port;
  FILE* server = nullptr;
  int pid = 0;
};

TEST_F(OverTls, unknown_authority_and_wrong_name_are_reported_at_once) {
  const auto good = access.tls;
  access.tls.ca = pem("client.pem");  // not of which the server's is
  EXPECT_THAT(failure(), HasSubstr("certificate-authority"));
  access.tls = good;
  access.tls_server_name = "";
  EXPECT_THAT(failure(), HasSubstr("certificate"));
  access.tls.verify = false;
  EXPECT_EQ(status(), 200);
}

TEST_F(OverTls, certificates_are_data_or_files_and_the_name_may_be_another) {
  EXPECT_EQ(status(), 200);
  access.tls = {.ca_file = folder.path() / "ca.pem",
                .cert_file = folder.path() / "client.pem",
                .key_file = folder.path() / "client.key"};
  EXPECT_EQ(status(), 200);
}

TEST(KubernetesTls, a_connection_that_is_cut_in_its_handshake_is_not_a_failure_of_trust) {
  asio::io_context loop;
  asio::ip::tcp::acceptor acceptor(loop, {asio::ip::address_v4::loopback(), 0});
  int cut = 0;
  asio::co_spawn(
      loop,
      [&]() -> async::Task<> {
        for (;; ++cut) {
          auto socket = co_await acceptor.async_accept(asio::use_awaitable);
          char hello[1];
          co_await socket.async_read_some(asio::buffer(hello), asio::use_awaitable);
          socket.set_option(
              asio::socket_base::linger(true, 0));  // a reset, as of an API server that is killed
        }
      },
      asio::detached);
  ClusterAccess access;
  access.server = "https://127.0.0.1:" + std::to_string(acceptor.local_endpoint().port());
  Client client(loop, access, {std::chrono::milliseconds(1), std::chrono::milliseconds(2), 3});
  try {
    test::run_task(loop, client.get("look", "/x"));
    FAIL();
  } catch (const core::EnvironmentError& error) {
    EXPECT_THAT(error.advice().front(), testing::Not(HasSubstr("certificate-authority")))
        << error.what();
  }
  EXPECT_EQ(cut, 3);
}

TEST(KubernetesProxies, are_connected_to_in_the_servers_place) {
  asio::io_context loop;
  test::HttpServer proxy(loop,
                         [](test::HttpExchange& exchange) { return exchange.answer(200, "{}"); });
  ClusterAccess access;
  access.server = "http://nowhere.invalid";
  access.proxy = proxy.url();
  Client client(loop, access);
  test::run_task(loop, client.get("look", "/x"));
  EXPECT_THAT(proxy.asked, testing::ElementsAre("GET http://nowhere.invalid/x"));
}

}  // namespace
}  // namespace pipeline::kubernetes_api
