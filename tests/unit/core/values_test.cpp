// Digests, quantities, names, values, errors, the loader of libraries, stop signals.
#include <gtest/gtest.h>

#include <cerrno>
#include <fstream>
#include <memory>

#include "core/cancel.hpp"
#include "core/digest.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/identifier.hpp"
#include "core/lazy_library.hpp"
#include "core/quantity.hpp"
#include "core/reading_stop.hpp"
#include "core/value.hpp"

namespace pipeline::core {
namespace {

using namespace std::chrono_literals;

TEST(Digest, is_sha256) {
  EXPECT_EQ(sha256("").hex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc").hex(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  Hasher hasher;
  EXPECT_EQ(hasher.update("a").update("bc").finish(), sha256("abc"));
  EXPECT_EQ(hasher.update("abc").finish(), sha256("abc")) << "starts anew";
  EXPECT_NE(hasher.field("ab").field("c").finish(), Hasher().field("a").field("bc").finish());
  EXPECT_EQ(Digest::from_hex(sha256("x").hex()), sha256("x"));
  EXPECT_THROW(Digest::from_hex("12"), std::invalid_argument);
  EXPECT_THROW(Digest::from_hex(std::string(63, '0') + "g"), std::invalid_argument);
}

TEST(Digest, of_a_file_is_that_of_its_bytes_for_all_sizes) {
  const TemporaryFolder folder;
  for (const std::size_t size : {0u, 1u, 16383u, 16384u, 16385u, 3'000'000u}) {
    const std::string content(size, 'x');
    std::ofstream(folder.path() / "f") << content;
    EXPECT_EQ(sha256_file(folder.path() / "f"), sha256(content)) << size;
  }
  EXPECT_THROW(sha256_file(folder.path() / "missing"), EnvironmentError);
  EXPECT_THROW(sha256_file(folder.path()), EnvironmentError);
  stop_reading();
  EXPECT_THROW(sha256_file(folder.path() / "f"), EnvironmentError);
  permit_reading();
  EXPECT_NO_THROW(sha256_file(folder.path() / "f"));
}

TEST(Quantity, sizes_have_their_bytes_or_an_error) {
  const std::pair<const char*, std::optional<Bytes>> table[] = {
      {"0", 0},
      {"1073741824", 1073741824},
      {"512MB", 512'000'000},
      {"8GiB", 8ULL << 30},
      {"1.5GiB", 3ULL << 29},
      {"0.1GB", 100'000'000},
      {"1KB", 1000},
      {"1kB", 1000},
      {"1KiB", 1024},
      {"2PiB", 2ULL << 50},
      {"1PB", 1'000'000'000'000'000},
      {"5b", 5},
      {"5B", 5},
      {"1k", 1024},
      {"512m", 512 << 20},
      {"2g", 2ULL << 30},
      {"100Mi", 100 << 20},
      {"2Gi", 2ULL << 30},
      {"1.5 GiB", 3ULL << 29},
      {"9223372036854775807", 9223372036854775807ULL},
      {"8191PiB", 8191ULL << 50},
      {"0.001KiB", 1},
      {"", {}},
      {"-1", {}},
      {"+1", {}},
      {"GiB", {}},
      {"1.5", {}},
      {"1.GiB", {}},
      {".5GiB", {}},
      {"1e3", {}},
      {"1 ", {}},
      {" 1", {}},
      {"1  GiB", {}},
      {"1gib", {}},
      {"1G", {}},
      {"1M", {}},
      {"1mb", {}},
      {"9223372036854775808", {}},
      {"8192PiB", {}},
      {"99999999999999999999999", {}},
      {"0x10", {}},
      {"1,5GiB", {}},
      {"1GiBs", {}},
      {"nan", {}},
      {"1.0000000000000000000000001GiB", {}},
      {"\xd9\xa1", {}}};
  for (const auto& [text, expected] : table) EXPECT_EQ(parse_bytes(text), expected) << text;
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1 KiB");
  EXPECT_EQ(format_bytes(3ULL << 29), "1.5 GiB");
  EXPECT_EQ(format_bytes((1ULL << 30) - 1), "1 GiB");
  for (const Bytes bytes : {0ULL, 1ULL, 1023ULL, 1536ULL, 5ULL << 40})
    EXPECT_EQ(parse_bytes(format_bytes(bytes)), bytes);
}

TEST(Quantity, quantities_of_kubernetes_have_their_value) {
  for (const auto& [text, value] : {std::pair("2", 2.0),
                                    {"500m", 0.5},
                                    {"0.5", 0.5},
                                    {"8Gi", 8.0 * (1 << 30)},
                                    {"20G", 20e9},
                                    {"1e3", 1000.0},
                                    {"1E+3", 1000.0},
                                    {"5E", 5e18},
                                    {"16Ki", 16384.0},
                                    {"100u", 1e-4}})
    EXPECT_DOUBLE_EQ(parse_quantity(text).value_or(-1), value) << text;
  for (const auto* text :
       {"", "Gi", "8GiB", "8 Gi", "-1", "1K", "e3", "1e", "1e99", "1.2.3", "nan", "0x10", "1,5"})
    EXPECT_FALSE(parse_quantity(text)) << text;
}

TEST(Quantity, durations_have_their_time_or_an_error) {
  const std::pair<const char*, std::optional<Duration>> table[] = {
      {"90", 90s},      {"90s", 90s},   {"1.5h", 90min},     {"1h30m", 90min},
      {"250ms", 250ms}, {"10m", 10min}, {"1d", 24h},         {"1d2h3m4s5ms", 26h + 3min + 4s + 5ms},
      {"0", 0s},        {"0.5", 500ms}, {"1m0.5s", 60500ms}, {"36500d", 24h * 36500},
      {"", {}},         {"-1s", {}},    {"s", {}},           {"1x", {}},
      {"30m1h", {}},    {"1h1h", {}},   {"1.5h30m", {}},     {"1h30", {}},
      {"1 h", {}},      {"1H", {}},     {"36501d", {}},      {"99999999999999999999", {}},
      {"1e3", {}},      {"1min", {}},   {"inf", {}}};
  for (const auto& [text, expected] : table) EXPECT_EQ(parse_duration(text), expected) << text;
  const std::pair<Duration, const char*> formats[] = {
      {0ms, "0ms"},         {250ms, "250ms"},   {999ms, "999ms"},   {1s, "1.0s"},
      {3249ms, "3.2s"},     {59949ms, "59.9s"}, {59951ms, "1m00s"}, {65s, "1m05s"},
      {3599600ms, "1h00m"}, {62min, "1h02m"},   {26h, "1d02h"},     {-5s, "0ms"}};
  for (const auto& [duration, expected] : formats) EXPECT_EQ(format_duration(duration), expected);
}

TEST(Identifier, names_are_safe_as_paths) {
  for (const auto* good : {"a", "A1", "data-set_2.csv", "0"}) EXPECT_TRUE(is_name(good)) << good;
  for (const auto* bad : {"", ".", "..", ".a", "-a", "_a", "a/b", "a b", "a\n", "é", "a$"})
    EXPECT_FALSE(is_name(bad)) << bad;
  EXPECT_TRUE(is_name(std::string(128, 'a')));
  EXPECT_FALSE(is_name(std::string(129, 'a')));
  EXPECT_TRUE(is_variable_name("_A1"));
  for (const auto* bad : {"", "1A", "A-B", "A=B", "A B"})
    EXPECT_FALSE(is_variable_name(bad)) << bad;
  EXPECT_TRUE(has_control_characters("a\nb"));
  EXPECT_TRUE(has_control_characters("\x7f"));
  EXPECT_FALSE(has_control_characters("é \\n"));
  EXPECT_EQ(variable_name("PIPE_INPUT_", "data-set.1é"), "PIPE_INPUT_DATA_SET_1__");
}

TEST(Identifier, runs_sort_by_time) {
  EXPECT_EQ(make_run_id(1'795'248'900'123, 0xff7f3a9c), "20261121-081500-zqyemw");
  EXPECT_EQ(make_run_id(0, 1U << 29), "19700101-000000-g00000");
  EXPECT_EQ(make_run_id(0, 0), "19700101-000000-000000");
}

TEST(Identifier, shell_reads_back_what_was_quoted) {
  EXPECT_EQ(shell_quote("a/b.c=1"), "a/b.c=1");
  EXPECT_EQ(shell_quote(""), "''");
  EXPECT_EQ(shell_quote("it's"), "'it'\\''s'");
  for (const std::string text :
       {"a b", "$(id)", "`id`", "a\nb", "~", "*", "#", "!x", "\\", "''", "-n", ";", "a&b"}) {
    FILE* shell = ::popen(("printf %s " + shell_quote(text)).c_str(), "r");
    char buffer[64];
    const auto size = ::fread(buffer, 1, sizeof buffer, shell);
    ::pclose(shell);
    EXPECT_EQ(std::string(buffer, size), text == "-n" ? "-n" : text);
  }
}

TEST(Value, member_is_found_by_key) {
  Value map;
  map.kind = Value::Kind::map;
  Value key, value;
  key.scalar = "a";
  value.scalar = "1";
  map.members.emplace_back(key, value);
  ASSERT_TRUE(map.find("a"));
  EXPECT_EQ(map.find("a")->scalar, "1");
  EXPECT_FALSE(map.find("b"));
}

/// The document of a pipeline of 100,000 steps has a million of them.
TEST(Value, takes_little_memory) { EXPECT_LE(sizeof(Value), 64u); }

TEST(Error, system_errors_say_what_to_do) {
  for (const int number : {ENOSPC, EDQUOT, EACCES, EROFS}) {
    const auto error = system_error("cannot write /x", number);
    EXPECT_TRUE(std::string(error.what()).starts_with("cannot write /x: "));
    EXPECT_FALSE(error.advice().empty()) << number;
  }
  EXPECT_STREQ(system_error("cannot read /x", ENOENT).what(),
               "cannot read /x: No such file or directory");
}

TEST(LazyLibrary, loads_on_the_first_call_and_names_the_package_that_is_missing) {
  const LazyFunction<double(double)> cosine("libm.so.6", "cos");
  EXPECT_EQ(cosine(0.0), 1.0);
  EXPECT_EQ(cosine(0.0), 1.0);
  const auto message = [](const char* soname, const char* symbol) {
    try {
      load_symbol(soname, symbol);
    } catch (const EnvironmentError& error) {
      return std::string(error.what()) + " | " + error.advice().at(0);
    }
    return std::string("loaded");
  };
  EXPECT_NE(message("libgit99.so.1.5", "x").find("libgit99.so.1.5"), std::string::npos);
  EXPECT_TRUE(message("libgit99.so.1.5", "x").ends_with("apt-get install libgit99-1.5"));
  EXPECT_TRUE(message("libnone.so.4", "x").ends_with("apt-get install libnone4"));
  EXPECT_NE(message("libm.so.6", "no_such_function").find("no_such_function"), std::string::npos);
}

TEST(Cancel, level_only_rises_and_listeners_are_called_in_order) {
  CancelSource source;
  std::vector<std::pair<int, StopLevel>> heard;
  const CancelSource::Listener first(source,
                                     [&](StopLevel level) { heard.emplace_back(1, level); });
  const CancelSource::Listener second(source,
                                      [&](StopLevel level) { heard.emplace_back(2, level); });
  source.stop(StopLevel::graceful);
  source.stop(StopLevel::graceful);
  source.stop(StopLevel::immediate);
  source.stop(StopLevel::graceful);
  EXPECT_EQ(source.level(), StopLevel::immediate);
  EXPECT_EQ(heard, (std::vector<std::pair<int, StopLevel>>{{1, StopLevel::graceful},
                                                           {2, StopLevel::graceful},
                                                           {1, StopLevel::immediate},
                                                           {2, StopLevel::immediate}}));
  const CancelSource::Listener late(source, [&](StopLevel level) { heard.emplace_back(3, level); });
  EXPECT_EQ(heard.back(), (std::pair{3, StopLevel::immediate}));
}

TEST(Cancel, listeners_may_leave_join_and_stop_again_while_they_are_called) {
  CancelSource source;
  std::string heard;
  std::unique_ptr<CancelSource::Listener> self, other, added;
  const std::string note(100, 'x');  // a captured text that dies with its listener
  self = std::make_unique<CancelSource::Listener>(source, [&, note](StopLevel) {
    other.reset();
    self.reset();
    heard += note.substr(0, 1);
    added = std::make_unique<CancelSource::Listener>(source, [&](StopLevel) { heard += "a"; });
    source.stop(StopLevel::immediate);
  });
  other = std::make_unique<CancelSource::Listener>(source, [&](StopLevel) { heard += "o"; });
  const CancelSource::Listener last(
      source, [&](StopLevel level) { heard += level == StopLevel::immediate ? "I" : "g"; });
  source.stop(StopLevel::graceful);
  EXPECT_EQ(heard, "xaIa") << "the last hears of the higher level only, the added of both";
}

}  // namespace
}  // namespace pipeline::core
