// The content of a folder is sent as an ordinary tar.
#include "file_tree/content.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <optional>

#include "core/error.hpp"
#include "file_tree/tar_reader.hpp"

namespace pipeline::file_tree {
namespace {

namespace fs = std::filesystem;

class ContentTest : public testing::Test {
 protected:
  void SetUp() override { fs::create_directory(root); }
  void write(const std::string& name, const std::string& text) {
    core::make_folders((root / name).parent_path());
    core::write_file_atomically(root / name, text);
  }
  static std::string all(const Content& content, std::size_t at_a_time) {
    std::string text, piece(at_a_time, '\0');
    while (const auto count = content.read(text.size(), piece)) text.append(piece, 0, count);
    return text;
  }
  /// Returns what a reader finds in one of our own archives; nothing if it refuses the archive.
  static std::optional<std::string> found_in(std::string_view tar) {
    struct Listing final : TarReader::Sink {
      std::string text;
      void begin(const TarReader::Entry& entry) override {
        text += entry.type + entry.name + '\n' + entry.linked + '\n' + std::to_string(entry.mode);
      }
      void content(std::string_view bytes) override { text += bytes; }
      void end() override { text += '\n'; }
    };
    Listing listing;
    TarReader reader(listing, {.requires_exact_form = true});
    try {
      reader.feed(tar);
      reader.finish();
    } catch (const ArchiveError&) {
      return std::nullopt;
    }
    return listing.text;
  }
  core::TemporaryFolder folder;
  fs::path root = folder.path() / "root";
};

TEST_F(ContentTest, a_folder_is_a_tar_from_which_tar_makes_the_same_folder) {
  const std::string long_name = std::string(90, 'd') + "/" + std::string(200, 'f');
  write("a", "one");
  write("b/empty", "");
  write(long_name, std::string(100'000, 'x'));
  write("block", std::string(512, 'y'));
  write("run", "#!/bin/sh\n");
  fs::permissions(root / "run", fs::perms::owner_all);
  fs::create_symlink("b/../a", root / "link");
  fs::create_symlink(
      std::string(90, 'd') + "/../" + std::string(90, 'd') + "/" + std::string(200, 'f'),
      root / "long");
  auto nodes = scan_tree(root);
  const Content content(root, nodes);
  const auto text = all(content, 1 << 20);
  EXPECT_EQ(text.size(), content.size());
  EXPECT_EQ(text.size() % 512, 0u);
  EXPECT_EQ(all(content, 7), text) << "the size of the pieces does not matter";
  core::write_file_atomically(folder.path() / "x.tar", text);
  const auto out = folder.path() / "out";
  fs::create_directory(out);
  ASSERT_EQ(
      std::system(("tar -C '" + out.string() + "' -xf '" + (folder.path() / "x.tar").string() + "'")
                      .c_str()),
      0);
  auto again = scan_tree(out);
  hash_tree(root, nodes);
  hash_tree(out, again);
  EXPECT_EQ(tree_digest(again), tree_digest(nodes));
  for (const std::size_t size : {std::size_t{7}, text.size()}) {
    auto sent = scan_tree(root);
    FileDigests files(content, sent);
    for (std::string_view rest = text; !rest.empty();
         rest.remove_prefix(std::min(size, rest.size())))
      files.update(rest.substr(0, size));
    EXPECT_EQ(tree_digest(sent), tree_digest(nodes)) << "read with the tar, " << size << " a time";
  }
}

TEST_F(ContentTest, each_bit_that_flips_in_a_folders_tar_is_noticed) {
  write("a", "one");
  write(std::string(60, 'd') + "/" + std::string(60, 'f'), "two");
  fs::create_symlink("a", root / "link");
  auto tar = all(Content(root, scan_tree(root)), 1 << 20);
  const auto right = found_in(tar);
  ASSERT_TRUE(right);
  for (std::size_t bit = 0; bit < tar.size() * 8; ++bit) {
    auto& byte = tar[bit / 8];
    const auto before = byte;
    byte = static_cast<char>(byte ^ 1 << bit % 8);
    const auto found = found_in(tar);
    ASSERT_NE(found, right) << "bit " << bit;
    const bool is_accepted = found.has_value() && before == '\0';
    ASSERT_FALSE(is_accepted) << "the changed content was accepted: bit " << bit;
    byte = before;
  }
  EXPECT_EQ(found_in(tar), right);
  EXPECT_FALSE(found_in(tar + std::string(512, '\0'))) << "more than its end";
  EXPECT_FALSE(found_in(std::string_view(tar).substr(0, tar.size() - 512))) << "half of its end";
}

TEST_F(ContentTest, a_file_is_its_bytes_from_anywhere) {
  write("a", "0123456789");
  const Content content(root / "a");
  std::string piece(4, '\0');
  EXPECT_EQ(content.size(), 10u);
  EXPECT_EQ(content.read(8, piece), 2u);
  EXPECT_EQ(piece.substr(0, 2), "89");
  EXPECT_EQ(content.read(2, piece), 4u);
  EXPECT_EQ(piece, "2345");
  EXPECT_EQ(content.read(10, piece), 0u);
}

TEST_F(ContentTest, a_file_that_became_shorter_is_an_error_and_no_other_bytes) {
  write("a", "0123456789");
  const Content content(root / "a");
  std::ofstream(root / "a") << "01";
  std::string piece(10, '\0');
  EXPECT_THROW(content.read(0, piece), core::EnvironmentError);
}

TEST_F(ContentTest, links_that_lead_through_links_again_and_again_are_refused) {
  fs::create_directory(root / "x");
  std::string winding;
  for (int i = 0; i < 300; ++i) winding += "x/../";
  for (int i = 0; i < 38; ++i)
    fs::create_symlink(winding + (i == 37 ? "x" : "l" + std::to_string(i + 1)),
                       root / ("l" + std::to_string(i)));
  EXPECT_THROW(scan_tree(root), core::ContentError);
  for (int i = 0; i < 38; ++i) fs::remove(root / ("l" + std::to_string(i)));
  fs::create_symlink("x/../second", root / "first");
  fs::create_symlink("x", root / "second");
  EXPECT_EQ(scan_tree(root).size(), 3u) << "a link that leads through one other link is accepted";
}

}  // namespace
}  // namespace pipeline::file_tree
