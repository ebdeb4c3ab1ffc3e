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

}  // namespace
}  // namespace pipeline::stager
