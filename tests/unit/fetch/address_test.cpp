#include "fetch/address.hpp"

#include <gtest/gtest.h>

namespace pipeline::fetch {
namespace {

TEST(Addresses, of_objects_and_folders_are_told_apart) {
  const auto object = address_of("s3://team/raw/a b.csv", "v1");
  EXPECT_EQ(object.bucket, "team");
  EXPECT_EQ(object.key, "raw/a b.csv");
  EXPECT_EQ(object.version, "v1");
  EXPECT_FALSE(object.is_folder());
  EXPECT_EQ(object.server(), "s3://team");
  EXPECT_TRUE(address_of("s3://team/raw/", "").is_folder());
  EXPECT_TRUE(address_of("s3://team/", "").is_folder());
  const auto page = address_of("https://host:8443/a/?b=c#d", "");
  EXPECT_EQ(page.url, "https://host:8443/a/?b=c");
  EXPECT_FALSE(page.is_s3());
  EXPECT_FALSE(page.is_folder());
  EXPECT_EQ(page.server(), "https://host:8443");
}

TEST(Addresses, are_shown_without_a_query) {
  EXPECT_EQ(without_query("https://host/a?sig=secret"), "https://host/a");
  EXPECT_EQ(without_query("s3://team/what?"), "s3://team/what?");
}

TEST(Redirections, are_followed_by_https_only_to_https) {
  EXPECT_EQ(redirected("https://a/b", "https://c/d"), "https://c/d");
  EXPECT_EQ(redirected("https://a/b", "/d#e"), "https://a/d");
  EXPECT_EQ(redirected("https://a:1/b", "//c/d"), "https://c/d");
  EXPECT_EQ(redirected("https://a/b", "http://c/d"), "");
  EXPECT_EQ(redirected("http://a/b", "http://c/d"), "http://c/d");
  EXPECT_EQ(redirected("https://a/b", "file:///etc/passwd"), "");
  EXPECT_EQ(redirected("https://a/b", "https://me:secret@c/d"), "");
  EXPECT_EQ(redirected("https://a/b", "https://c/d\r\nX: y"), "");
}

TEST(Redirections, do_not_lead_from_elsewhere_to_this_machine_or_its_cloud) {
  for (const char* local :
       {"http://127.0.0.1/x", "http://localhost:80/x", "http://169.254.169.254/latest/meta-data",
        "http://[::1]/x", "http://[::ffff:127.0.0.1]/x", "http://[fe80::1]/x", "http://0.0.0.0/x",
        "http://metadata.google.internal/x",
        // Other ways to write them.
        "http://2130706433/x", "http://0x7f.1/x", "http://0251.0376.169.254/x",
        "http://2852039166/latest/meta-data", "http://LocalHost/x", "http://localhost.:80/x",
        "http://%6cocalhost/x", "http://metadata.google.internal./x", "http://[0:0:0:0:0:0:0:1]/x",
        "http://[0::ffff:a9fe:a9fe]/x", "http://[FE80::1]/x", "http://[fd00:ec2::254]/x",
        "http://[0:0:0:0:0:ffff:127.0.0.1]/x", "http://[64:ff9b::169.254.169.254]/x",
        "http://[64:ff9b:1::7f00:1]/x", "http://[2002:7f00:1::]/x", "http://[::127.0.0.1]/x",
        "http://[fe80::1%25eth0]/x", "http://[fd12::1]/x", "http://[fec0::1]/x",
        "http://100.100.100.200/latest/meta-data", "http://192.0.0.192/x", "http://168.63.129.16/x",
        "http://metadata/computeMetadata/v1"})
    EXPECT_EQ(redirected("http://example.org/data", local), "") << local;
  EXPECT_EQ(redirected("http://127.0.0.1:1/x", "http://127.0.0.1:2/y"), "http://127.0.0.1:2/y");
  for (const char* other : {"http://8.8.8.8/x", "http://[2001:db8::1]:80/x", "http://local/x"})
    EXPECT_EQ(redirected("http://example.org/data", other), other);
}

TEST(Addresses, of_this_machine_are_recognised_behind_a_login_and_percent_encoding) {
  for (const char* local : {"https://127.0.0.1/", "https://x@127.0.0.1/", "https://x:y@[::1]:80/",
                            "https://a@b@localhost", "https://%6cocalhost/",
                            "https://%31%32%37.0.0.1:80/", "https://[fe80::1%25eth0]/"})
    EXPECT_TRUE(is_local(local)) << local;
  for (const char* other : {"https://127.0.0.1@example.org/", "https://example.org/@localhost",
                            "https://localhost%2eexample.org/", "s3://localhost/x"})
    EXPECT_FALSE(is_local(other)) << other;
}

TEST(Addresses, have_the_same_host_with_and_without_the_default_port) {
  EXPECT_TRUE(has_same_host("https://Host/a", "https://host:443/b"));
  EXPECT_TRUE(has_same_host("http://host:80/a", "https://host/b"));
  EXPECT_TRUE(has_same_host("https://[::1]:443/", "https://[::1]/"));
  EXPECT_FALSE(has_same_host("https://host:80/a", "https://host/b"));
  EXPECT_FALSE(has_same_host("https://host:8443/a", "https://host/b"));
  EXPECT_FALSE(has_same_host("https://host/a", "https://me@host/a"));
}

TEST(Keys, that_are_not_paths_are_recognised) {
  for (const char* safe : {"a", "a/b.txt", "a b/c", "\xc3\xa9"}) EXPECT_TRUE(is_safe_path(safe));
  for (const char* unsafe : {"", "/a", "a//b", "../a", "a/../b", "a/./b", "a\nb", "\xff"})
    EXPECT_FALSE(is_safe_path(unsafe)) << unsafe;
  EXPECT_FALSE(is_safe_path(std::string(256, 'a')));
}

}  // namespace
}  // namespace pipeline::fetch
