#include "serve/guard.hpp"

#include <gtest/gtest.h>

namespace pipeline::serve {
namespace {

const std::string token = "0123456789abcdef0123456789abcdef";

TEST(Guard, takes_the_token_from_the_address_or_a_header) {
  const Guard guard(token, "127.0.0.1");
  const auto judge = [&](RequestOrigin origin) {
    origin.host = "127.0.0.1:7473";
    return guard.judge(origin);
  };
  const std::string bearer = "Bearer " + token;
  EXPECT_EQ(judge({.token = token}), Verdict::allowed);
  EXPECT_EQ(judge({.authorization = bearer}), Verdict::allowed);
  EXPECT_EQ(judge({}), Verdict::no_token);
  EXPECT_EQ(judge({.token = "0123456789abcdef0123456789abcdeg"}), Verdict::no_token);
  EXPECT_EQ(judge({.authorization = token}), Verdict::no_token);
}

TEST(Guard, allows_no_change_by_an_address_or_from_another_site) {
  const Guard guard(token, "127.0.0.1");
  const std::string bearer = "Bearer " + token;
  const auto judge = [&](RequestOrigin origin) {
    origin.host = "127.0.0.1:7473";
    origin.changes = true;
    return guard.judge(origin);
  };
  EXPECT_EQ(judge({.authorization = bearer}), Verdict::allowed);
  EXPECT_EQ(judge({.authorization = bearer, .fetch_site = "same-origin"}), Verdict::allowed);
  EXPECT_EQ(judge({.token = token}), Verdict::no_token);
  for (const char* site : {"cross-site", "same-site"})
    EXPECT_EQ(judge({.authorization = bearer, .fetch_site = site, .fetch_mode = "navigate"}),
              Verdict::cross_site);
}

TEST(Guard, does_not_accept_an_empty_token_where_there_is_one) {
  const Guard guard(token, "127.0.0.1");
  EXPECT_EQ(guard.judge({.host = "localhost", .authorization = "Bearer "}), Verdict::no_token);
}

TEST(Guard, accepts_only_host_names_that_no_other_site_can_have) {
  const Guard guard(token, "127.0.0.1"), open(token, "0.0.0.0");
  for (const char* host : {"127.0.0.1", "127.0.0.1:1", "localhost:9000", "[::1]:7473", "127.1.2.3"})
    EXPECT_EQ(guard.judge({.host = host, .token = token}), Verdict::allowed) << host;
  for (const char* host : {"", "evil.example", "127.0.0.1.evil.example", "localhost.evil.example",
                           "10.0.0.1", "[10.0.0.1", "127.evil", "[::1]:7473.evil.example",
                           "localhost:evil", "[::1]evil", "127.0.0.1::1"})
    EXPECT_EQ(guard.judge({.host = host, .token = token}), Verdict::wrong_host) << host;
  EXPECT_EQ(open.judge({.host = "10.0.0.1:7473", .token = token}), Verdict::allowed);
  EXPECT_EQ(open.judge({.host = "[fe80::1]:7473", .token = token}), Verdict::allowed);
  for (const std::string_view host : {std::string_view("evil.example"), std::string_view("[::1"),
                                      std::string_view("[::\0.evil.example]", 19),
                                      std::string_view("127.0.0.1\0.evil.example", 23)})
    EXPECT_EQ(open.judge({.host = host, .token = token}), Verdict::wrong_host) << host;
}

TEST(Guard, accepts_its_own_name_in_lower_case_as_browsers_send_it) {
  const Guard guard(token, "Workstation.Example");
  EXPECT_EQ(guard.judge({.host = "workstation.example:7473", .token = token}), Verdict::allowed);
  EXPECT_EQ(guard.judge({.host = "other.example:7473", .token = token}), Verdict::wrong_host);
}

TEST(Guard, allows_other_sites_links_and_no_more) {
  const Guard guard(token, "127.0.0.1");
  const auto judge = [&](std::string_view site, std::string_view mode) {
    return guard.judge(
        {.host = "localhost", .fetch_site = site, .fetch_mode = mode, .token = token});
  };
  EXPECT_EQ(judge("same-origin", "cors"), Verdict::allowed);
  EXPECT_EQ(judge("none", "navigate"), Verdict::allowed);
  EXPECT_EQ(judge("cross-site", "navigate"), Verdict::allowed);
  EXPECT_EQ(judge("cross-site", "no-cors"), Verdict::cross_site);
  EXPECT_EQ(judge("same-site", "cors"), Verdict::cross_site) << "another port of this machine";
}

TEST(Guard, tokens_are_random) {
  const auto one = new_token(), other = new_token();
  EXPECT_EQ(one.size(), 32u);
  EXPECT_EQ(one.find_first_not_of("0123456789abcdef"), one.npos);
  EXPECT_NE(one, other);
}

}  // namespace
}  // namespace pipeline::serve
