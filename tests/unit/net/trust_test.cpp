#include "net/trust.hpp"

#include <cstdlib>
#include <string>

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

TEST(Trust, authorities_are_those_that_the_caller_names_if_they_exist) {
  const char* before = std::getenv("SSL_CERT_FILE");
  const std::string kept = before ? before : "";
  setenv("SSL_CERT_FILE", "/no/such/file.pem", 1);
  EXPECT_NE(authorities_file(), "/no/such/file.pem");
  setenv("SSL_CERT_FILE", PIPELINE_SOURCE_DIR "/LICENSE", 1);
  EXPECT_EQ(authorities_file(), PIPELINE_SOURCE_DIR "/LICENSE");
  if (before)
    setenv("SSL_CERT_FILE", kept.c_str(), 1);
  else
    unsetenv("SSL_CERT_FILE");
}

}  // namespace
}  // namespace pipeline::net
