// A step's checkpoint, sent and restored through a server that may lose or damage it.
#include "stager/checkpoint.hpp"

#include <atomic>
#include <vector>

#include "core/file.hpp"
#include "unit/stager/server_fixture.hpp"

namespace pipeline::stager {
namespace {

using nlohmann::json;
using test::HttpExchange;
using testing::HasSubstr;
namespace fs = std::filesystem;

class Checkpoint : public ServerFixture {
 protected:
  Checkpoint() { fs::create_directories(step / "deep"); }
  async::Task<> serve(HttpExchange& exchange) override {
    const auto key = exchange.target;
    if (exchange.method == "PUT" && key == refused) {
      co_await exchange.answer(403, "<Error><Code>AccessDenied</Code></Error>");
    } else if (exchange.method == "PUT") {
      written.push_back(key);
      objects[key] = exchange.body;
      co_await exchange.answer(200, "", "ETag: \"1\"\r\n");
    } else if (!objects.contains(key)) {
      co_await exchange.answer(404, "<Error><Code>NoSuchKey</Code><Message>no</Message></Error>");
    } else {
      co_await exchange.begin_stream();
      co_await exchange.piece(objects[key]);
      co_await exchange.end_stream();
    }
  }
  json slot(const std::string& name) {
    return {{"name", name},
            {"before", server.url() + "/" + name + "."},
            {"after", "?s="},
            {"signatures", {"1", "2"}}};
  }
  json saving() {
    return {{"path", step.string()},
            {"note", (folder.path() / "note").string()},
            {"copy", (folder.path() / "copy").string()},
            {"seen", server.url() + "/head"},
            {"head", server.url() + "/head"},
            {"slots", {slot("a"), slot("b"), slot("c")}}};
  }
  bool save(FolderUse use = FolderUse::at_rest) {
    const auto document = saving();
    Transfer transfer("", hasty);
    return CheckpointSaver(document, marks, transfer).save(use);
  }
  /// Restores to an empty folder, as the next pod does.
  std::string restore() {
    core::remove_tree(step);
    core::remove_tree(folder.path() / "note");
    const json document{{"to", step.string()},
                        {"head", server.url() + "/head"},
                        {"slots", {{"a", slot("a")}, {"b", slot("b")}, {"c", slot("c")}}}};
    Transfer transfer("", hasty);
    return restore_checkpoint(document, marks, transfer);
  }
  void write(const std::string& text) { core::write_file_atomically(step / "deep/state", text); }
  std::string state() const { return core::read_file(step / "deep/state"); }

  const fs::path step = folder.path() / "step", marks = folder.path() / "marks";
  std::vector<std::string> written;
  std::string refused;
};

TEST_F(Checkpoint, is_restored_as_sent_last) {
  EXPECT_EQ(restore(), "");
  fs::create_directories(step / "deep");
  write("one");
  EXPECT_TRUE(save());
  EXPECT_FALSE(save()) << "an unchanged checkpoint is not saved";
  write("two");
  core::write_file_atomically(step / "tool", "x");
  fs::permissions(step / "tool", fs::perms(0755));
  EXPECT_TRUE(save());
  EXPECT_THAT(restore(), HasSubstr("has the files that an earlier attempt uploaded last"));
  EXPECT_EQ(state(), "two");
  EXPECT_EQ(fs::status(step / "tool").permissions(), fs::perms(0755));
  EXPECT_FALSE(save()) << "the checkpoint is unchanged since it was restored";
  fs::remove(step / "tool");
  EXPECT_TRUE(save());
}

TEST_F(Checkpoint, is_written_beside_the_last_one_before_it_replaces_that) {
  for (const char* text : {"one", "two", "three"}) {
    write(text);
    EXPECT_TRUE(save(FolderUse::in_use));
  }
  EXPECT_EQ(written, (std::vector<std::string>{"/a.1?s=1", "/head", "/b.1?s=1", "/head", "/a.1?s=1",
                                               "/head"}));
  EXPECT_FALSE(fs::exists(folder.path() / "copy"));
  write("last");
  EXPECT_TRUE(save());
  EXPECT_EQ(written[6], "/c.1?s=1") << "the last save has a slot of its own";
}

TEST_F(Checkpoint, that_was_sent_in_part_is_not_restored) {
  write("one");
  EXPECT_TRUE(save(FolderUse::in_use));
  write("two");
  refused = "/head";
  EXPECT_THROW(save(FolderUse::in_use), TransferError);
  EXPECT_THAT(restore(), HasSubstr("has the files that"));
  EXPECT_EQ(state(), "one");
}

TEST_F(Checkpoint, that_is_damaged_or_missing_leaves_an_empty_folder) {
  write("one");
  EXPECT_TRUE(save());
  const auto whole = objects;
  objects["/c.1?s=1"][600] ^= 1;
  EXPECT_THAT(restore(), HasSubstr("is empty"));
  EXPECT_TRUE(fs::is_empty(step));
  objects = whole;
  objects["/c.1?s=1"].resize(700);
  EXPECT_THAT(restore(), HasSubstr("is empty"));
  objects.erase("/c.1?s=1");
  EXPECT_THAT(restore(), HasSubstr("a part is missing"));
  for (const char* head :
       {"", "[]", "{\"slot\": 1}", R"({"slot": "a", "sha256": "", "parts": 0})"}) {
    objects["/head"] = head;
    EXPECT_THAT(restore(), HasSubstr("its description is damaged")) << head;
  }
  objects["/head"] = R"({"slot": "z", "sha256": "", "parts": 1})";
  EXPECT_THAT(restore(), HasSubstr("unknown to this one"));
}

TEST_F(Checkpoint, that_changes_often_is_copied_while_it_does_not) {
  std::atomic<bool> is_over = false;
  std::thread writer([&] {
    for (int i = 0; !is_over; ++i) {
      const auto text = std::to_string(i);
      write(text);
      core::write_file_atomically(step / "second", text);
      std::this_thread::sleep_for(std::chrono::milliseconds(25));
    }
  });
  while (!save(FolderUse::in_use)) continue;
  is_over = true;
  writer.join();
  restore();
  EXPECT_EQ(state(), core::read_file(step / "second"));
}

}  // namespace
}  // namespace pipeline::stager
