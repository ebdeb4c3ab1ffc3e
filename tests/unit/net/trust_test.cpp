#include "net/trust.hpp"

#include <gtest/gtest.h>

namespace pipeline::net {
namespace {

TEST(Trust, is_lacking_where_a_certificate_is_wrong_and_not_where_a_handshake_was_cut) {
  EXPECT_TRUE(
      is_about_trust({60, "SSL certificate problem: unable to get local issuer certificate"}));
  EXPECT_TRUE(is_about_trust({35, "error:0A000412:SSL routines::sslv3 alert bad certificate"}));
  EXPECT_FALSE(is_about_trust(
      {35, "OpenSSL SSL_connect: Connection reset by peer in connection to 10.0.0.1:443"}));
  EXPECT_FALSE(is_about_trust({35, "error:0A000126:SSL routines::unexpected eof while reading"}));
  EXPECT_FALSE(is_about_trust({7, "Failed to connect"}));
}

}  // namespace
}  // namespace pipeline::net
