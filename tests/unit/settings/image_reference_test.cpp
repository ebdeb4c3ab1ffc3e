#include "settings/image_reference.hpp"

#include <gtest/gtest.h>

namespace pipeline::settings {
namespace {

TEST(ImageReferences, are_read_as_engines_read_them) {
  const std::string digest(64, 'a');
  for (const auto& text :
       {std::string("a"), std::string("a/b:1"), std::string("UPPER/x:1"),
        std::string("host:5000/a/b"), std::string("[2001:db8::1]:5000/x"), std::string("[::1]/x:1"),
        std::string("localhost/x"), std::string("a_b.c/x"), std::string("a__b.c-d/x:1"),
        "a@sha256:" + digest, "a:1@sha512:" + digest + digest})
    EXPECT_TRUE(is_image_reference(text)) << text;
  for (const auto& text :
       {std::string("A"), std::string("a/B"), std::string("[::1/x"), std::string("[]/x"),
        std::string("[::1]x/x"), std::string("host:/x"), std::string("A_b.c/x"),
        std::string("a_b.c:5000/x"), std::string("a___b.c/x"), "a@md5:" + digest.substr(32),
        "a@sha256:" + digest.substr(1), "a@sha256:" + std::string(64, 'A'), std::string("a:")})
    EXPECT_FALSE(is_image_reference(text)) << text;
}

TEST(ImageReferences, begin_with_a_registry_only_if_the_first_part_cannot_be_a_name_on_docker_hub) {
  EXPECT_EQ(registry_host("UPPER/x:1"), "UPPER");
  EXPECT_EQ(registry_host("user/x:1"), "");
  EXPECT_EQ(registry_host("UPPER"), "");
  EXPECT_EQ(registry_host("a.b/x"), "a.b");
}

}  // namespace
}  // namespace pipeline::settings
