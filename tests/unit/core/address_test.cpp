#include "core/address.hpp"

#include <gtest/gtest.h>

namespace pipeline::core {
namespace {

TEST(Address, credentials_are_left_out) {
  EXPECT_EQ(without_credentials("https://user:token@host/x"), "https://host/x");
  EXPECT_EQ(without_credentials("https://user:p@ss#w?d@host/x@1"), "https://host/x@1");
  EXPECT_EQ(without_credentials("https://token@host"), "https://host");
  EXPECT_EQ(without_credentials("a @ https://u@h/a b @ https://v:w@h/b"),
            "a @ https://h/a b @ https://h/b");
  for (const auto* text : {"six==1.16.0", "https://host/x@1", "https://host", "a @ b", "://"})
    EXPECT_EQ(without_credentials(text), text);
}

TEST(Address, user_name_of_ssh_is_no_secret) {
  EXPECT_EQ(without_credentials("a @ git+ssh://git@host/a.git"), "a @ git+ssh://git@host/a.git");
  EXPECT_EQ(without_credentials("ssh://git:secret@host/a.git"), "ssh://git@host/a.git");
}

TEST(Address, logins_and_queries_are_masked_in_place) {
  EXPECT_EQ(masked_addresses("x: https://user:p@ss@host/x  # a?b"),
            "x: https://*********@host/x  # a?b");
  EXPECT_EQ(masked_addresses("'https://h/x?sig=a&b=c' ?"), "'https://h/x?*********' ?");
  EXPECT_EQ(masked_addresses("ssh://git:secret@host/a"), "ssh://git*******@host/a");
  for (const auto* text : {"a: b?c", "https://host/x@1", "git+ssh://git@host/a.git", "://"})
    EXPECT_EQ(masked_addresses(text), text);
}

}  // namespace
}  // namespace pipeline::core
