#include <gtest/gtest.h>

#include "orchestrators/kubernetes/pod_usage.hpp"

namespace pipeline::orchestrators {
namespace {

using std::chrono::milliseconds;

class ForgedUsage : public testing::TestWithParam<const char*> {};

TEST_P(ForgedUsage, says_no_time) {
  core::Usage usage;
  EXPECT_FALSE(read_pod_usage(GetParam(), usage).has_value());
}
INSTANTIATE_TEST_SUITE_P(Pod, ForgedUsage,
                         testing::Values("", "[]", "{", "7", R"({"running_ms":-1})",
                                         R"({"running_ms":"1"})", R"({"running_ms":1e300})",
                                         R"({"running_ms":18446744073709551615})",
                                         R"({"running_ms":9007199254740992})"));

TEST(PodUsage, has_what_the_agent_says) {
  core::Usage usage;
  EXPECT_EQ(read_pod_usage(R"({"running_ms":1500,"user_us":7,"peak_memory":4096})", usage),
            milliseconds(1500));
  EXPECT_EQ(usage.user, std::chrono::microseconds(7));
  EXPECT_EQ(usage.peak_memory, 4096u);
  EXPECT_FALSE(usage.written.has_value());
}

}  // namespace
}  // namespace pipeline::orchestrators
