// The stager asks the driver about large outputs before it sends them.
#include "stager/question.hpp"

#include <set>

#include "core/digest.hpp"
#include "core/file.hpp"
#include "file_tree/content.hpp"
#include "stager/staging.hpp"
#include "unit/stager/server_fixture.hpp"

namespace pipeline::stager {
namespace {

using nlohmann::json;
using test::HttpExchange;
namespace fs = std::filesystem;

class Question : public ServerFixture {
 protected:
  async::Task<> serve(HttpExchange& exchange) override {
    const auto key = exchange.target;
    if (forgets && key.starts_with("/direct"))
      co_return co_await exchange.answer(404, "<Error><Code>NoSuchUpload</Code></Error>");
    if (exchange.method == "PUT") {
      objects[key] = exchange.body;
      sent.insert(key.substr(0, key.find('?')));
      if (key == "/question" && !given.is_null()) objects["/answer"] = given.dump();
      co_return co_await exchange.answer(200, "", "ETag: \"tag\"\r\n");
    }
    if (!objects.contains(key))
      co_return co_await exchange.answer(404, "<Error><Code>NoSuchKey</Code></Error>");
    auto found = objects[key];
    co_await exchange.answer(200, std::move(found));
  }
  json output(const fs::path& path, bool stays = true) {
    return {{"name", "o"},
            {"path", path.string()},
            {"key", "k"},
            {"whole", server.url() + "/whole"},
            {"upload", "u"},
            {"stays", stays},
            {"before", server.url() + "/part?n="},
            {"after", "&s="},
            {"signatures", {"a", "b", "c"}}};
  }
  /// The driver's answer that allows an upload to the artifact's key.
  json allowed() const {
    return {{"upload", "v"},
            {"before", server.url() + "/direct?n="},
            {"after", "&s="},
            {"signatures", {"d", "e"}}};
  }
  /// Returns the output's entry in the report.
  json collected(const json& listed, int code = 0) {
    const json document{{"outputs", json::array({listed})},
                        {"report", server.url() + "/report"},
                        {"failure", (folder.path() / "failure").string()},
                        {"question",
                         {{"write", server.url() + "/question"},
                          {"answer", server.url() + "/answer"},
                          {"from", 10 * mebibyte},
                          {"seconds", 0}}}};
    sent.clear();
    objects.clear();
    Transfer transfer("", hasty);
    collect(document, code, transfer);
    report = json::parse(objects.at("/report"));
    return report["outputs"][0];
  }
  json asked() const { return json::parse(objects.at("/question"))["outputs"][0]; }
  std::string direct() { return objects["/direct?n=1&s=d"] + objects["/direct?n=2&s=e"]; }

  json given, report;
  std::set<std::string> sent;  ///< What was written.
  bool forgets = false;
  const fs::path file = folder.path() / "out";
  const std::string text = counted_text(12 * mebibyte);
};

TEST_F(Question, has_the_digest_and_the_sums_of_the_parts_before_anything_is_sent) {
  core::write_file_atomically(file, text);
  given = {{"outputs", {{"o", {{"is_there", true}}}}}};
  const auto entry = collected(output(file));
  EXPECT_EQ(sent, (std::set<std::string>{"/question", "/report"}));
  EXPECT_EQ(asked()["kind"], "file");
  EXPECT_EQ(asked()["bytes"], text.size());
  EXPECT_EQ(asked()["digest"], core::sha256(text).hex());
  ASSERT_EQ(asked()["tags"].size(), 2u) << "parts of 8 MiB";
  EXPECT_EQ(asked()["tags"][0].get<std::string>().size(), 34u);
  EXPECT_EQ(report["asked"], true);
  EXPECT_EQ(entry["direct"], true);
  EXPECT_EQ(entry["digest"], core::sha256(text).hex());
  EXPECT_EQ(entry["tags"], asked()["tags"]);
}

TEST_F(Question, that_is_answered_with_addresses_lets_the_output_go_to_its_artifact) {
  core::write_file_atomically(file, text);
  given = {{"outputs", {{"o", allowed()}}}};
  const auto entry = collected(output(file));
  EXPECT_EQ(sent, (std::set<std::string>{"/question", "/direct", "/report"}));
  EXPECT_EQ(direct(), text);
  EXPECT_EQ(entry["direct"], true);
  EXPECT_EQ(entry["tags"], json::array({"\"tag\"", "\"tag\""}));
  EXPECT_FALSE(entry["crc64nvme"].get<std::string>().empty());
}

TEST_F(Question, about_a_folder_has_the_digest_of_its_artifact) {
  fs::create_directories(folder.path() / "tree/deep");
  core::write_file_atomically(folder.path() / "tree/deep/f", text);
  auto nodes = file_tree::scan_tree(folder.path() / "tree");
  file_tree::hash_tree(folder.path() / "tree", nodes);
  const auto digest = file_tree::tree_digest(nodes).hex();
  given = {{"outputs", {{"o", allowed()}}}};
  const auto entry = collected(output(folder.path() / "tree"));
  EXPECT_EQ(asked()["kind"], "tree");
  EXPECT_EQ(asked()["artifact"], digest);
  EXPECT_EQ(entry["artifact"], digest);
  EXPECT_EQ(entry["artifact_bytes"], text.size());
  EXPECT_EQ(entry["digest"], core::sha256(direct()).hex());
}

TEST_F(Question, without_an_answer_in_time_lets_the_output_go_to_the_runs_place) {
  core::write_file_atomically(file, text);
  const auto is_sent_as_before = [&] {
    const auto entry = collected(output(file));
    EXPECT_EQ(entry["direct"], false);
    EXPECT_EQ(entry["digest"], core::sha256(text).hex());
    EXPECT_EQ(entry["tags"].size(), 2u);
    EXPECT_EQ(objects["/part?n=1&s=a"] + objects["/part?n=2&s=b"], text);
    EXPECT_EQ(report["asked"], true);
  };
  is_sent_as_before();
  for (const auto& useless : {json::object(), json("x"), json{{"outputs", json::object()}},
                              json{{"outputs", {{"o", json::object()}}}}}) {
    given = useless;
    is_sent_as_before();
  }
  auto few = allowed();
  few["signatures"] = json::array({"d"});
  given = {{"outputs", {{"o", few}}}};
  is_sent_as_before();
  given = {{"outputs", {{"o", allowed()}}}};
  forgets = true;  // A cleaning has aborted the upload.
  is_sent_as_before();
}

TEST_F(Question, is_not_asked_about_small_outputs_and_those_of_failures_or_that_leave_the_store) {
  given = {{"outputs", {{"o", {{"is_there", true}}}}}};
  core::write_file_atomically(file, text);
  EXPECT_EQ(collected(output(file, false))["direct"], false);
  EXPECT_FALSE(sent.contains("/question"));
  EXPECT_EQ(collected(output(file), 3)["direct"], false);
  EXPECT_FALSE(sent.contains("/question"));
  core::write_file_atomically(file, "small");
  EXPECT_EQ(collected(output(file))["direct"], false);
  EXPECT_FALSE(sent.contains("/question"));
  EXPECT_EQ(report["asked"], false);
  EXPECT_EQ(collected(output(folder.path() / "none"))["kind"], "none");
}

}  // namespace
}  // namespace pipeline::stager
