#include "orchestrators/docker/user_entry.hpp"

#include <gtest/gtest.h>

namespace pipeline::orchestrators::docker_engine {
namespace {

constexpr const char* debian =
    "root:x:0:0:root:/root:/bin/bash\n"
    "daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n"
    "node:x:1000:1000::/home/node:/bin/bash";

TEST(UserEntry, numbers_differ_from_names) {
  const auto both = user_numbers("1000:100");
  ASSERT_TRUE(both);
  EXPECT_EQ(both->uid + "/" + both->gid, "1000/100");
  EXPECT_EQ(user_numbers("1234")->gid, "0") << "the engine's default";
  EXPECT_EQ(user_numbers("1234:staff")->gid, "0") << "a group by name is not looked up";
  for (const auto* other : {"", "app", "app:1", "0", "0:0", "00", "1x", "12345678901"})
    EXPECT_FALSE(user_numbers(other)) << other;
}

TEST(UserEntry, an_entry_is_found_by_its_number) {
  EXPECT_EQ(name_of(debian, "1000"), "node");
  EXPECT_EQ(name_of(debian, "0"), "root");
  EXPECT_EQ(name_of(debian, "100"), "");
  EXPECT_EQ(name_of("no colons\n\n:\na:b\n", "1"), "");
  EXPECT_EQ(name_of("", "1"), "");
}

TEST(UserEntry, a_line_is_added) {
  EXPECT_EQ(with_entry(debian, {"2000", "100"}, "pipe"),
            std::string(debian) + "\npipe:x:2000:100::/pipe/scratch:/bin/sh\n");
  EXPECT_EQ(with_entry("", {"2000", "100"}, "pipe"), "pipe:x:2000:100::/pipe/scratch:/bin/sh\n");
}

TEST(UserEntry, a_name_is_used_once) {
  const auto text = with_entry("pipe:x:999:999::/:/bin/false\n", {"2000", "100"}, "pipe");
  EXPECT_EQ(name_of(text, "2000"), "pipe-2000");
  EXPECT_EQ(name_of(text, "999"), "pipe");
}

}  // namespace
}  // namespace pipeline::orchestrators::docker_engine
