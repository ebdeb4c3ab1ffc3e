// An output that a pod asks about first is sent to the key of its artifact, or not at all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orchestrators/kubernetes/pod_staging.hpp"
#include "support/attempt_builder.hpp"
#include "support/bucket.hpp"
#include "support/run_task.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

using nlohmann::json;
using test::run_task;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class DirectOutputs : public test::BucketTest {
 protected:
  DirectOutputs() {
    attempt.run_id = "run";
    attempt.code("a.py", "");
    attempt.output("data", "data");
    attempt.outputs.at(0).may_stay = true;
    tags[artifact] = "\"unknown\"";
  }
  /// What the pod says of its output, before and after it has sent it.
  json row(const std::string& claimed, bool is_direct = true) const {
    json made{{"name", "data"},    {"key", "runs/run/step.1/outputs/data"},
              {"upload", "1"},     {"kind", "file"},
              {"digest", claimed}, {"bytes", content.size()},
              {"at_once", false},  {"direct", is_direct}};
    made["tags"] = json::array();
    for (std::size_t i = 0; i < content.size() / part; ++i) made["tags"].push_back(sum);
    return made;
  }
  /// Lets a driver answer the pod's question; returns the answer.
  json answered(PodStaging& driver, const std::string& claimed) {
    json asked;
    asked["outputs"].push_back(row(claimed));
    objects[folder + "question.json"] = asked.dump();
    const auto made = attempt.attempt();
    core::CancelSource enough;
    run_task(loop, driver.answer(made, enough));
    return json::parse(objects.at(folder + "answer.json"))["outputs"];
  }
  /// Lets a driver take what the pod has sent.
  std::optional<Failure> taken(PodStaging& driver, const json& sent) {
    json report{{"exit_code", 0}, {"asked", true}};
    report["outputs"].push_back(sent);
    objects[folder + "report.json"] = report.dump();
    result = AttemptResult();
    server.asked.clear();
    const auto made = attempt.attempt();
    return run_task(loop, driver.stage_out(made, result));
  }
  void send_parts() { parts = {{1, content}}; }

  static constexpr std::size_t part = 8 << 20;
  const std::string content = std::string(64 << 20, 'x'), digest = std::string(64, 'd'),
                    folder = "/team/pipe/runs/run/step.1/",
                    artifact = "/team/pipe/" + blobs::RemoteArtifacts::key_of(digest, false),
                    aborted = "DELETE " + artifact + "?uploadId=1";
  // The MD5 of 8 MiB of `x`, and that of eight such MD5s.
  const std::string sum = "\"2058fb53f643fcd58a8d83a05542392b\"",
                    composite = "7a2e694569085f80e474a89305c07201";
  test::AttemptBuilder attempt{test::program({"true"})};
  blobs::RemoteArtifacts artifacts{loop, settings()}, of_next{loop, settings()};
  PodStaging files{artifacts}, next{of_next};  ///< Of a driver, and of the one that follows it.
  AttemptResult result;
};

TEST_F(DirectOutputs, are_completed_under_their_digest_and_not_copied) {
  const auto brought = run_task(loop, files.stage_in(attempt.attempt()));
  const auto document = json::parse(brought.collect);
  EXPECT_THAT(document["question"]["write"].get<std::string>(), HasSubstr("question.json?"));
  const auto answer = answered(files, digest);
  EXPECT_EQ(answer["data"]["upload"], "1");
  EXPECT_EQ(answer["data"]["signatures"].size(), 8u);
  EXPECT_THAT(answer["data"]["before"].get<std::string>(), HasSubstr(artifact));
  send_parts();
  EXPECT_FALSE(taken(files, row(digest)));
  EXPECT_EQ(objects[artifact].size(), content.size());
  ASSERT_TRUE(result.elsewhere.contains("data"));
  EXPECT_EQ(result.elsewhere.at("data").first, digest);
  EXPECT_THAT(server.asked, Not(Contains("PUT " + artifact)));
  EXPECT_THAT(server.asked, Not(Contains(aborted)));
  EXPECT_THAT(server.asked, Contains("DELETE " + folder + "outputs/data?uploadId=1"));
  run_task(loop, files.forget("run", "step", 1, {"data"}, {}));
  for (const auto& [key, text] : objects) EXPECT_THAT(key, Not(StartsWith(folder)));
}

TEST_F(DirectOutputs, are_looked_for_again_after_the_store_has_not_answered) {
  refuses = true;
  asio::steady_timer timer(loop, std::chrono::milliseconds(1500));
  timer.async_wait([&](boost::system::error_code) { refuses = false; });
  EXPECT_EQ(answered(files, digest)["data"]["upload"], "1");
}

TEST_F(DirectOutputs, of_a_driver_that_was_killed_are_completed_by_the_next) {
  answered(files, digest);
  send_parts();
  EXPECT_FALSE(taken(next, row(digest)));
  EXPECT_TRUE(result.elsewhere.contains("data"));
  EXPECT_THAT(server.asked, Not(Contains(aborted)));
  // Killed after the completion: the tag says nothing, but the mark in the answer does.
  EXPECT_FALSE(taken(files, row(digest)));
  EXPECT_TRUE(result.elsewhere.contains("data"));
}

TEST_F(DirectOutputs, are_not_sent_if_the_bucket_has_the_same_content) {
  objects[artifact] = content;
  tags[artifact] = "\"" + composite + "-8\"";
  EXPECT_EQ(answered(files, digest)["data"]["is_there"], true);
  EXPECT_FALSE(taken(files, row(digest)));
  EXPECT_TRUE(result.elsewhere.contains("data"));
  objects.erase(artifact);
  EXPECT_TRUE(taken(next, row(digest))) << "somebody has removed it";
}

TEST_F(DirectOutputs, are_sent_where_nothing_proves_the_content_in_the_bucket) {
  objects[artifact] = content;
  EXPECT_TRUE(answered(files, digest).empty()) << "a digest alone obtains no artifact";
  objects.erase(folder + "answer.json");
  EXPECT_TRUE(answered(files, "../../x").empty());
  EXPECT_THAT(server.asked, Not(Contains(HasSubstr("?uploads="))));
}

TEST_F(DirectOutputs, that_nobody_has_allowed_are_lost_and_change_nothing) {
  send_parts();
  EXPECT_TRUE(taken(files, row(digest)));
  EXPECT_FALSE(objects.contains(artifact));
  answered(files, digest);
  EXPECT_TRUE(taken(files, row(std::string(64, 'e')))) << "the answer was about another digest";
  EXPECT_THAT(server.asked, Contains(aborted));
  EXPECT_FALSE(objects.contains(artifact));
}

TEST_F(DirectOutputs, do_not_replace_an_object_that_others_have_written_meanwhile) {
  answered(files, digest);
  send_parts();
  objects[artifact] = "other";
  EXPECT_TRUE(taken(files, row(digest)));
  EXPECT_EQ(objects[artifact], "other");
  EXPECT_THAT(server.asked, Contains(aborted));
}

TEST_F(DirectOutputs, whose_answer_came_too_late_leave_no_upload) {
  answered(files, digest);
  objects[folder + "outputs/data"] = content;
  tags[folder + "outputs/data"] = "\"unknown\"";
  auto sent = row(digest, false);
  sent["at_once"] = true;
  EXPECT_FALSE(taken(next, sent));
  EXPECT_TRUE(result.elsewhere.contains("data"));
  EXPECT_THAT(server.asked, Contains(aborted));
}

}  // namespace
}  // namespace pipeline::orchestrators::kubernetes
