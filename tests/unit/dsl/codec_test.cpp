#include <pipeline/codec.hpp>

#include <sys/stat.h>

#include <fstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "core/file.hpp"
#include "dsl/array_folder.hpp"

namespace pipeline {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

struct Metrics {
  double accuracy;
  int correct;
  std::vector<std::string> names;
  std::optional<double> loss;
  bool operator==(const Metrics&) const = default;
};
struct Point {
  float x, y;
  std::int32_t label;
  bool operator==(const Point&) const = default;
};
struct Data {
  std::vector<double> values;
  Metrics metrics;
  std::vector<Point> points;
  bool operator==(const Data&) const = default;
};
struct Opaque {
  explicit Opaque(int) {}
};
static_assert(!Storable<Opaque> && !Storable<std::vector<Opaque>> &&
              !Storable<std::map<std::string, Opaque>> && !Storable<int*>);
static_assert(!ArrayElement<const char*> && !ArrayElement<bool>);

class Codecs : public testing::Test {
 protected:
  fs::path place(const std::string& name) { return folder_.path() / name; }
  template <class T>
  T round_trip(const T& value) {
    const auto path = place("artifact" + std::to_string(count_++));
    Codec<T>::save(value, path);
    return Codec<T>::load(path);
  }
  fs::path file(const std::string& name, std::string_view content) {
    core::write_file_atomically(place(name), content);
    return place(name);
  }
  template <class T>
  std::string error_of(const fs::path& path) {
    try {
      Codec<T>::load(path);
    } catch (const CodecError& error) {
      return error.what();
    }
    return "no error";
  }

 private:
  core::TemporaryFolder folder_;
  int count_ = 0;
};

TEST_F(Codecs, values_are_loaded_as_they_were_saved) {
  EXPECT_EQ(round_trip(42), 42);
  EXPECT_EQ(round_trip(std::numeric_limits<std::uint64_t>::max()),
            std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(round_trip(std::numeric_limits<std::int64_t>::min()),
            std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(round_trip(0.1), 0.1);
  EXPECT_EQ(round_trip(true), true);
  EXPECT_EQ(round_trip(std::string("line\nwith \"quotes\" and ä")), "line\nwith \"quotes\" and ä");
  EXPECT_EQ(round_trip(std::vector<std::string>{"a", ""}), (std::vector<std::string>{"a", ""}));
  EXPECT_EQ(round_trip(std::vector<bool>{true, false}), (std::vector<bool>{true, false}));
  EXPECT_EQ(round_trip(std::map<std::string, std::optional<int>>{{"a", 1}, {"b", {}}}).at("b"),
            std::nullopt);
  EXPECT_EQ(round_trip(std::map<int, double>{{3, 0.5}}).at(3), 0.5);
  EXPECT_EQ(round_trip(std::pair<int, std::string>{1, "x"}).second, "x");
  EXPECT_EQ(round_trip(std::tuple<int, bool, double>{1, true, 2.5}), std::tuple(1, true, 2.5));
}

TEST_F(Codecs, numbers_without_a_literal_in_json_are_loaded_as_saved) {
  EXPECT_TRUE(std::isnan(round_trip(std::numeric_limits<double>::quiet_NaN())));
  EXPECT_EQ(round_trip(-std::numeric_limits<double>::infinity()),
            -std::numeric_limits<double>::infinity());
}

TEST_F(Codecs, plain_struct_is_json_with_the_names_of_its_members) {
  const Metrics metrics{0.75, 3, {"a", "b"}, {}};
  EXPECT_EQ(round_trip(metrics), metrics);
  Codec<Metrics>::save(metrics, place("metrics"));
  EXPECT_EQ(nlohmann::json::parse(core::read_file(place("metrics"))),
            (nlohmann::json{
                {"accuracy", 0.75}, {"correct", 3}, {"names", {"a", "b"}}, {"loss", nullptr}}));
}

TEST_F(Codecs, struct_with_arrays_is_a_folder_of_its_members) {
  const Data data{{1.5, 2.5}, {0.5, 1, {}, 0.25}, {{1, 2, 3}}};
  EXPECT_EQ(round_trip(data), data);
  Codec<Data>::save(data, place("data"));
  EXPECT_TRUE(fs::is_regular_file(place("data/values.npy")));
  EXPECT_TRUE(fs::is_regular_file(place("data/metrics.json")));
  const std::vector<Data> many{data, {}, data};
  EXPECT_EQ(round_trip(many), many);
}

TEST_F(Codecs, arrays_are_numpys_format) {
  Codec<std::vector<float>>::save({1, 2, 3}, place("array"));
  const auto bytes = core::read_file(place("array"));
  EXPECT_EQ(bytes.substr(0, 6), "\x93NUMPY");
  EXPECT_THAT(bytes, HasSubstr("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }"));
  EXPECT_EQ((bytes.size() - 12) % 64, 0u) << "the data is aligned";
  EXPECT_EQ(round_trip(std::vector<std::int64_t>{}), std::vector<std::int64_t>{});
}

TEST_F(Codecs, array_of_several_dimensions_is_mapped_not_read) {
  Array<double> made({2, 3});
  for (std::size_t i = 0; i < made.size(); ++i) made[i] = static_cast<double>(i);
  made.save(place("array"));
  const auto read = Array<double>::map(place("array"));
  EXPECT_THAT(read.shape(), ElementsAre(2, 3));
  EXPECT_THAT(read.span(), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(read.data()) % 64, 0u);
  std::fstream(place("array"), std::ios::in | std::ios::out | std::ios::binary)
      .seekp(-8, std::ios::end)
      .write("\0\0\0\0\0\0\xf0\x3f", 8);
  EXPECT_EQ(read[5], 1.0) << "the array maps the file itself";
  auto writable = Array<double>::map(place("array"));
  EXPECT_THROW(writable.data(), std::logic_error);
}

TEST_F(Codecs, array_made_in_a_step_becomes_the_output_without_a_copy) {
  detail::make_arrays_in(place("").parent_path());
  Array<std::int32_t> made(1000);
  made[999] = 7;
  made.save(place("output"));
  made[0] = 5;  // the same pages
  const auto read = Array<std::int32_t>::map(place("output"));
  detail::make_arrays_in({});
  EXPECT_EQ(read.size(), 1000u);
  EXPECT_EQ(read[999], 7);
  if (read[0] != 5)
    GTEST_SKIP() << "this file system has no unnamed files, so the array was copied";
}

TEST_F(Codecs, damaged_array_says_what_is_wrong_with_which_file) {
  Codec<std::vector<double>>::save({1, 2, 3}, place("array"));
  const auto whole = core::read_file(place("array"));
  EXPECT_EQ(error_of<std::vector<double>>(file("short", whole.substr(0, whole.size() - 1))),
            "cannot read " + place("short").string() +
                ": expected 24 bytes of data for the shape, found 23");
  EXPECT_THAT(error_of<std::vector<double>>(file("cut", whole.substr(0, 40))),
              HasSubstr("the file is truncated"));
  EXPECT_THAT(error_of<std::vector<double>>(file("other", "a,b,c and more")),
              HasSubstr("expected a .npy array, but the file lacks its signature"));
  EXPECT_EQ(error_of<std::vector<float>>(place("array")),
            "cannot read " + place("array").string() +
                ": expected an array of floating point numbers of 32 bits, found floating point "
                "numbers of 64 bits");
  EXPECT_THAT(error_of<Array<std::int32_t>>(place("array")),
              HasSubstr("expected an array of integers of 32 bits"));
  auto odd = whole;
  odd.replace(odd.find("<f8"), 3, "<fx");
  EXPECT_THAT(error_of<std::vector<double>>(file("odd", odd)), HasSubstr("found '<fx'"));
  auto huge = whole;
  huge.replace(huge.find("(3,)"), 4, "(99999999999999999999,)");
  EXPECT_THAT(error_of<std::vector<double>>(file("huge", huge)),
              HasSubstr("its shape is too large"));
  EXPECT_THAT(error_of<std::vector<double>>(place("nothing")), HasSubstr("No such file"));
}

TEST_F(Codecs, error_of_wrong_json_names_the_place_in_it) {
  EXPECT_EQ(
      error_of<Metrics>(file("a", R"({"accuracy": "high", "correct": 1, "names": []})")),
      "cannot read " + place("a").string() + ": .accuracy: expected a number, found \"high\"");
  EXPECT_THAT(error_of<Metrics>(file("b", R"({"accuracy": 1, "correct": 1.5, "names": []})")),
              HasSubstr(".correct: expected an integer, found 1.5"));
  EXPECT_THAT(error_of<Metrics>(file("c", R"({"accuracy": 1, "correct": 1, "names": ["a", 2]})")),
              HasSubstr(".names[1]: expected a text, found 2"));
  EXPECT_THAT(error_of<Metrics>(file("d", "{")), HasSubstr("invalid JSON"));
  EXPECT_THAT(error_of<std::int8_t>(file("e", "300")),
              HasSubstr("expected an integer from -128 to 127, found 300"));
  EXPECT_THAT(error_of<unsigned>(file("f", "-1")),
              HasSubstr("expected an integer that is not negative, found -1"));
  EXPECT_THAT(error_of<Metrics>(file("g", R"({"accuracy": 1})")),
              HasSubstr(".correct: expected an integer, found nothing"));
}

TEST_F(Codecs, text_that_json_cannot_hold_is_refused_with_what_to_use) {
  try {
    Codec<std::vector<std::string>>::save({"a", "\xff"}, place("bytes"));
    ADD_FAILURE() << "the text was accepted";
  } catch (const CodecError& error) {
    EXPECT_THAT(error.what(), HasSubstr("JSON holds text in UTF-8 only"));
    EXPECT_THAT(error.what(), HasSubstr("std::vector<unsigned char>"));
  }
  EXPECT_FALSE(fs::exists(place("bytes")));
}

TEST_F(Codecs, a_vector_of_files_is_a_folder_of_them) {
  using Files = std::vector<File>;
  static_assert(!JsonAble<File> && !JsonAble<std::vector<Folder>>);
  static_assert(!Storable<std::map<std::string, File>>);  // Would be JSON with names of files.
  Codec<Files>::save({{file("a.txt", "one")}, {file("b.txt", "two")}}, place("files"));
  const auto files = Codec<Files>::load(place("files"));
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(core::read_file(files[0].path), "one");
  EXPECT_EQ(core::read_file(files[1].path), "two");
}

TEST_F(Codecs, files_and_folders_are_stored_as_they_are) {
  Codec<File>::save({file("report.txt", "text")}, place("stored"));
  EXPECT_EQ(core::read_file(Codec<File>::load(place("stored")).path), "text");
  EXPECT_FALSE(fs::exists(place("report.txt"))) << "a file of the step's own folder is moved";
  ::chmod(place("stored").c_str(), 0444);
  Codec<File>::save({place("stored")}, place("passed_on"));
  EXPECT_TRUE(fs::exists(place("stored"))) << "an input, passed on, stays";
  fs::create_symlink(place("stored"), place("link"));  // As inputs of a process are.
  Codec<File>::save({place("link")}, place("passed_on_link"));
  EXPECT_FALSE(fs::is_symlink(place("passed_on_link")));
  EXPECT_EQ(core::read_file(place("passed_on_link")), "text");
  fs::create_directories(place("artifact/below"));
  core::write_file_atomically(place("artifact/below/file"), "text");
  for (const auto* path : {"artifact/below", "artifact"}) ::chmod(place(path).c_str(), 0555);
  fs::create_symlink(place("artifact"), place("folder_link"));
  Codec<Folder>::save({place("folder_link")}, place("passed_on_folder"));
  EXPECT_FALSE(fs::is_symlink(place("passed_on_folder")));
  EXPECT_EQ(core::read_file(place("passed_on_folder/below/file")), "text");
  EXPECT_NE(fs::status(place("passed_on_folder/below")).permissions() & fs::perms::owner_write,
            fs::perms::none)
      << "without this permission, only root could copy files into the folder";
  fs::create_directories(place("folder/below"));
  Codec<Folder>::save({place("folder")}, place("stored_folder"));
  EXPECT_TRUE(fs::is_directory(place("stored_folder/below")));
  EXPECT_THROW(Codec<File>::save({place("nothing")}, place("x")), CodecError);
  EXPECT_THROW(Codec<Folder>::save({place("passed_on")}, place("y")), CodecError);
}

}  // namespace
}  // namespace pipeline
