#include "docker/unpack.hpp"

#include <array>
#include <filesystem>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "docker/context.hpp"

namespace pipeline::docker {
namespace {

namespace fs = std::filesystem;

std::string octal(std::uint64_t number, int digits) {
  std::string text(static_cast<std::size_t>(digits), '0');
  for (auto digit = text.rbegin(); digit != text.rend(); ++digit, number >>= 3)
    *digit = static_cast<char>('0' + (number & 7));
  return text;
}

/// One entry, with whatever is wrong in it.
std::string entry(char type, const std::string& name, const std::string& content = {},
                  const std::string& linked = {}) {
  std::string header(512, '\0');
  const auto put = [&](std::size_t at, const std::string& text) {
    header.replace(at, text.size(), text);
  };
  put(0, name.substr(0, 100));
  put(100, octal(0644, 7));
  put(124, octal(content.size(), 11));
  put(148, "        ");
  header[156] = type;
  put(157, linked.substr(0, 100));
  put(257, std::string("ustar\0", 6) + "00");
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put(148, octal(sum, 6) + std::string("\0 ", 2));
  return header + content + std::string((512 - content.size() % 512) % 512, '\0');
}

std::string record(const std::string& key, const std::string& value) {
  const auto rest = " " + key + "=" + value + "\n";
  for (std::size_t length = rest.size() + 1;; ++length)
    if (auto text = std::to_string(length) + rest; text.size() == length) return text;
}

const std::string end(1024, '\0');

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

TEST_F(Unpacking, what_the_other_direction_packs_comes_out_in_pieces_of_any_size) {
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
  // A link to the outside, and then a file behind it: links come last, so there is a plain folder
  // missing.
  EXPECT_NE(failure(entry('2', "o/way", "", folder.path().string()) +
                    entry('0', "o/way/outside", "x") + end),
            "no error");
  // A link in the place of a folder that is there.
  EXPECT_NE(failure(entry('5', "o/d") + entry('2', "o/d", "", "/etc") + end), "no error");
  // The target itself becomes no link and no file.
  EXPECT_NE(failure(entry('2', "o", "", "/etc") + end).find("should be a folder"),
            std::string::npos);
  EXPECT_NE(failure(entry('0', "o/./", "x") + end).find("should be a folder"), std::string::npos);
  expect_nothing_outside();
}

TEST_F(Unpacking, what_no_output_can_be_is_refused_by_name) {
  for (const char type : {'3', '4', '6', 'S', 'V'})
    EXPECT_NE(failure(entry(type, "o/odd") + end).find("'o/odd' is neither"), std::string::npos)
        << type;
}

TEST_F(Unpacking, what_is_no_tar_or_cut_short_or_names_a_file_twice_is_refused) {
  EXPECT_NE(failure(std::string(2048, 'x')).find("no tar"), std::string::npos);
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
    EXPECT_NE(failure(entry('x', "p", records) + entry('0', "o/z", "x") + end).find("no tar"),
              std::string::npos)
        << records;
}

}  // namespace
}  // namespace pipeline::docker
