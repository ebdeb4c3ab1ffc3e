#include "driver/volume_checks.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace pipeline::driver {
namespace {

TEST(VolumeChecks, each_setting_that_is_not_in_the_key_has_one_warning_that_names_its_steps) {
  StepSpec plain, volume, claim, versioned, uncached;
  plain.name = "plain";
  volume.name = "volume";
  volume.line = 7;
  volume.settings->docker.volumes = {"./data:/data"};
  claim.name = "claim";
  *claim.settings->kubernetes.volumes = nlohmann::json::array({"secret/x:/x", "pvc/data:/data"});
  versioned = uncached = volume;
  versioned.version = "2024-01";
  uncached.cache = false;
  EXPECT_TRUE(check_volumes({{&plain, "docker"},
                             {&volume, "local"},
                             {&versioned, "docker"},
                             {&uncached, "docker"},
                             {&claim, "docker"}})
                  .empty());
  auto second = volume;
  second.name = "second";
  const auto found = check_volumes(
      {{&plain, "docker"}, {&volume, "docker"}, {&claim, "kubernetes"}, {&second, "docker"}});
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].severity, core::Severity::warning);
  EXPECT_EQ(found[0].span.line, 7U);
  EXPECT_TRUE(found[0].message.starts_with("steps 'volume', 'second' read `docker.volumes`"))
      << found[0].message;
  EXPECT_TRUE(found[1].message.starts_with("step 'claim' reads `kubernetes.volumes`"))
      << found[1].message;
  EXPECT_NE(found[0].suggestion.find("version:"), std::string::npos);
}

TEST(VolumeChecks, the_warning_about_a_large_matrix_names_five_steps_and_counts_the_others) {
  std::vector<StepSpec> instances(1000);
  std::vector<PlacedStep> placed;
  for (std::size_t i = 0; i < instances.size(); ++i) {
    instances[i].name = "fit." + std::to_string(i);
    instances[i].settings->docker.volumes = {"./data:/data"};
    placed.emplace_back(&instances[i], "docker");
  }
  const auto found = check_volumes(placed);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NE(found[0].message.find("'fit.3', 'fit.4' and 995 others read"), std::string::npos)
      << found[0].message;
  placed.resize(6);
  EXPECT_NE(check_volumes(placed)[0].message.find("and 1 other read"), std::string::npos);
}

}  // namespace
}  // namespace pipeline::driver
