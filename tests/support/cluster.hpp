/// @file
/// The cluster that tests use: that of KUBECONFIG, else the test bed's
/// (scripts/testbed/kubernetes). Without a cluster, these tests are skipped.
#pragma once

#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

namespace pipeline::test {

class Cluster : public testing::Environment {
 public:
  void SetUp() override {
    constexpr const char* test_bed = "/var/lib/pipe-testbed/kubernetes/kubeconfig";
    if (std::getenv("KUBECONFIG")) return;
    if (!std::filesystem::exists(test_bed))
      GTEST_SKIP() << "no cluster: KUBECONFIG is not set, and scripts/testbed/kubernetes has not "
                      "been started";
    setenv("KUBECONFIG", test_bed, 1);
  }
};
inline const auto* const cluster = testing::AddGlobalTestEnvironment(new Cluster);

}  // namespace pipeline::test
