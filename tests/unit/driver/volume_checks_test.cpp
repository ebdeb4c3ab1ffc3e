#include "driver/volume_checks.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace pipeline::driver {
namespace {

TEST(VolumeChecks, a_single_warning_names_the_steps_whose_volumes_are_not_in_their_key) {
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
  const auto found =
      check_volumes({{&plain, "docker"}, {&volume, "docker"}, {&claim, "kubernetes"}});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].severity, core::Severity::warning);
  EXPECT_EQ(found[0].span.line, 7U);
  EXPECT_NE(found[0].message.find("'volume', 'claim'"), std::string::npos) << found[0].message;
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
}

}  // namespace
}  // namespace pipeline::driver
