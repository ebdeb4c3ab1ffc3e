#include "serve/request.hpp"

#include <gtest/gtest.h>

#include "core/diagnostic.hpp"

namespace pipeline::serve {
namespace {

TEST(PageRequest, path_and_query_are_decoded_once) {
  const auto request = parse_target("/run/a%20b?x=1+2&x=%2B&y&z=%253D&=q");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->path, "/run/a b");
  EXPECT_EQ(request->value("x"), "1 2");
  EXPECT_EQ(request->values("x"), (std::vector<std::string>{"1 2", "+"}));
  EXPECT_EQ(request->value("y"), "");
  EXPECT_EQ(request->value("z"), "%3D");
  EXPECT_EQ(request->value("none"), "");
}

TEST(PageRequest, other_text_is_refused) {
  for (const char* target : {"", "*", "http://127.0.0.1/", "run", "/%", "/%4", "/%zz", "/%+1",
                             "/%00", "/%ff", "/?a=%c3", "/?%00=1", "/?a=\xff"})
    EXPECT_FALSE(parse_target(target)) << target;
  EXPECT_FALSE(parse_target(std::string_view("/?a=\0", 5)));
}

TEST(PageRequest, numbers_are_integers) {
  const auto request = parse_target("/?a=12&b=-1&c=1x&d=99999999999999999999");
  EXPECT_EQ(request->number("a", 5), 12);
  EXPECT_EQ(request->number("b", 5), -1);
  EXPECT_EQ(request->number("none", 5), 5);
  EXPECT_THROW(request->number("c", 5), core::InputError);
  EXPECT_THROW(request->number("d", 5), core::InputError);
}

}  // namespace
}  // namespace pipeline::serve
