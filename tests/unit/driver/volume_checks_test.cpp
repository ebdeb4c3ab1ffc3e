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

}  // namespace
}  // namespace pipeline::driver
