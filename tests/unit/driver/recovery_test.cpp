#include "driver/recovery.hpp"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/file.hpp"
#include "core/scope_guard.hpp"
#include "driver/invocation.hpp"

namespace pipeline::driver {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

/// A run on a cluster, whose driver has died.
class DeadRun : public testing::Test {
 protected:
  DeadRun() {
    store::RunRecord run{.id = "one", .pipeline = "digits", .orchestrator = "kubernetes"};
    run.parameters = "{}";
    run.driver.process = store::ProcessId::self();
    run.driver.process.started += "0";  // An earlier process had the same number.
    store_.runs().add(run);
    Invocation invocation;
    invocation.connection["context"] = "gone";
    keep_invocation(store_, run.id, invocation);
    core::make_folders(store_.paths().work_folder(run.id));
  }

  core::TemporaryFolder folder_;
  std::vector<std::string> notes_;
  Workspace workspace_{{}, [this](std::string_view text) { notes_.emplace_back(text); }};
  store::RunStore& store_ = workspace_.store(folder_.path() / "state");
};

TEST_F(DeadRun, is_recovered_although_the_kubeconfig_has_lost_its_cluster) {
  const auto kubeconfig = folder_.path() / "kubeconfig";
  core::write_file_atomically(kubeconfig,
                              "current-context: here\n"
                              "contexts: [{name: here, context: {cluster: here, user: me}}]\n"
                              "clusters: [{name: here, cluster: {server: 'https://127.0.0.1:1'}}]\n"
                              "users: [{name: me, user: {token: secret}}]\n");
  ::setenv("KUBECONFIG", kubeconfig.c_str(), 1);
  const core::ScopeGuard unset([] { ::unsetenv("KUBECONFIG"); });
  EXPECT_EQ(recover_dead_runs(workspace_, store_).size(), 1u);
  EXPECT_EQ(store_.runs().find("one")->status, RunStatus::interrupted);
  EXPECT_FALSE(std::filesystem::exists(store_.paths().work_folder("one")));
  EXPECT_THAT(notes_, ElementsAre(AllOf(HasSubstr("cannot remove the remains"),
                                        HasSubstr("there is no context 'gone'"),
                                        HasSubstr("`pipe resume one` does it later"))));
}

}  // namespace
}  // namespace pipeline::driver
