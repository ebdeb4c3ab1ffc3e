#include "stager/http.hpp"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>

namespace pipeline::stager {
namespace {

namespace asio = boost::asio;
using testing::HasSubstr;

// AddressSanitizer would report a context of TLS that a failed connection leaves behind.
TEST(StagerHttp, names_a_server_that_does_not_speak_tls) {
  asio::io_context loop;
  asio::ip::tcp::acceptor acceptor(loop, {asio::ip::make_address("127.0.0.1"), 0});
  const auto port = std::to_string(acceptor.local_endpoint().port());
  const std::jthread server([&] {
    auto socket = acceptor.accept();
    asio::write(socket, asio::buffer(std::string("HTTP/1.1 400 X\r\n\r\n")));
  });
  HttpCall call;
  call.url = "https://127.0.0.1:" + port + "/key?signature=1";
  std::string message = "none";
  try {
    Http("").send(call);
  } catch (const NoAnswer& error) {
    message = error.what();
  }
  EXPECT_THAT(message, HasSubstr("cannot open a TLS connection to 127.0.0.1:" + port));
  EXPECT_EQ(message.find("signature"), std::string::npos);
}

/// Sends a byte at a time, and less than the stager demands, until the other end has enough.
void trickle(asio::ip::tcp::socket& socket, std::string_view head) {
  constexpr int count = 250;
  boost::system::error_code error;
  asio::write(socket, asio::buffer(head.data(), head.size()), error);
  for (int i = 0; i < count && !error; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    asio::write(socket, asio::buffer("x", 1), error);
  }
}

TEST(StagerHttp, a_server_that_sends_a_few_bytes_a_second_is_given_up) {
  for (const std::string head :
       {"HTTP/1.1 200 OK\r\nContent-Length: 250\r\n\r\n", "HTTP/1.1 200 OK\r\nX-Long: "}) {
    asio::io_context loop;
    asio::ip::tcp::acceptor acceptor(loop, {asio::ip::make_address("127.0.0.1"), 0});
    const auto port = std::to_string(acceptor.local_endpoint().port());
    const std::jthread server([&] {
      auto socket = acceptor.accept();
      trickle(socket, head);
    });
    HttpCall call;
    call.url = "http://127.0.0.1:" + port + "/key";
    std::string message = "none";
    try {
      Http("", std::chrono::milliseconds(500)).send(call);
    } catch (const NoAnswer& error) {
      message = error.what();
      EXPECT_TRUE(error.is_transient());
    }
    EXPECT_THAT(message, HasSubstr("it sent hardly any bytes"));
  }
}

}  // namespace
}  // namespace pipeline::stager
