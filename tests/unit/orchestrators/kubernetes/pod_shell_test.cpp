#include "orchestrators/kubernetes/pod_shell.hpp"

#include <gtest/gtest.h>

namespace pipeline::orchestrators::kubernetes {
namespace {

TEST(PodShell, the_servers_status_has_the_exit_code) {
  EXPECT_EQ(code_in_status(R"({"metadata":{},"status":"Success"})"), 0);
  EXPECT_EQ(code_in_status(R"({"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[)"
                           R"({"reason":"ExitCode","message":"5"}]}})"),
            5);
}

TEST(PodShell, a_command_that_was_not_run_has_no_exit_code) {
  EXPECT_EQ(code_in_status(R"({"status":"Failure","reason":"InternalError","message":"no agent"})"),
            std::nullopt);
  EXPECT_EQ(code_in_status(""), std::nullopt) << "the connection was lost";
  EXPECT_EQ(code_in_status(R"({"status":"Failure","details":{"causes":[{"reason":"ExitCode",)"
                           R"("message":"many"}]}})"),
            std::nullopt);
}

}  // namespace
}  // namespace pipeline::orchestrators::kubernetes
