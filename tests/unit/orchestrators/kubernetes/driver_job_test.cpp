#include "orchestrators/kubernetes/driver_job.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "orchestrators/image_lock.hpp"
#include "support/golden.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

using nlohmann::json;

DriverJob driver() {
  DriverJob driver;
  driver.run_id = "20261121-081500-7f3a9c";
  driver.pipeline = "digits";
  driver.owner = "0123456789abcdef";
  driver.service_account = "pipe";
  driver.user = "1000:100";
  driver.image = {"registry.example/team@sha256:1234",
                  true,
                  {"/pipe/program/lib/ld.so", "/pipe/program/pipe"},
                  "amd64"};
  driver.arguments = {"__drive", driver.run_id, "--state", "/home/$(USER)/state"};
  driver.state = "/home/$(USER)/state";
  driver.pull_secrets = {"registry"};
  driver.variables = {{"TOKEN", "hush"}};
  return driver;
}

TEST(DriverJobGolden, golden_job) {
  const auto job = driver_manifest(driver()).dump(2) + "\n";
  EXPECT_EQ(job.find("hush"), std::string::npos);
  test::expect_golden(job, std::filesystem::path(PIPELINE_SOURCE_DIR) / "tests/golden/kubernetes",
                      "driver");
}

TEST(DriverJob, through_a_claim_mounts_no_path_of_a_node) {
  auto with_claim = driver();
  with_claim.claim = {"artifacts", "/mnt/lab"};
  const auto pod = driver_manifest(with_claim)["spec"]["template"]["spec"];
  EXPECT_EQ(pod.dump().find("hostPath"), std::string::npos);
  EXPECT_EQ(pod["containers"][0]["volumeMounts"][0],
            json({{"name", "shared"}, {"mountPath", "/mnt/lab"}, {"readOnly", false}}));
}

TEST(DriverJob, has_the_settings_that_all_steps_share_and_its_own_patch) {
  StepSpec a, b;
  for (auto* step : {&a, &b}) {
    auto& own = step->settings->kubernetes;
    own.labels = {{"team", "ml"}, {"step", step == &a ? "a" : "b"}, {"pipe.state", "theirs"}};
    own.container_security_context = {
        {"seccompProfile", json{{"type", "Localhost"}}}, {"privileged", true}, {"runAsUser", 4}};
    own.pod_security_context = {{"fsGroup", 2000}};
  }
  auto with_settings = driver();
  with_settings.settings = driver_settings({&a, &b});
  with_settings.patch["spec"]["backoffLimit"] = 7;
  const auto job = driver_manifest(with_settings);
  const auto& pod = job["spec"]["template"];
  EXPECT_EQ(pod["metadata"]["labels"]["team"], "ml");
  EXPECT_FALSE(pod["metadata"]["labels"].contains("step"));
  EXPECT_EQ(pod["metadata"]["labels"]["pipe.state"], driver().owner);
  EXPECT_EQ(pod["spec"]["securityContext"]["fsGroup"], 2000);
  const auto& context = pod["spec"]["containers"][0]["securityContext"];
  EXPECT_EQ(context["seccompProfile"]["type"], "Localhost");
  EXPECT_EQ(context["runAsUser"], 1000);
  EXPECT_EQ(context["runAsNonRoot"], true);
  EXPECT_FALSE(context.contains("privileged"));
  EXPECT_EQ(job["spec"]["backoffLimit"], 7);
}

TEST(DriverJob, has_secret_values_only_in_its_secret) {
  const auto secret = driver_secret(driver());
  ASSERT_TRUE(secret);
  EXPECT_EQ((*secret)["stringData"]["TOKEN"], "hush");
  EXPECT_EQ((*secret)["metadata"]["name"], driver_name(driver().run_id));
  auto plain = driver();
  plain.variables.clear();
  EXPECT_FALSE(driver_secret(plain));
}

TEST(ImageLock, is_read_as_it_was_written_and_has_equal_images_once) {
  ImageLock lock;
  const LockedImage image{
      "environment",
      "pipe:env-1",
      "packages",
      {"a notice"},
      {"sha256:1", "r.example/x@sha256:2", true, {"/loader", "/program"}, "r.example/x@sha256:3"}};
  for (int i = 0; i < 100; ++i) lock.emplace("train." + std::to_string(i), image);
  lock["plot"] = {"other", "scratch", "", {}, {"", "debian", false, {}, ""}};
  const auto written = to_json(lock);
  EXPECT_EQ(written["images"].size(), 2u);
  EXPECT_EQ(image_lock_of(json::parse(written.dump())), lock);
  auto earlier = written;  // before requirements that are not pinned had their packages there
  for (auto& each : earlier["images"]) each.erase("packages");
  EXPECT_EQ(image_lock_of(earlier).at("plot"), lock.at("plot"));
  EXPECT_THROW(image_lock_of(json::object()), core::EnvironmentError);
  auto damaged = written;
  damaged["steps"]["plot"] = 7;
  EXPECT_THROW(image_lock_of(damaged), core::EnvironmentError);
}

}  // namespace
}  // namespace pipeline::orchestrators::kubernetes
