// Named places to run in, and what they put under a pipeline's settings.
#include "spec/profile_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "core/diagnostic.hpp"
#include "core/file.hpp"
#include "support/error_text.hpp"

namespace pipeline::spec {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ProfileTest : public testing::Test {
 protected:
  void SetUp() override { ::setenv("PIPE_PROFILES", (folder.path() / "mine.yaml").c_str(), 1); }
  void TearDown() override { ::unsetenv("PIPE_PROFILES"); }
  void write(const char* name, const std::string& text) {
    core::write_file_atomically(folder.path() / name, text);
  }
  core::TemporaryFolder folder;
};

TEST_F(ProfileTest, the_users_profile_is_preferred_to_one_beside_the_pipeline) {
  write("mine.yaml", "both: {orchestrator: local}\nhome: {orchestrator: docker, jobs: 3}\n");
  write("profiles.yaml",
        "lab: {orchestrator: kubernetes, context: lab, namespace: ml, registry: "
        "r.example:5000/team, state: shared, service_account: driver}\nboth: {orchestrator: "
        "docker}\n");
  const auto profiles = find_profiles(folder.path());
  ASSERT_EQ(profiles.size(), 3u);
  EXPECT_EQ(profiles.at("both").orchestrator, "local");
  const auto& lab = profiles.at("lab");
  EXPECT_EQ(lab.orchestrator, "kubernetes");
  EXPECT_EQ(lab.field("context"), "lab");
  EXPECT_EQ(lab.field("namespace"), "ml");
  EXPECT_EQ(lab.settings.docker.target_repository, "r.example:5000/team");
  EXPECT_EQ(lab.state, folder.path() / "shared");
  EXPECT_EQ(lab.field("service_account"), "driver");
  EXPECT_EQ(profiles.at("home").jobs, 3u);
}

TEST_F(ProfileTest, jobs_are_one_or_more_as_those_of_the_option) {
  for (const auto* count : {"0", "100001"}) {
    write("profiles.yaml", "a: {jobs: " + std::string(count) + "}\n");
    try {
      find_profiles(folder.path());
      FAIL() << count;
    } catch (const core::InputError& error) {
      EXPECT_THAT(error.what(), HasSubstr("'jobs' must be a whole number from 1 to 100000"));
    }
  }
}

TEST_F(ProfileTest, an_artifact_store_is_a_bucket_with_its_server) {
  write("profiles.yaml",
        "short: {artifact_store: s3://team/pipe}\nlong:\n  artifact_store: {bucket: s3://team, "
        "endpoint: 'https://lab:9000', region: lab, path_style: "
        "false, "
        "certificate_authority: ca.pem, aws_profile: lab, verify: consumer}\n");
  const auto profiles = find_profiles(folder.path());
  EXPECT_EQ(profiles.at("short").remote_store.url, "s3://team/pipe");
  const auto& store = profiles.at("long").remote_store;
  EXPECT_EQ(store.url, "s3://team");
  EXPECT_EQ(store.option("endpoint"), "https://lab:9000");
  EXPECT_EQ(store.option("certificate_authority"), folder.path() / "ca.pem");
  EXPECT_EQ(store.option("aws_profile"), "lab");
  EXPECT_EQ(store.option("verify"), "consumer");
}

TEST_F(ProfileTest, mistakes_in_an_artifact_store_are_reported_together) {
  write("profiles.yaml",
        "a: {artifact_store: team/pipe}\nb: {artifact_store: {endpoint: 'lab:9000', buckets: "
        "x}}\nc: {artifact_store: s3://team, claim: {name: x, "
        "path: "
        "y}}\nd: {artifact_store: {bucket: s3://team, verify: consumers}}\n");
  try {
    find_profiles(folder.path());
    FAIL();
  } catch (const core::InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("'team/pipe' is not the address of a remote store"));
    EXPECT_THAT(error.what(), HasSubstr("write `s3://team/pipe`"));
    EXPECT_THAT(error.what(),
                HasSubstr("'endpoint' must be `https://HOST[:PORT]`, not 'lab:9000'"));
    EXPECT_THAT(error.what(), HasSubstr("did you mean 'bucket'?"));
    EXPECT_THAT(error.what(), HasSubstr("'verify' is one of: driver, consumer"));
    EXPECT_THAT(error.what(), HasSubstr("did you mean 'consumer'?"));
    EXPECT_THAT(error.what(), HasSubstr("either through a claim or through a remote store"));
  }
}

TEST_F(ProfileTest, an_artifact_store_can_be_a_folder_also_beside_a_claim) {
  write(
      "profiles.yaml",
      "a: {artifact_store: 'file:///mnt/x/'}\nb: {artifact_store: ./x, claim: {name: c, path: y}}\n"
      "c: {artifact_store: {bucket: /mnt/x y}}\n");
  const auto profiles = find_profiles(folder.path());
  EXPECT_EQ(profiles.at("a").remote_store.url, "file:///mnt/x");
  EXPECT_EQ(profiles.at("b").remote_store.url, "file://" + (folder.path() / "x").string());
  EXPECT_EQ(profiles.at("c").remote_store.url, "file:///mnt/x y");
}

TEST_F(ProfileTest, the_cache_of_nodes_is_a_path_or_a_claim) {
  write("profiles.yaml",
        "a: {artifact_store: s3://team, node_cache: {path: /var/cache/pipe, budget: 2KiB}}\n"
        "b: {artifact_store: s3://team, node_cache: {path: pvc/scratch, budget: 1000}}\n");
  const auto profiles = find_profiles(folder.path());
  EXPECT_EQ(profiles.at("a").field("node_cache"), "/var/cache/pipe");
  EXPECT_EQ(profiles.at("a").field("node_cache_budget"), "2048");
  EXPECT_EQ(profiles.at("b").field("node_cache"), "pvc/scratch");
}

TEST_F(ProfileTest, a_folder_has_no_server) {
  write("profiles.yaml", "a: {artifact_store: {bucket: /mnt/x, endpoint: 'https://lab'}}\n");
  EXPECT_THAT(test::error_text([&] { find_profiles(folder.path()); }), HasSubstr("'endpoint'"));
}

TEST_F(ProfileTest, an_address_of_another_scheme_is_not_said_to_be_a_bucket_of_s3) {
  write("profiles.yaml", "a: {artifact_store: 'gs://team'}\n");
  const auto error = test::error_text([&] { find_profiles(folder.path()); });
  EXPECT_THAT(error, HasSubstr("'gs://team' is not the address of a remote store"));
  EXPECT_THAT(error, testing::Not(HasSubstr("write `s3://gs")));
}

TEST_F(ProfileTest, unknown_profile_is_refused_with_the_likely_name) {
  write("profiles.yaml", "cluster: {orchestrator: kubernetes}\n");
  try {
    find_profile("clusters", folder.path());
    FAIL();
  } catch (const core::InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("there is no profile 'clusters'"));
    EXPECT_THAT(error.what(), HasSubstr("did you mean 'cluster'?"));
  }
}

TEST_F(ProfileTest, the_error_without_any_profile_names_the_files_that_can_have_them) {
  try {
    find_profile("lab", folder.path());
    FAIL();
  } catch (const core::InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr((folder.path() / "profiles.yaml").string()));
    EXPECT_THAT(error.what(), HasSubstr((folder.path() / "mine.yaml").string()));
  }
}

TEST_F(ProfileTest, the_pipelines_settings_win_and_changes_by_the_profile_are_reported) {
  write("profiles.yaml",
        "lab: {settings: {docker: {parent_image: 'cuda:12', platform: linux/arm64}, resources: "
        "{memory: 2GiB}}}\n");
  PipelineSpec pipeline;
  pipeline.steps.resize(2);
  pipeline.steps[0].name = "train";
  pipeline.steps[1].name = "plot";
  pipeline.steps[1].settings->docker.parent_image = "debian:bookworm-slim";
  const auto changes = apply(find_profile("lab", folder.path()), pipeline);
  EXPECT_EQ(pipeline.steps[0].settings->docker.parent_image, "cuda:12");
  EXPECT_EQ(pipeline.steps[1].settings->docker.parent_image, "debian:bookworm-slim");
  EXPECT_EQ(pipeline.steps[1].settings->docker.platform, "linux/arm64");
  EXPECT_THAT(changes, ElementsAre("docker.parent_image is cuda:12 for train",
                                   "docker.platform is linux/arm64 for train, plot",
                                   "resources.memory is 2 GiB for train, plot"));
}

TEST_F(ProfileTest, a_profile_with_only_an_orchestrator_changes_no_settings) {
  write("profiles.yaml", "lab: {orchestrator: kubernetes}\n");
  PipelineSpec pipeline;
  pipeline.steps.resize(1);
  EXPECT_THAT(apply(find_profile("lab", folder.path()), pipeline), IsEmpty());
}

}  // namespace
}  // namespace pipeline::spec
