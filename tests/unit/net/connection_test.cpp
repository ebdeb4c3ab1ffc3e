#include "net/connection.hpp"

#include <gtest/gtest.h>

namespace pipeline::net {
namespace {

TEST(Connection, throws_the_exception_of_its_socket_maker) {
  asio::io_context loop;
  Request request;
  request.url = "http://docker/";
  request.unix_socket = "/nowhere";
  request.make_socket = []() -> int { throw core::EnvironmentError("ssh is not on the PATH"); };
  try {
    const Connection connection(loop, request);
    FAIL() << "the exception was not thrown";
  } catch (const core::EnvironmentError& error) {
    EXPECT_STREQ(error.what(), "ssh is not on the PATH");
  }
}

}  // namespace
}  // namespace pipeline::net
