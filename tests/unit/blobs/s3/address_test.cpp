#include "blobs/s3/address.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "blobs/s3/credentials.hpp"
#include "blobs/s3/settings.hpp"
#include "core/diagnostic.hpp"
#include "core/error.hpp"

namespace pipeline::blobs::s3 {
namespace {

using testing::HasSubstr;

std::string url(const BucketAddress& address, const std::string& key = "k") {
  return address.origin() + address.path(key);
}

TEST(AnAddress,
     is_in_virtual_host_style_with_amazon_and_in_path_style_elsewhere_unless_told_otherwise) {
  EXPECT_EQ(url({"", "ml", "eu-central-1", {}}), "https://ml.s3.eu-central-1.amazonaws.com/k");
  EXPECT_EQ(url({"", "ml", "cn-north-1", {}}), "https://ml.s3.cn-north-1.amazonaws.com.cn/k");
  EXPECT_EQ(url({"", "ml", "eu-central-1", true}), "https://s3.eu-central-1.amazonaws.com/ml/k");
  EXPECT_EQ(url({"", "a.b", "eu-central-1", {}}), "https://s3.eu-central-1.amazonaws.com/a.b/k")
      << "a wildcard certificate covers a single label, and this bucket's name has two";
  EXPECT_EQ(url({"http://minio.lab:9000", "ml", "us-east-1", {}}), "http://minio.lab:9000/ml/k");
  EXPECT_EQ(url({"http://minio.lab:9000/", "ml", "us-east-1", false}),
            "http://ml.minio.lab:9000/k");
  EXPECT_EQ(url({"https://lab/s3", "ml", "us-east-1", {}}, ""), "https://lab/s3/ml");
  EXPECT_EQ(url({"", "ml", "us-east-1", false}, ""), "https://ml.s3.us-east-1.amazonaws.com/");
}

TEST(AnAddress, has_no_default_port) {
  EXPECT_EQ(BucketAddress("https://lab:443", "ml", "x", true).host(), "lab");
  EXPECT_EQ(BucketAddress("http://lab:443", "ml", "x", true).host(), "lab:443");
}

TEST(AnAddress, that_is_invalid_is_refused) {
  for (const char* bad : {"minio:9000", "ftp://x", "https://", "https://a b", "https://x?y"})
    EXPECT_THROW(BucketAddress(bad, "ml", "x", {}), core::InputError) << bad;
}

TEST(AnAddress, of_amazon_cannot_lead_elsewhere_by_its_region) {
  for (const char* bad : {"example.org/", "example.org:8443/", "a.example.org", "a/b", "a b"})
    EXPECT_THROW(BucketAddress("", "ml", bad, {}), core::InputError) << bad;
  EXPECT_EQ(BucketAddress("https://lab", "ml", "lab.example.org", {}).host(), "lab");
}

TEST(ABucket, is_read_with_its_prefix_and_stored) {
  BucketSettings store;
  EXPECT_TRUE(read_bucket("s3://ml-team/a/b/", store));
  EXPECT_EQ(store.bucket, "ml-team");
  EXPECT_EQ(store.prefix, "a/b/");
  store.path_style = false;
  store.endpoint = "https://x";
  const auto kept = store_settings(store);
  EXPECT_EQ(settings::remote_store_of(to_json(kept)), kept);
  EXPECT_EQ(kept.url, "s3://ml-team/a/b");
  const auto again = bucket_settings(kept);
  EXPECT_EQ(again.prefix, "a/b/");
  EXPECT_EQ(again.path_style, false);
  EXPECT_EQ(again.endpoint, "https://x");
  EXPECT_FALSE(settings::remote_store_of(to_json(settings::RemoteStoreSettings())).is_given());
  for (const char* bad :
       {"ml", "s3://", "s3://a", "s3://team/../x", "s3://team//x", "s3://m l", "s3://team/a?b"})
    EXPECT_FALSE(read_bucket(bad, store)) << bad;
}

TEST(ABucket, is_read_as_stored_by_version_0_1_0) {
  const auto kept = settings::remote_store_of(nlohmann::json::parse(
      R"({"bucket": "ml", "prefix": "a/b/", "endpoint": "https://x", "pod_endpoint": "", "region": "",
          "certificate_authority": "/ca.pem", "aws_profile": "", "path_style": false})"));
  EXPECT_EQ(kept, (settings::RemoteStoreSettings{"s3://ml/a/b",
                                                 {{"endpoint", "https://x"},
                                                  {"certificate_authority", "/ca.pem"},
                                                  {"path_style", "false"}}}));
  const auto whole = settings::remote_store_of(nlohmann::json::parse(R"({"bucket": "ml"})"));
  EXPECT_EQ(whole.url, "s3://ml");
}

TEST(Credentials, are_read_from_files_as_amazon_writes_them) {
  const auto file = parse_ini(
      "# mine\n[default]\naws_access_key_id = A\n\n[profile lab]\nregion=eu-west-1 \ns3 =\n  "
      "addressing_style = path\n; x = y\n");
  EXPECT_EQ(file.at("default").at("aws_access_key_id"), "A");
  EXPECT_EQ(file.at("profile lab").at("region"), "eu-west-1");
  EXPECT_FALSE(file.at("profile lab").contains("addressing_style"));
}

TEST(Credentials, of_a_program_expire) {
  const auto found = parse_process_output(
      R"({"Version": 1, "AccessKeyId": "A", "SecretAccessKey": "B", "SessionToken": "C", "Expiration": "2026-11-21T10:00:00Z"})",
      "x");
  EXPECT_EQ(found.keys.session_token, "C");
  EXPECT_EQ(found.expiry,
            std::chrono::sys_days(std::chrono::year(2026) / 11 / 21) + std::chrono::hours(10));
  const auto local = parse_process_output(
      R"({"AccessKeyId": "A", "SecretAccessKey": "B", "Expiration": "2026-11-21T12:00:00+02:00"})",
      "x");
  EXPECT_EQ(local.expiry, found.expiry) << "saml2aws writes the local time with its zone";
  try {
    parse_process_output("please log in", "vault");
    FAIL();
  } catch (const core::EnvironmentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("(vault) printed no keys"));
  }
}

}  // namespace
}  // namespace pipeline::blobs::s3
