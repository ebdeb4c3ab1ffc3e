// What a pod has sent stays in the bucket, or is downloaded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "core/digest.hpp"
#include "orchestrators/kubernetes/pod_staging.hpp"
#include "support/attempt_builder.hpp"
#include "support/bucket.hpp"
#include "support/run_task.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

using nlohmann::json;
using test::run_task;
using testing::Contains;
using testing::ElementsAre;
using testing::Not;
using testing::Pair;

class StagedOutputs : public test::BucketTest {
 protected:
  StagedOutputs() {
    attempt.run_id = "run";
    attempt.code("a.py", "");
    attempt.output("data", "data");
    attempt.outputs.at(0).may_stay = true;
  }
  settings::RemoteStoreSettings place(const std::string& verify) {
    auto given = settings();
    if (!verify.empty()) given.options["verify"] = verify;
    return given;
  }
  /// What stage_out() does once the pod has sent the content.
  /// @param more replaces members of what the pod reports of it
  std::pair<AttemptResult, std::optional<Failure>> taken(const std::string& verify,
                                                         const std::string& reported,
                                                         const json& more = json::object()) {
    blobs::RemoteArtifacts artifacts(loop, place(verify));
    PodStaging files(artifacts);
    const auto made = attempt.attempt();
    run_task(loop, files.stage_in(made));
    const std::string key = "runs/run/step.1/outputs/data";
    objects["/team/pipe/" + key] = content;
    json entry{{"name", "data"},     {"key", key},         {"upload", "1"},
               {"kind", "file"},     {"digest", reported}, {"bytes", content.size()},
               {"executable", true}, {"at_once", true},    {"tags", {"\"tag\""}}};
    entry.update(more);
    objects["/team/pipe/runs/run/step.1/report.json"] =
        json{{"exit_code", 0}, {"outputs", {entry}}}.dump();
    server.asked.clear();
    std::pair<AttemptResult, std::optional<Failure>> result;
    result.second = run_task(loop, files.stage_out(made, result.first));
    return result;
  }

  const std::string content = std::string(2 << 20, 'x'), digest = core::sha256(content).hex(),
                    download = "GET /team/pipe/runs/run/step.1/outputs/data";
  test::AttemptBuilder attempt{test::program({"true"})};
};

TEST_F(StagedOutputs, stay_in_the_bucket_if_consumers_verify_them) {
  const auto [result, failure] = taken("", digest);
  EXPECT_FALSE(failure);
  ASSERT_TRUE(result.elsewhere.contains("data"));
  const auto& [hex, elsewhere] = result.elsewhere.at("data");
  EXPECT_EQ(hex, digest);
  EXPECT_TRUE(elsewhere.is_executable);
  EXPECT_EQ(elsewhere.bytes, content.size());
  EXPECT_THAT(server.asked, Not(Contains(download)));
  EXPECT_EQ(objects["/team/pipe/" + blobs::RemoteArtifacts::key_of(digest, false)], content);
  EXPECT_FALSE(std::filesystem::exists(attempt.folder.path() / "outputs/data"));
}

TEST_F(StagedOutputs, of_a_folder_do_not_count_for_more_than_was_sent) {
  const json more{{"kind", "tree"},
                  {"artifact", core::sha256("folder").hex()},
                  {"artifact_bytes", std::numeric_limits<std::uint64_t>::max()}};
  const auto result = taken("consumer", digest, more).first;
  ASSERT_TRUE(result.elsewhere.contains("data"));
  const auto& [hex, elsewhere] = result.elsewhere.at("data");
  EXPECT_EQ(hex, core::sha256("folder").hex());
  EXPECT_EQ(elsewhere.bytes, content.size());
}

TEST_F(StagedOutputs, are_downloaded_where_the_driver_verifies_or_the_engine_reads_them) {
  EXPECT_TRUE(taken("driver", digest).first.elsewhere.empty());
  EXPECT_THAT(server.asked, Contains(download));
  attempt.outputs.at(0).may_stay = false;
  EXPECT_TRUE(taken("consumer", digest).first.elsewhere.empty());
  EXPECT_THAT(server.asked, Contains(download));
}

TEST_F(StagedOutputs, do_not_become_an_artifact_that_the_bucket_has_by_a_claim) {
  const auto other = core::sha256("secret").hex();
  const auto key = "/team/pipe/" + blobs::RemoteArtifacts::key_of(other, false);
  objects[key] = "secret";
  EXPECT_THROW(taken("consumer", other), core::EnvironmentError);
  EXPECT_EQ(objects[key], "secret");
  EXPECT_THROW(taken("consumer", "../../x"), core::EnvironmentError);
}

TEST_F(StagedOutputs, that_are_damaged_are_lost_unless_this_machine_has_them) {
  blobs::RemoteArtifacts artifacts(loop, place("consumer"));
  PodStaging files(artifacts);
  const auto key = blobs::RemoteArtifacts::key_of(digest, false);
  objects["/team/pipe/" + key] = content;
  attempt.input("here", "here", content);
  attempt.inputs.at(0).digest = digest;
  auto made = attempt.attempt();
  run_task(loop, files.stage_in(made));
  server.asked.clear();
  EXPECT_NO_THROW(files.see_damage(made, digest));
  run_task(loop, files.stage_in(made));
  EXPECT_THAT(server.asked, Contains("PUT /team/pipe/" + key)) << "the output is uploaded again";
  attempt.inputs.at(0).elsewhere = model::Elsewhere{.bytes = content.size()};
  auto lost = attempt.attempt();
  EXPECT_THROW(files.see_damage(lost, digest), LostInput);
  EXPECT_THROW(run_task(loop, files.stage_in(lost)), LostInput);
  EXPECT_NO_THROW(files.see_damage(lost, ""));
}

TEST_F(StagedOutputs, of_a_run_without_a_driver_are_removed_and_those_of_others_stay) {
  blobs::RemoteArtifacts artifacts(loop, place(""));
  PodStaging files(artifacts);
  const std::string runs = "/team/pipe/runs/", other = runs + "run2/step.1/report.json";
  objects = {{runs + "run/step.1/report.json", "{}"},
             {runs + "run/step.1/outputs/data", content},
             {other, "{}"}};
  run_task(loop, files.forget_run("run"));
  EXPECT_THAT(objects, ElementsAre(Pair(other, "{}")));
  refuses = true;
  EXPECT_NO_THROW(run_task(loop, files.forget_run("run2"))) << "a cleaning removes it later";
}

}  // namespace
}  // namespace pipeline::orchestrators::kubernetes
