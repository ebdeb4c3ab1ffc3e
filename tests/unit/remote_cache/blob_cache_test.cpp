#include "remote_cache/blob_cache.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/file.hpp"
#include "support/bucket.hpp"
#include "support/run_task.hpp"
#include "support/sanitizers.hpp"

namespace pipeline::remote_cache {
namespace {

using test::run_task;
using testing::HasSubstr;

class ResultsInABucket : public test::BucketTest {
 protected:
  std::string refusal(const std::string& record) {
    objects["/team/pipe/results/k.json"] = record;
    try {
      run_task(loop, results->find("k", nullptr));
    } catch (const engine::DamagedCacheEntry& error) {
      return error.what();
    }
    return "none";
  }
  store::OutputRecord take(const std::string& name, const std::string& text, bool executable) {
    const auto file = folder.path() / name;
    core::write_file_atomically(file, text);
    if (executable)
      std::filesystem::permissions(file, std::filesystem::perms::owner_exec,
                                   std::filesystem::perm_options::add);
    const auto stored = artifacts.take(file);
    return {name, name + ".bin", stored.digest, stored.is_directory, stored.bytes};
  }

  core::TemporaryFolder folder;
  store::ArtifactStore artifacts{folder.path() / "artifacts"};
  blobs::RemoteArtifacts bucket{
      loop, settings(),
      async::RetryPolicy{std::chrono::milliseconds(1), std::chrono::milliseconds(2), 2}};
  std::unique_ptr<engine::RemoteCache> results = make_blob_cache(bucket, artifacts);
  core::CancelSource cancel;
};

TEST_F(ResultsInABucket, are_found_by_the_key_under_which_they_were_published) {
  EXPECT_EQ(results->name(), "s3://team/pipe");
  EXPECT_FALSE(run_task(loop, results->find("k", nullptr)));
  run_task(loop,
           results->publish(
               {"k", "run-1", "train", {take("model", "weights", false), take("tool", "#!", true)}},
               cancel));
  EXPECT_THAT(server.asked.back(), "PUT /team/pipe/results/k.json")
      << "the record is written after the artifacts that it names";
  EXPECT_EQ(nlohmann::json::parse(objects["/team/pipe/results/k.json"]).at("pipe"),
            PIPELINE_VERSION);
  const auto found = run_task(loop, results->find("k", nullptr));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->run, "run-1");
  ASSERT_EQ(found->outputs.size(), 2u);
  EXPECT_EQ(found->outputs[0].record.file_name, "model.bin");
  EXPECT_EQ(found->outputs[0].record.bytes, 7u);
  EXPECT_FALSE(found->outputs[0].is_executable);
  run_task(loop, results->fetch(found->outputs[1], folder.path() / "came", cancel));
  EXPECT_EQ(core::read_file(folder.path() / "came"), "#!");
  EXPECT_TRUE(blobs::is_executable_file(folder.path() / "came"));
}

TEST_F(ResultsInABucket, are_not_found_where_the_record_is_not_from_pipe) {
  for (const char* record :
       {"", "[]", "{", "{\"format\": \"x\"}", "{\"format\": 1, \"run\": \"r\"}",
        "{\"format\": 1, \"run\": \"r\", \"outputs\": [{\"name\": \"a\", \"file_name\": \"a\", "
        "\"digest\": \"../../etc\", "
        "\"kind\": \"file\", \"bytes\": 1}]}"})
    EXPECT_EQ(refusal(record),
              "the record results/k.json in s3://team/pipe is not one that pipe wrote")
        << record;
  EXPECT_EQ(refusal("{\"format\": 2}"), "none") << "a later version's";
  EXPECT_FALSE(run_task(loop, results->find("k", nullptr)));
}

TEST_F(ResultsInABucket, are_not_found_where_a_name_would_lead_elsewhere) {
  run_task(loop,
           results->publish({"k", "run-1", "train", {take("model", "weights", false)}}, cancel));
  const auto record = nlohmann::json::parse(objects["/team/pipe/results/k.json"]);
  for (const char* key : {"name", "file_name"})
    for (const char* name : {"../../x", "..", ".", "", "a/b", "/etc/passwd", "-rf", "\x1b[31m"}) {
      auto changed = record;
      changed["outputs"][0][key] = name;
      EXPECT_EQ(refusal(changed.dump()),
                "the record results/k.json in s3://team/pipe is not one that pipe wrote")
          << key << " " << name;
    }
  EXPECT_EQ(refusal("{\"format\": 1, \"outputs\": " + std::string(60'000, '[')),
            "the record results/k.json in s3://team/pipe is not one that pipe wrote");
}

TEST_F(ResultsInABucket, stay_there_if_their_steps_run_elsewhere_or_by_the_profile) {
  const auto stay = [&](const std::string& verify) {
    auto given = settings();
    if (!verify.empty()) given.options["verify"] = verify;
    blobs::RemoteArtifacts remote(loop, given);
    const auto cache = make_blob_cache(remote, artifacts);
    return std::pair(!cache->place(true).empty(), !cache->place(false).empty());
  };
  EXPECT_EQ(stay(""), std::pair(true, false));
  EXPECT_EQ(stay("consumer"), std::pair(true, true));
  EXPECT_EQ(stay("driver"), std::pair(false, false));
}

TEST_F(ResultsInABucket, are_not_found_where_a_size_is_invalid) {
  run_task(loop,
           results->publish({"k", "run-1", "train", {take("model", "weights", false)}}, cancel));
  const auto record = nlohmann::json::parse(objects["/team/pipe/results/k.json"]);
  for (const auto& number : {nlohmann::json(1e91), nlohmann::json(-1), nlohmann::json("7")}) {
    auto changed = record;
    changed["outputs"][0]["bytes"] = number;
    EXPECT_EQ(refusal(changed.dump()),
              "the record results/k.json in s3://team/pipe is not one that pipe wrote")
        << number;
  }
  auto changed = record;
  changed["format"] = 1e91;
  EXPECT_EQ(refusal(changed.dump()),
            "the record results/k.json in s3://team/pipe is not one that pipe wrote");
}

TEST_F(ResultsInABucket, are_not_found_where_the_record_cannot_be_read) {
  if (test::under_tsan) GTEST_SKIP() << "64 MiB take longer than such a request may take";
  EXPECT_EQ(refusal(std::string((std::size_t{64} << 20) + 1, ' ')),
            "cannot read results/k.json from s3://team/pipe: it is larger than 64 MiB");
}

TEST_F(ResultsInABucket, are_not_found_when_their_content_is_missing) {
  run_task(loop,
           results->publish({"k", "run-1", "train", {take("model", "weights", false)}}, cancel));
  const auto found = run_task(loop, results->find("k", nullptr));
  std::erase_if(objects, [](const auto& object) {
    return object.first.find("/artifacts/") != std::string::npos;
  });
  try {
    run_task(loop, results->fetch(found->outputs[0], folder.path() / "came", cancel));
    FAIL();
  } catch (const engine::DamagedCacheEntry& error) {
    EXPECT_THAT(
        error.what(),
        HasSubstr("the output 'model' in s3://team/pipe cannot be used: cannot read artifacts/"));
  }
}

}  // namespace
}  // namespace pipeline::remote_cache
