// The examples that Amazon has published for S3:
// https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html, and
// sigv4-query-string-auth.html.
#include "blobs/s3/signing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/digest.hpp"
#include "net/url.hpp"

namespace pipeline::blobs::s3 {
namespace {

using namespace std::chrono;
using testing::EndsWith;
using testing::HasSubstr;

const Keys keys{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""};
const CredentialScope scope{"us-east-1", sys_days(2013y / May / 24)};

SignedCall call(std::string method, std::string path) {
  SignedCall made;
  made.method = std::move(method);
  made.host = "examplebucket.s3.amazonaws.com";
  made.path = std::move(path);
  made.payload_hash = core::sha256("").hex();
  return made;
}

std::string authorization(const SignedCall& made) {
  return sign(made, keys, scope).at("authorization");
}

TEST(Signing, reads_an_object_as_in_amazons_example) {
  auto get = call("GET", "/test.txt");
  get.headers["range"] = "bytes=0-9";
  EXPECT_EQ(authorization(get),
            "AWS4-HMAC-SHA256 "
            "Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/"
            "aws4_request,SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,"
            "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

TEST(Signing, writes_an_object_as_in_amazons_example) {
  auto put = call("PUT", "/test$file.text");
  put.headers["date"] = "Fri, 24 May 2013 00:00:00 GMT";
  put.headers["x-amz-storage-class"] = "REDUCED_REDUNDANCY";
  put.payload_hash = core::sha256("Welcome to Amazon S3.").hex();
  EXPECT_THAT(
      authorization(put),
      EndsWith("Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"));
}

TEST(Signing, asks_for_a_part_of_the_bucket_as_in_amazons_examples) {
  auto lifecycle = call("GET", "/");
  lifecycle.query["lifecycle"];
  EXPECT_THAT(
      authorization(lifecycle),
      EndsWith("Signature=fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"));
  auto list = call("GET", "/");
  list.query = {{"max-keys", "2"}, {"prefix", "J"}};
  EXPECT_THAT(
      authorization(list),
      EndsWith("Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"));
}

TEST(Signing, signs_in_the_query_as_in_amazons_example) {
  auto get = call("GET", "/test.txt");
  get.payload_hash = "UNSIGNED-PAYLOAD";
  EXPECT_EQ(presign(get, keys, scope, 86400s),
            "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%"
            "2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&"
            "X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature="
            "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404");
}

TEST(Signing, a_session_token_is_sent_and_signed) {
  auto temporary = keys;
  temporary.session_token = "a/b+c=";
  const auto headers = sign(call("GET", "/x"), temporary, scope);
  EXPECT_EQ(headers.at("x-amz-security-token"), "a/b+c=");
  EXPECT_THAT(headers.at("authorization"), HasSubstr("x-amz-date;x-amz-security-token,"));
  EXPECT_FALSE(headers.contains("host"));
  EXPECT_THAT(presign(call("GET", "/x"), temporary, scope, 60s),
              HasSubstr("&X-Amz-Security-Token=a%2Fb%2Bc%3D&"));
}

TEST(Signing, encodes_all_characters_that_servers_do_not_accept) {
  EXPECT_EQ(net::url_encode("a b/ü~+*", "/"), "a%20b/%C3%BC~%2B%2A");
  EXPECT_EQ(net::url_encode("a/b"), "a%2Fb");
  EXPECT_EQ(query_text({{"uploads", ""}, {"X", "1 2"}}), "X=1%202&uploads=");
}

}  // namespace
}  // namespace pipeline::blobs::s3
