#include "file_tree/unpack.hpp"

#include <array>
#include <filesystem>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "file_tree/tar_stream.hpp"
#include "support/tar.hpp"

namespace pipeline::file_tree {
namespace {

namespace fs = std::filesystem;
using namespace test::tar;

class Unpacking : public testing::Test {
 protected:
  Unpacking() { fs::create_directory(target); }
  void unpack(const std::string& tar, std::size_t piece = 1 << 20) {
    Unpacker unpacker(target);
    for (std::size_t i = 0; i < tar.size(); i += piece)
      unpacker.feed(std::string_view(tar).substr(i, piece));
    unpacker.finish();
  }
  std::string failure(const std::string& tar) {
    try {
      unpack(tar);
    } catch (const core::EnvironmentError& error) {
      return error.what();
    }
    return "no error";
  }
  /// Nothing has come to be beside the target.
  void expect_nothing_outside() {
    EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1)
        << "something was written outside";
  }
  core::TemporaryFolder folder;
  const fs::path target = folder.path() / "target";
};

TEST_F(Unpacking, an_archive_made_by_pipe_is_unpacked_in_pieces_of_any_size) {
  std::vector<ContextFile> files;
  const auto add = [&](const std::string& path, ContextFile::Kind kind, std::string content,
                       unsigned mode) {
    ContextFile file;
    file.path = "outputs" + path;
    file.kind = kind;
    file.mode = mode;
    if (kind != ContextFile::Kind::directory) file.content = std::move(content);
    files.push_back(std::move(file));
  };
  const std::string long_name = "/" + std::string(150, 'a') + "/" + std::string(200, 'b');
  add("", ContextFile::Kind::directory, "", 0777);
  add("/x", ContextFile::Kind::file, std::string(100000, 'x'), 0600);
  add("/empty", ContextFile::Kind::file, "", 0400);
  add("/tool", ContextFile::Kind::file, "#!", 0555);
  add(long_name.substr(0, 151), ContextFile::Kind::directory, "", 0500);
  add(long_name, ContextFile::Kind::file, "deep", 0644);
  add("/link", ContextFile::Kind::symlink, std::string(180, 'l'), 0777);
  std::string tar;
  std::array<char, 777> buffer{};
  const auto source = tar_stream(files);
  for (std::size_t size = 0; (size = source(buffer)) > 0;) tar.append(buffer.data(), size);
  for (const std::size_t piece :
       {std::size_t{1}, std::size_t{511}, std::size_t{4096}, tar.size()}) {
    fs::remove_all(target);
    fs::create_directory(target);
    unpack(tar, piece);
    EXPECT_EQ(core::read_file(target / "x"), std::string(100000, 'x'));
    EXPECT_EQ(core::read_file(target / "empty"), "");
    EXPECT_NE(fs::status(target / "tool").permissions() & fs::perms::owner_exec, fs::perms::none);
    EXPECT_EQ(core::read_file(target / long_name.substr(1)), "deep");
    EXPECT_EQ(fs::read_symlink(target / "link"), std::string(180, 'l'));
  }
}

TEST_F(Unpacking, a_file_that_shrinks_while_it_is_sent_is_filled_up_with_zeros) {
  ContextFile file;
  file.path = "outputs/x";
  file.source = folder.path() / "x";
  core::write_file_atomically(file.source, std::string(200'000, 'x'));
  const auto source = tar_stream({file});
  std::array<char, 512> buffer{};
  std::string tar;
  for (std::size_t size = 0; (size = source(buffer)) > 0;) {
    if (tar.empty()) fs::resize_file(file.source, 10);  // Only the header has been sent.
    tar.append(buffer.data(), size);
  }
  unpack(tar);
  EXPECT_EQ(core::read_file(target / "x"), std::string(10, 'x') + std::string(199'990, '\0'));
}

TEST_F(Unpacking, posix_records_give_names_links_and_sizes) {
  const std::string name = "o/" + std::string(200, 'n');
  unpack(entry('x', "o/PaxHeaders.0/n",
               record("path", name) + record("mtime", "1.5") + record("SCHILY.xattr.user.x", "y")) +
         entry('0', "o/nnn", "content") +
         entry('x', "PaxHeaders", record("linkpath", std::string(200, 'l'))) +
         entry('2', "o/link", "", "short") + entry('g', "global", record("comment", "c")) +
         entry('0', "o/last", "1") + end);
  EXPECT_EQ(core::read_file(target / name.substr(2)), "content");
  EXPECT_EQ(fs::read_symlink(target / "link"), std::string(200, 'l'));
  EXPECT_EQ(core::read_file(target / "last"), "1");
}

TEST_F(Unpacking, hard_links_are_the_same_content_also_those_to_links) {
  unpack(entry('0', "o/a", "A") + entry('1', "o/b", "", "o/a") + entry('2', "o/l", "", "a") +
         entry('1', "o/m", "", "o/l") + end);
  EXPECT_EQ(core::read_file(target / "b"), "A");
  EXPECT_EQ(fs::read_symlink(target / "m"), "a");
}

TEST_F(Unpacking, nothing_leaves_the_target) {
  const auto outside = (folder.path() / "outside").string();
  EXPECT_NE(failure(entry('0', "o/../../outside", "x") + end).find("leaves the folder"),
            std::string::npos);
  EXPECT_NE(failure(entry('0', outside, "x") + end).find("leaves the folder"), std::string::npos);
  EXPECT_NE(failure(entry('0', "..", "x") + end).find("leaves the folder"), std::string::npos);
  EXPECT_NE(
      failure(entry('x', "p", record("path", "o/../../outside")) + entry('0', "o/a", "x") + end)
          .find("leaves the folder"),
      std::string::npos);
  EXPECT_NE(failure(entry('1', "o/h", "", "../../etc/passwd") + end).find("leaves the folder"),
            std::string::npos);
  // A link, and then something behind it.
  for (const auto& way : {folder.path().string(), std::string("../../target"), std::string("..")})
    for (const char type : {'0', '1', '2', '5'})
      EXPECT_NE(
          failure(entry('2', "o/way", "", way) + entry(type, "o/way/outside", "", "o/way") + end),
          "no error")
          << way << type;
  // A link with the name of an existing folder.
  EXPECT_NE(failure(entry('5', "o/d") + entry('2', "o/d", "", "/etc") + end), "no error");
  // The target itself becomes no link and no file.
  EXPECT_NE(failure(entry('2', "o", "", "/etc") + end).find("should be a folder"),
            std::string::npos);
  EXPECT_NE(failure(entry('0', "o/./", "x") + end).find("should be a folder"), std::string::npos);
  expect_nothing_outside();
}

TEST_F(Unpacking, no_link_leads_out_of_the_target) {
  const auto refused = [&](const std::string& tar) {
    fs::remove_all(target);
    fs::create_directory(target);
    return failure(tar + end).find("outside of the folder") != std::string::npos;
  };
  const auto folders = entry('5', "o/d") + entry('5', "o/d/e");
  EXPECT_TRUE(refused(entry('2', "o/l", "", "/etc/passwd")));
  EXPECT_TRUE(refused(entry('2', "o/l", "", "..")));
  EXPECT_TRUE(refused(folders + entry('2', "o/d/e/l", "", "../../../x")));
  EXPECT_TRUE(refused(folders + entry('2', "o/l", "", "d/e/../../../x")));
  EXPECT_TRUE(
      refused(folders + entry('2', "o/d/up", "", "..") + entry('2', "o/l", "", "d/up/../x")))
      << "the link leads through another link";
  EXPECT_TRUE(
      refused(folders + entry('2', "o/l", "", "d/up/../x") + entry('2', "o/d/up", "", "..")))
      << "the other link comes later";
  EXPECT_TRUE(
      refused(folders + entry('2', "o/d/e/up", "", "../..") + entry('1', "o/l", "", "o/d/e/up")))
      << "a hard link moves the link up";
  EXPECT_TRUE(refused(entry('2', "o/l", "", ""))) << "the empty link";
  EXPECT_FALSE(refused(folders + entry('2', "o/d/e/l", "", "../../x") +
                       entry('2', "o/m", "", "d/../n") + entry('2', "o/d/k", "", "e/./l")));
  expect_nothing_outside();
}

TEST_F(Unpacking, entries_that_existed_before_are_neither_followed_nor_replaced) {
  // Another process puts a link where a folder was.
  const auto victim = folder.path() / "victim";
  fs::create_directory(victim);
  fs::create_directory_symlink(victim, target / "d");
  core::write_file_atomically(target / "f", "old");
  EXPECT_NE(failure(entry('0', "o/d/x", "x") + end), "no error");
  EXPECT_NE(failure(entry('5', "o/d") + end), "no error");
  EXPECT_NE(failure(entry('0', "o/f", "new") + end), "no error");
  EXPECT_TRUE(fs::is_empty(victim));
  EXPECT_EQ(core::read_file(target / "f"), "old");
}

TEST_F(Unpacking, an_archive_above_its_limits_is_refused) {
  const auto refusal = [&](const std::string& tar, TarLimits limits) -> std::string {
    fs::remove_all(target);
    fs::create_directory(target);
    Unpacker unpacker(target, limits);
    try {
      unpacker.feed(tar);
      unpacker.finish();
    } catch (const ArchiveError& error) {
      return error.what();
    }
    return "";
  };
  const auto two = entry('0', "o/a", "12345") + entry('0', "o/b", "12345") + end;
  EXPECT_EQ(refusal(two, {.bytes = 10, .entries = 2}), "");
  EXPECT_NE(refusal(two, {.bytes = 9}).find("more than the 9 bytes"), std::string::npos);
  EXPECT_NE(refusal(two, {.entries = 1}).find("more than 1 entries"), std::string::npos);
  EXPECT_NE(
      refusal(entry('g', "p", record("a", "b")) + two, {.entries = 2}).find("more than 2 entries"),
      std::string::npos);
  EXPECT_EQ(refusal(two + std::string(9 * 1024, '\0'), {}), "");
  EXPECT_NE(refusal(two + std::string(2 << 20, '\0'), {}).find("bytes follow its end"),
            std::string::npos);
}

TEST_F(Unpacking, an_entry_that_an_output_cannot_have_is_refused_by_name) {
  for (const char type : {'3', '4', '6', 'S', 'V'})
    EXPECT_NE(failure(entry(type, "o/odd") + end).find("'o/odd' is neither"), std::string::npos)
        << type;
  EXPECT_NE(failure(entry('x', "p", record("GNU.sparse.major", "1")) + entry('0', "o/s", "x") + end)
                .find("sparse"),
            std::string::npos);
  EXPECT_NE(failure(entry('x', "p", record("path", std::string("o/a\0b", 5))) +
                    entry('0', "o/s", "x") + end)
                .find("zero byte"),
            std::string::npos);
  EXPECT_NE(failure(entry('x', "p", record("path", "o/" + std::string(5000, 'a'))) +
                    entry('0', "o/s", "x") + end)
                .find("longer than a path"),
            std::string::npos);
}

TEST_F(Unpacking, an_archive_that_is_invalid_cut_or_names_a_file_twice_is_refused) {
  EXPECT_NE(failure(std::string(2048, 'x')).find("not a tar"), std::string::npos);
  const auto whole = entry('0', "o/a", "content") + end;
  for (const std::size_t length :
       {std::size_t{0}, std::size_t{100}, std::size_t{512}, std::size_t{515}, std::size_t{1024}}) {
    fs::remove_all(target);
    fs::create_directory(target);
    EXPECT_NE(failure(whole.substr(0, length)).find("cut short"), std::string::npos) << length;
  }
  fs::remove_all(target);
  fs::create_directory(target);
  EXPECT_NE(failure(entry('0', "o/a", "1") + entry('0', "o/a", "2") + end), "no error");
  for (const char* records : {"x", "9999 path=x\n", "5 a\n", "12 path=x", "0 =\n", "3 \n"})
    EXPECT_NE(failure(entry('x', "p", records) + entry('0', "o/z", "x") + end).find("not a tar"),
              std::string::npos)
        << records;
}

}  // namespace
}  // namespace pipeline::file_tree
