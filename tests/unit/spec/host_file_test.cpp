#include "spec/host_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/diagnostic.hpp"
#include "support/error_text.hpp"

namespace pipeline::spec {
namespace {

using testing::HasSubstr;

std::string host_error(std::string_view text) {
  return test::error_text([&] { parse_host(text, "host.yaml"); });
}

TEST(HostFile, names_are_translated_to_attributes_of_ecs) {
  const auto attributes = parse_host(
      "instance_type: g5.xlarge\navailability_zone: eu-1a\nattributes: {rack: a1, gpus: 4}\n",
      "host.yaml");
  EXPECT_EQ(attributes, (gpu::HostAttributes{{"ecs.instance-type", "g5.xlarge"},
                                             {"ecs.availability-zone", "eu-1a"},
                                             {"rack", "a1"},
                                             {"gpus", "4"}}));
}

TEST(HostFile, errors_have_their_place) {
  EXPECT_THAT(host_error("instance-type: g5.xlarge\n"),
              HasSubstr("host.yaml:1:1: error: unknown key 'instance-type' in the host file"));
  EXPECT_THAT(host_error("instance-type: g5.xlarge\n"), HasSubstr("did you mean 'instance_type'?"));
  EXPECT_THAT(host_error("attributes: {a b: c}\n"), HasSubstr("must be an attribute's name"));
  EXPECT_THAT(host_error("attributes: [a]\n"), HasSubstr("must be a map"));
  EXPECT_THAT(host_error("- a\n"), HasSubstr("a host file must be a map, not a list"));
}

TEST(HostFile, this_machines_attributes_are_known) {
  ::unsetenv("PIPE_HOST");
  ::setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
  const auto attributes = host_attributes();
  EXPECT_EQ(attributes.at("ecs.os-type"), "linux");
  EXPECT_FALSE(attributes.at("ecs.cpu-architecture").empty());
  ::setenv("PIPE_HOST", "/nonexistent/host.yaml", 1);
  EXPECT_THROW(host_attributes(), core::InputError);
  ::unsetenv("PIPE_HOST");
}

}  // namespace
}  // namespace pipeline::spec
