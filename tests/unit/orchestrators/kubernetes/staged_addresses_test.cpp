// The documents for a pod about inputs at addresses, and the driver's part of their transfer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/digest.hpp"
#include "orchestrators/kubernetes/pod_staging.hpp"
#include "support/attempt_builder.hpp"
#include "support/bucket.hpp"
#include "support/run_task.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

using nlohmann::json;
using test::run_task;
using testing::HasSubstr;
using testing::StartsWith;

class StagedAddresses : public test::BucketTest {
 protected:
  StagedAddresses() {
    attempt.run_id = "run";
    attempt.code("a.py", "");
  }

  /// An input that this machine has only once it was fetched.
  AttemptInput input(const std::string& name, const std::string& host) {
    RemoteContent remote;
    remote.shown = host + "/" + name;
    remote.server = host;
    remote.size = content.size();
    remote.is_public = true;
    remote.files = [name, host]() -> async::Task<std::vector<RemoteFile>> {
      std::vector<RemoteFile> found;
      found.push_back({{}, host + "/" + name + "?signature=1"});
      co_return found;
    };
    const auto path = attempt.folder.path() / name;
    remote.fetch = [this, path](core::CancelSource&) -> async::Task<> {
      ++fetched;
      core::write_file_atomically(path, content);
      co_return;
    };
    return {.name = name,
            .file_name = name,
            .path = path,
            .digest = digest,
            .remote = std::move(remote)};
  }

  /// The item of the input in the document for the pod.
  json item(const std::string& name, unsigned number = 1) {
    attempt.number = number;
    const auto made = attempt.attempt();
    const auto document = json::parse(run_task(loop, files.stage_in(made)).fetch);
    wanted = document.value("wanted", "");
    for (const auto& each : document.at("items"))
      if (each.at("to") == "/pipe/inputs/" + name) return each;
    return {};
  }
  bool has_artifact() { return objects.contains("/team/pipe/" + key); }

  const std::string content = "content", digest = core::sha256(content).hex(),
                    key = blobs::RemoteArtifacts::key_of(digest, false);
  test::AttemptBuilder attempt{test::program({"true"})};
  blobs::RemoteArtifacts artifacts{loop, settings()};
  PodStaging files{artifacts};
  int fetched = 0;
  std::string wanted;  ///< Where the pod writes what it cannot have.
};

TEST_F(StagedAddresses, a_pod_is_given_the_address_and_one_pod_keeps_the_content) {
  attempt.inputs = {input("data", "https://host")};
  const auto first = item("data");
  EXPECT_EQ(first["digest"], digest);
  EXPECT_EQ(first["source"]["url"], "https://host/data?signature=1");
  EXPECT_EQ(first["source"]["shown"], "https://host/data");
  EXPECT_EQ(first["source"]["size"], content.size());
  EXPECT_THAT(first["source"]["keep"], HasSubstr(key));
  EXPECT_THAT(first["url"], HasSubstr(key));
  EXPECT_THAT(wanted, HasSubstr("/runs/run/step.1/wanted.json?"));
  EXPECT_FALSE(item("data", 2)["source"].contains("keep"));
  EXPECT_EQ(fetched, 0);
}

TEST_F(StagedAddresses, content_in_the_bucket_is_fetched_from_there) {
  objects["/team/pipe/" + key] = content;
  attempt.inputs = {input("data", "https://host")};
  EXPECT_FALSE(item("data").contains("source"));
  EXPECT_EQ(fetched, 0);
}

TEST_F(StagedAddresses, a_folder_has_a_list_which_goes_with_the_attempt) {
  auto folder = input("data", "s3://lab");
  folder.remote->is_folder = true;
  folder.remote->is_public = false;
  folder.remote->files = []() -> async::Task<std::vector<RemoteFile>> {
    std::vector<RemoteFile> found;
    found.push_back({"a", "https://lab/a?x"});
    found.push_back({"deep/b", "https://lab/deep/b?x"});
    co_return found;
  };
  attempt.inputs = {folder};
  const auto made = item("data");
  const std::string list = "/team/pipe/runs/run/step.1/inputs/data.json";
  EXPECT_EQ(made["kind"], "tree");
  EXPECT_THAT(made["source"]["files"], HasSubstr(list + "?"));
  EXPECT_FALSE(made["source"].contains("keep"));
  EXPECT_EQ(json::parse(objects.at(list)).at(1),
            json({{"path", "deep/b"}, {"url", "https://lab/deep/b?x"}}));
  run_task(loop, files.forget("run", "step", 1, {}, {"data"}));
  EXPECT_FALSE(objects.contains(list));
}

TEST_F(StagedAddresses, content_that_a_pod_asks_for_is_sent_and_later_pods_skip_that_server) {
  attempt.inputs = {input("data", "https://host"), input("more", "https://other")};
  item("data");
  objects["/team/pipe/runs/run/step.1/wanted.json"] = json({{digest, "no route"}}).dump();
  attempt.inputs.pop_back();
  core::CancelSource enough;
  const auto made = attempt.attempt();
  run_task(loop, files.upload_wanted(made, enough));
  EXPECT_EQ(fetched, 1);
  EXPECT_EQ(objects["/team/pipe/" + key], content);
  EXPECT_THAT(attempt.log.err, StartsWith("[kubernetes] the pod cannot fetch https://host/data"));
  EXPECT_THAT(attempt.log.err, HasSubstr("no route"));

  objects.erase("/team/pipe/" + key);
  artifacts.invalidate(key);
  EXPECT_FALSE(item("data", 2).contains("source"));
  EXPECT_EQ(fetched, 2);
  EXPECT_TRUE(has_artifact());
  attempt.inputs = {input("more", "https://other")};
  objects.erase("/team/pipe/" + key);
  artifacts.invalidate(key);
  EXPECT_TRUE(item("more", 3).contains("source"));
}

TEST_F(StagedAddresses, an_address_that_cannot_be_listed_is_fetched_here) {
  attempt.inputs = {input("data", "https://host")};
  attempt.inputs[0].remote->files = []() -> async::Task<std::vector<RemoteFile>> {
    throw core::EnvironmentError("nothing answers");
    co_return std::vector<RemoteFile>{};
  };
  EXPECT_FALSE(item("data").contains("source"));
  EXPECT_EQ(fetched, 1);
  EXPECT_TRUE(has_artifact());
}

TEST_F(StagedAddresses, transfers_for_a_pod_end_when_it_has_its_inputs) {
  attempt.inputs = {input("data", "https://host")};
  core::CancelSource enough;
  enough.stop(core::StopLevel::immediate);
  const auto made = attempt.attempt();
  run_task(loop, files.upload_wanted(made, enough));
  EXPECT_EQ(fetched, 0);
}

/// A Secret would be too small for it.
}  // namespace
}  // namespace pipeline::orchestrators::kubernetes
