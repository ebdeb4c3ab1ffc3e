#include "oci/image_tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/file.hpp"
#include "support/tar.hpp"

namespace pipeline::oci {
namespace {

using test::tar::entry;

/// Writes `NAME TYPE CONTENT-OR-LINK` of each entry, and its time where there is one.
class Listing final : public file_tree::TarReader::Sink {
 public:
  std::string text;

 private:
  void begin(const file_tree::TarReader::Entry& read) override {
    text += read.name + " " + read.type + " " + read.linked;
    if (read.time) text += "@" + std::to_string(read.time);
  }
  void content(std::string_view bytes) override { text += bytes; }
  void end() override { text += "\n"; }
};

class ImageTrees : public testing::Test {
 protected:
  void add(const std::string& entries) {
    const auto file = folder_.path() / std::to_string(layers_++);
    core::write_file_atomically(file, entries + test::tar::end);
    tree_.add_layer(file);
  }
  std::string files() {
    const auto tar = folder_.path() / "all";
    tree_.write(tar);
    Listing listing;
    file_tree::TarReader reader(listing, {});
    reader.feed(core::read_file(tar));
    reader.finish();
    return listing.text;
  }
  /// Returns why a layer is refused.
  std::string refusal(const std::string& entries) {
    try {
      add(entries);
    } catch (const file_tree::ArchiveError& error) {
      return error.what();
    }
    return "it was taken";
  }

  const core::TemporaryFolder folder_;
  ImageTree tree_;
  int layers_ = 0;
};

TEST_F(ImageTrees, entries_that_lead_out_or_are_special_files_are_refused) {
  add(entry('5', "etc/") + entry('0', "etc/passwd", "root") + entry('2', "a", {}, "b") +
      entry('2', "b", {}, "/a"));
  EXPECT_THAT(refusal(entry('0', "../x")), testing::HasSubstr("`..`"));
  EXPECT_THAT(refusal(entry('0', "etc/../../x")), testing::HasSubstr("`..`"));
  EXPECT_THAT(refusal(entry('1', "x", {}, "../../etc/shadow")), testing::HasSubstr("`..`"));
  EXPECT_THAT(refusal(entry('1', "x", {}, "etc/shadow")), testing::HasSubstr("leads to no file"));
  EXPECT_THAT(refusal(entry('1', "y", {}, "y")), testing::HasSubstr("leads to no file"));
  EXPECT_THAT(refusal(entry('1', "y", {}, "etc")), testing::HasSubstr("leads to no file"));
  EXPECT_THAT(refusal(entry('0', "etc/.wh...")), testing::HasSubstr("names no file"));
  EXPECT_THAT(refusal(entry('0', "etc/passwd/x")), testing::HasSubstr("through a file"));
  EXPECT_THAT(refusal(entry('0', "a/x")), testing::HasSubstr("in a circle"));
  EXPECT_THAT(refusal(entry('2', "x")), testing::HasSubstr("no target"));
  EXPECT_THAT(refusal(entry('S', "x")), testing::HasSubstr("of the kind 'S'"));
  std::string deep;
  for (int i = 0; i < 40; ++i) deep += "d/";
  std::string links = entry('2', "l0", {}, deep);
  for (int i = 1; i < 20; ++i)
    links += entry('2', "l" + std::to_string(i), {}, "l" + std::to_string(i - 1) + "/" + deep);
  EXPECT_THAT(refusal(links + entry('0', "l19/x")), testing::HasSubstr("deeper than 512"));
}

TEST_F(ImageTrees, a_layer_that_was_cut_is_refused) {
  const auto file = folder_.path() / "cut";
  core::write_file_atomically(file, entry('0', "x", "text"));
  EXPECT_THROW(tree_.add_layer(file), file_tree::ArchiveError);
  core::write_file_atomically(file, "");
  EXPECT_NO_THROW(tree_.add_layer(file));
}

TEST_F(ImageTrees, folders_that_only_paths_name_count_as_entries) {
  constexpr std::uint64_t limit = 100;
  const auto file = folder_.path() / "layer";
  std::string entries, deep;
  for (int i = 0; i < 40; ++i) deep += "d/";
  for (int i = 0; i < 4; ++i) entries += entry('0', std::to_string(i) + "/" + deep + "x");
  core::write_file_atomically(file, entries + test::tar::end);
  ImageTree small(limit);
  std::string why = "it was taken";
  try {
    small.add_layer(file);
  } catch (const file_tree::ArchiveError& error) {
    why = error.what();
  }
  EXPECT_THAT(why, testing::HasSubstr("more than 100 entries"));
}

TEST_F(ImageTrees, links_are_resolved_within_the_image) {
  add(entry('2', "out", {}, "/../../tmp") + entry('2', "lib", {}, "usr/lib"));
  add(entry('0', "out/x", "1") + entry('0', "lib/y", "2") + entry('0', "/etc/z", "3"));
  EXPECT_EQ(files(),
            "etc/ 5 \netc/z 0 3\nlib 2 usr/lib\nout 2 /../../tmp\ntmp/ 5 \ntmp/x 0 1\nusr/ 5 \n"
            "usr/lib/ 5 \nusr/lib/y 0 2\n");
}

TEST_F(ImageTrees, whiteouts_hide_files_of_lower_layers_and_none_of_their_own) {
  add(entry('5', "a/") + entry('0', "a/1", "1") + entry('5', "a/b/") + entry('0', "a/b/2", "2") +
      entry('5', "c/") + entry('0', "c/3", "3") + entry('0', "d", "4") + entry('0', "e", "5"));
  add(entry('5', "a/") + entry('0', "a/new", "n") + entry('0', "a/.wh..wh..opq") +
      entry('0', ".wh.c") + entry('0', ".wh.d") + entry('0', "e", "again") + entry('0', ".wh.e") +
      entry('0', ".wh.never-there") + entry('0', ".wh..wh.plnk"));
  EXPECT_EQ(files(), "a/ 5 \na/new 0 n\ne 0 again\n");
  add(entry('0', ".wh.a") + entry('0', "a/later", "l"));
  EXPECT_EQ(files(), "a/ 5 \na/later 0 l\ne 0 again\n");
}

TEST_F(ImageTrees, many_whiteouts_of_a_folder_hide_it_once) {
  constexpr int count = 20'000;
  add(entry('5', "a/b/") + entry('0', "a/b/1", "1"));
  std::string files_of_layer, whiteouts;
  for (int i = 0; i < count; ++i) files_of_layer += entry('0', "a/" + std::to_string(i));
  for (int i = 0; i < count; ++i) whiteouts += entry('0', "a/.wh..wh..opq");
  add(files_of_layer + entry('0', "a/b/2") + whiteouts + entry('0', "a/b/3") + entry('0', ".wh.a") +
      entry('0', "a/b/.wh..wh..opq"));
  const auto all = files();
  EXPECT_THAT(all, testing::HasSubstr("a/9999 0 \na/b/ 5 \na/b/2 0 \na/b/3 0 \n"));
  add(entry('0', "a/.wh..wh..opq") + entry('0', "a/b/4"));
  EXPECT_EQ(files(), "a/ 5 \na/b/ 5 \na/b/4 0 \n");
}

TEST_F(ImageTrees, a_later_entry_replaces_an_earlier_one_and_hard_links_are_the_same_file) {
  add(entry('5', "f/") + entry('0', "f/x", "x") + entry('0', "g", std::string(1500, 'g')) +
      entry('1', "h", {}, "g") + entry('2', "s", {}, "g") + entry('1', "t", {}, "s") +
      entry('3', "device") + entry('6', "pipe"));
  add(entry('0', "f", "a file") + entry('5', "g/") + entry('1', "i", {}, "./h"));
  tree_.add_missing_folder("/pipe", 7);
  tree_.add_missing_file("etc/hosts", 7);
  tree_.add_missing_folder("f", 7);
  const auto content = std::string(1500, 'g');
  EXPECT_EQ(files(), "etc/ 5 \netc/hosts 0 @7\nf 0 a file\ng/ 5 \nh 0 " + content + "\ni 0 " +
                         content + "\npipe/ 5 @7\ns 2 g\nt 2 g\n");
}

TEST_F(ImageTrees, times_are_kept_so_that_compiled_modules_stay_valid) {
  const auto times = test::tar::record("mtime", "1700000000.25");
  add(entry('x', "pax", times) + entry('0', "module.py", "1"));
  EXPECT_EQ(files(), "module.py 0 @17000000001\n");
}

}  // namespace
}  // namespace pipeline::oci
