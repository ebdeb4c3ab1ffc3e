// A remote store that pods cannot reach, as a folder is one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "blobs/remote_artifacts.hpp"
#include "core/diagnostic.hpp"
#include "core/file.hpp"
#include "orchestrators/kubernetes/kubernetes_orchestrator.hpp"
#include "support/run_task.hpp"

namespace pipeline::orchestrators {
namespace {

using testing::HasSubstr;

TEST(AStoreThatPodsCannotReach, is_refused_before_the_cluster_is_asked_unless_there_is_a_claim) {
  const core::TemporaryFolder folder;
  asio::io_context loop;
  blobs::RemoteArtifacts artifacts(loop, {"file://" + folder.path().string(), {}});
  for (const char* claim : {"", "team"}) {
    ImageLock images;
    const auto orchestrator =
        make_kubernetes_orchestrator(loop, {.state = folder.path(),
                                            .connection = {{"context", "no-such-context"},
                                                           {"claim", claim},
                                                           {"claim_path", folder.path().string()}},
                                            .artifacts = &artifacts,
                                            .images = &images});
    EXPECT_FALSE(orchestrator->capabilities().fetches_addresses);
    try {
      test::run_task(loop, orchestrator->check({}));
      ADD_FAILURE() << "checked";
    } catch (const core::InputError& error) {
      EXPECT_STREQ(claim, "");
      EXPECT_THAT(error.what(), HasSubstr("pods cannot reach the remote store file://"));
      EXPECT_THAT(error.what(), HasSubstr("name a `claim` beside it"));
    } catch (const core::EnvironmentError& error) {
      EXPECT_STREQ(claim, "team") << error.what();
    }
  }
}

}  // namespace
}  // namespace pipeline::orchestrators
