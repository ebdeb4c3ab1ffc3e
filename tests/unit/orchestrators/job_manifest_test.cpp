#include "orchestrators/kubernetes/manifest.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/diagnostic.hpp"
#include "support/golden.hpp"

namespace pipeline {
namespace {

using nlohmann::json;
using testing::HasSubstr;

struct NoLog : LogSink {
  void write(Stream, std::string_view) override {}
};

class JobManifest : public testing::Test {
 protected:
  JobManifest() {
    step.name = "train";
    step.command.arguments = {Template{{"python"}}, Template{{"train.py"}}, Template{{"$(HOME) $$ ${x}"}}};
    place.image = "pipe:env-1a2b";
    place.user = "1000:100";
    place.owner = "0123456789abcdef";
    place.agent = "/state/kubernetes/agent";
  }
  Attempt attempt() {
    return {.step = step,
            .pipeline = "digits",
            .run_id = "20261121-081500-7f3a9c",
            .number = 2,
            .code = "/state/code",
            .inputs = {{"data", "d.csv", "/state/artifact"}},
            .outputs = "/state/out",
            .output_names = {{"model", "model.pkl"}},
            .scratch = "/state/scratch",
            .environment = {{"A", "costs $(5)"}, {"TOKEN", "from the file"}},
            .secrets = {{"TOKEN", "hush"}},
            .gpus = {},
            .log = log,
            .cancel = cancel};
  }
  json job() { return job_manifest(attempt(), place); }
  json pod() { return job()["spec"]["template"]["spec"]; }
  json container() { return pod()["containers"][0]; }
  std::string refusal() {
    try {
      job();
    } catch (const InputError& error) { return error.what(); }
    return "no refusal";
  }
  void expect(const std::string& name) {
    test::expect_golden(job().dump(2) + "\n", std::filesystem::path(PIPELINE_SOURCE_DIR) / "tests/golden/kubernetes", name);
  }

  StepSpec step;
  ClusterPlace place;
  NoLog log;
  CancelSource cancel;
};

TEST_F(JobManifest, what_a_cluster_cannot_do_is_refused_with_the_reason) {
  step.settings.resources.devices = json::array({1, 3});
  EXPECT_THAT(refusal(), HasSubstr("step 'train' names its GPUs, and a cluster gives GPUs by number"));
  EXPECT_THAT(refusal(), HasSubstr("`gpu_count: 2`"));
  step.settings.resources = {};
  step.settings.resources.gpus = "all";
  EXPECT_THAT(refusal(), HasSubstr("asks for all GPUs of its machine"));
  step.settings.resources = {};
  step.settings.docker.user = "nobody";
  EXPECT_THAT(refusal(), HasSubstr("`docker.user: nobody`: a cluster takes users by number"));
  step.settings.docker = {};
  step.settings.resources.placement_constraints = {"attribute:ecs.instance-type =~ g5.*"};
  EXPECT_THAT(refusal(), HasSubstr("a node affinity has no patterns"));
}

TEST_F(JobManifest, golden_plain_step) { expect("plain"); }

TEST_F(JobManifest, golden_gpu_step) {
  auto& resources = step.settings.resources;
  resources.cpu_count = 1.5;
  resources.memory = Bytes{8} << 30;
  resources.gpu_count = 2;
  resources.instance_type = "p4d.24xlarge";
  resources.placement_constraints = {"attribute:ecs.availability-zone == eu-1a or attribute:pool exists"};
  step.timeout = std::chrono::hours(1);
  expect("gpus");
}

TEST_F(JobManifest, golden_agent_from_an_image) {
  place.image = "registry.example/team/x@sha256:01";
  place.pull = true;
  place.agent.clear();
  place.agent_image = "registry.example/team/x@sha256:02";
  step.settings.resources.memory = Bytes{1} << 30;
  step.settings.resources.gpu_count = 1;
  expect("agent_image");
}

TEST_F(JobManifest, secrets_are_in_a_secret_and_nowhere_else) {
  EXPECT_EQ(job().dump().find("hush"), std::string::npos);
  EXPECT_EQ(job().dump().find("from the file"), std::string::npos);  // the secret goes before a variable of its name
  const auto secret = secret_manifest(attempt(), place.owner);
  ASSERT_TRUE(secret);
  EXPECT_EQ((*secret)["stringData"]["TOKEN"], "hush");
  EXPECT_EQ((*secret)["metadata"]["name"], job()["metadata"]["name"]);
}

TEST_F(JobManifest, names_are_those_that_a_cluster_takes) {
  const auto name = job_name(attempt());
  EXPECT_EQ(job_name(attempt()), name);  // whoever asks
  step.name = "Train.c-0.1_" + std::string(100, 'x') + "-";
  const auto longest = job_name(attempt());
  EXPECT_LE(longest.size(), 57u);
  EXPECT_EQ(longest.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"), std::string::npos) << longest;
  const auto labels = job_labels(attempt(), place.owner);
  EXPECT_LE(labels.at("pipe.step").size(), 63u);
  auto other = step;
  other.name += "y";
  const auto before = labels.at("pipe.step");
  step = other;
  EXPECT_NE(job_labels(attempt(), place.owner).at("pipe.step"), before);
  EXPECT_NE(job_name(attempt()), longest);
}

TEST_F(JobManifest, what_is_not_honoured_is_named) {
  EXPECT_EQ(unhonoured(step), "");
  step.settings.docker.network = "none";
  step.settings.docker.run_args = {{"privileged", true}};
  EXPECT_EQ(unhonoured(step), "`docker.network`, `docker.run_args`");
}

}  // namespace
}  // namespace pipeline
