#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "store/published.hpp"
#include "store/record_texts.hpp"

namespace pipeline::store {
namespace {

class WrongReference : public testing::TestWithParam<const char*> {};

TEST_P(WrongReference, names_nothing) {
  EXPECT_FALSE(PublishedReference::parse(GetParam()).has_value());
}
INSTANTIATE_TEST_SUITE_P(Published, WrongReference,
                         testing::Values("model@", "model@x", "model@0", "model@-1", "model@1x",
                                         "model@1@2", "model@99999999999"));

TEST(PublishedReference, without_a_version_names_the_current_one) {
  const auto named = PublishedReference::parse("model");
  ASSERT_TRUE(named.has_value());
  EXPECT_EQ(named->name, "model");
  EXPECT_EQ(named->version, 0u);
}

TEST(PublishedReference, has_the_number_of_its_version) {
  const auto named = PublishedReference::parse("model@12");
  ASSERT_TRUE(named.has_value());
  EXPECT_EQ(named->name, "model");
  EXPECT_EQ(named->version, 12u);
}

TEST(PublishedRecord, with_a_number_that_is_no_integer_of_its_range_is_damaged) {
  const PublishedName name{
      "model",
      {{1, "r", "train", {"model", "model", core::sha256("m"), false, 3}, {}, false}},
      {1}};
  const auto good = nlohmann::json::parse(text_of(name));
  EXPECT_EQ(text_of(read_published("model", good.dump())), good.dump());
  for (const auto& number : {nlohmann::json(1e91), nlohmann::json(-1), nlohmann::json(1.5)}) {
    auto version = good, promoted = good, outputs = good;
    version["versions"][0]["version"] = number;
    version["promoted"][0] = number;
    promoted["promoted"].push_back(number);
    auto rows = nlohmann::json::parse(outputs["versions"][0]["outputs"].get<std::string>());
    rows[0][4] = number;
    outputs["versions"][0]["outputs"] = rows.dump();
    for (const auto& changed : {version, promoted, outputs})
      EXPECT_THROW(read_published("model", changed.dump()), core::EnvironmentError)
          << changed.dump();
  }
}

}  // namespace
}  // namespace pipeline::store
