#include "settings/decode.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "settings/reserved_variables.hpp"

namespace pipeline::settings {
namespace {

using nlohmann::json;

TEST(Scalars, plain_scalars_have_their_meaning_in_yaml_1_2) {
  const std::vector<std::pair<std::string, json>> cases{
      {"true", true},
      {"False", false},
      {"yes", "yes"},
      {"12", 12},
      {"-0", 0},
      {"+7", 7},
      {"0x1f", 31},
      {"0o17", 15},
      {"017", 17},
      {"1.5", 1.5},
      {".5", 0.5},
      {"1.", 1.0},
      {"1e3", 1000.0},
      {"-1.5E-2", -0.015},
      {"1.2.3", "1.2.3"},
      {"e3", "e3"},
      {".", "."},
      {"-", "-"},
      {"+", "+"},
      {"0x", "0x"},
      {"1_000", "1_000"},
      {"~", nullptr},
      {"", nullptr},
      {"9223372036854775807", 9223372036854775807},
      {"18446744073709551615", 18446744073709551615u}};
  for (const auto& [text, expected] : cases) EXPECT_EQ(plain_to_json(text), expected) << text;
  for (const char* text :
       {"18446744073709551616", "-9223372036854775809", "1e999", ".inf", "-.INF", ".nan"})
    EXPECT_FALSE(plain_to_json(text)) << text;
}

TEST(ReservedVariables, are_those_that_pipe_sets_for_nodes_and_limits_too) {
  for (const auto* name : {"PIPE_RUN_ID", "PIPE_INPUT_DATA", "PIPE_NODE_RANK", "PIPE_NODE_COUNT",
                           "PIPE_NODE_ADDRESSES", "PIPE_RENDEZVOUS_ID", "PIPE_CPUS", "PIPE_MEMORY"})
    EXPECT_TRUE(is_reserved_variable(name)) << name;
  for (const auto* name : {"PIPE_MINE", "NODE_RANK", "MEMORY"})
    EXPECT_FALSE(is_reserved_variable(name)) << name;
}

}  // namespace
}  // namespace pipeline::settings
