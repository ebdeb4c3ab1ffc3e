#include "core/ignore.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "core/diagnostic.hpp"
#include "core/file.hpp"

namespace pipeline::core {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

TEST(DockerIgnore, agrees_with_docker_s_own_library) {
  std::ifstream table(PIPELINE_SOURCE_DIR "/tests/unit/core/data/dockerignore.tsv");
  std::string line;
  std::getline(table, line);
  std::getline(table, line);
  const auto paths = split(line, '\t');
  int cases = 0;
  while (std::getline(table, line)) {
    const auto tab = line.rfind('\t');
    auto rules = line.substr(0, tab);
    const auto expected = line.substr(tab + 1);
    std::replace(rules.begin(), rules.end(), '|', '\n');
    std::string found;
    try {
      const DockerIgnore ignore(rules);
      for (const auto& path : paths) found += ignore.ignores(path) ? '1' : '0';
    } catch (const InputError&) {
      found = "E";
    }
    EXPECT_EQ(found, expected) << rules;
    ++cases;
  }
  EXPECT_GT(cases, 1500);
}

TEST(DockerIgnore, line_ends_and_byte_order_marks_do_not_count) {
  const DockerIgnore ignore("\xef\xbb\xbf*.md\r\n#x\r\n\r\n!README.md");
  EXPECT_TRUE(ignore.ignores("a.md"));
  EXPECT_FALSE(ignore.ignores("README.md"));
  EXPECT_FALSE(ignore.ignores("#x"));
  EXPECT_TRUE(ignore.has_exceptions());
  EXPECT_FALSE(DockerIgnore("a\nb").has_exceptions());
  EXPECT_FALSE(DockerIgnore().ignores("a"));
}

TEST(DockerIgnore, malformed_lines_are_reported_all_at_once_with_their_places) {
  try {
    DockerIgnore("ok\n[a\n!\nb\\\n", "web.dockerignore");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(
        error.what(),
        "web.dockerignore:2:1: error: malformed pattern '[a'\n"
        "    [a\n"
        "    ^~\n"
        "  note: close the class, as in [a-z]; '\\' must be followed by the character that it "
        "escapes\n"
        "web.dockerignore:3:1: error: a '!' without a pattern\n"
        "    !\n"
        "    ^\n"
        "  note: '!' in front of a pattern includes paths again that an earlier line has excluded\n"
        "web.dockerignore:4:1: error: malformed pattern 'b\\'\n"
        "    b\\\n"
        "    ^~\n"
        "  note: close the class, as in [a-z]; '\\' must be followed by the character that it "
        "escapes");
  }
}

/// Random trees and rules, compared with git itself.
TEST(GitIgnore, agrees_with_git) {
  const TemporaryFolder root;
  const auto shell = [&](const std::string& command) {
    return std::system(("cd '" + root.path().string() + "' && " + command).c_str());
  };
  if (shell("git init -q . 2>/dev/null") != 0) GTEST_SKIP() << "git is not installed";
  const unsigned seed = 20261121;
  std::mt19937 random(seed);
  const auto pick = [&](const auto& list) { return list[random() % list.size()]; };
  const std::vector<std::string> names = {"a",  "b",  "foo", "foobar", "bar", "x.o", "y.o",
                                          "#h", "!n", "a b", "sp ",    "[k]", "-"};
  const std::vector<std::string> atoms = {
      "a",     "b",    "foo",  "bar",         "*",   "**",   "?",    "/",   "/",        "*.o",
      "[a-f]", "[!a]", "[^b]", "[[:alpha:]]", "\\",  "\\#",  " ",    "\\ ", "x",        ".",
      "**/",   "/**",  "#",    "!",           "[k]", "[]a]", "[a-]", "[",   "[[:zz:]]", "***"};

  std::vector<std::string> files;
  for (int i = 0; i < 150; ++i) {
    fs::path path;
    for (auto depth = random() % 4; depth > 0; --depth) path /= pick(names) + "d";
    fs::create_directories(root.path() / path);
    path /= pick(names);
    if (fs::exists(root.path() / path)) continue;
    std::ofstream(root.path() / path) << "x";
    files.push_back(path.string());
  }
  std::vector<std::string> paths, folders = {""};
  for (const auto& entry : fs::recursive_directory_iterator(root.path())) {
    const auto relative = fs::relative(entry.path(), root.path()).string();
    if (relative.starts_with(".git")) continue;
    paths.push_back(relative);
    if (entry.is_directory()) folders.push_back(relative);
  }
  std::string list;
  for (const auto& path : paths) list += path + '\0';
  std::ofstream(root.path() / ".git/paths") << list;

  for (int round = 0; round < 60; ++round) {
    GitIgnore ignore;
    std::sort(folders.begin(), folders.end());
    std::string all;
    for (const auto& folder : folders) {
      const auto file = root.path() / folder / ".gitignore";
      fs::remove(file);
      if (!folder.empty() && random() % 6) continue;
      std::string rules;
      for (auto lines = 1 + random() % 5; lines > 0; --lines) {
        if (random() % 4 == 0) rules += "!";
        for (auto parts = 1 + random() % 4; parts > 0; --parts)
          rules += random() % 3 ? pick(atoms) : pick(names) + (random() % 2 ? "d" : "");
        if (random() % 4 == 0) rules += "/";
        rules += random() % 5 ? "\n" : "\r\n";
      }
      std::ofstream(file) << rules;
      ignore.add(folder, rules);
      all += "--- " + folder + "\n" + rules;
    }
    ASSERT_LT(WEXITSTATUS(shell("git -c core.excludesFile= check-ignore --no-index -z --stdin < "
                                ".git/paths > .git/ignored")),
              2);
    auto ignored = split(read_file(root.path() / ".git/ignored"), '\0');
    std::sort(ignored.begin(), ignored.end());
    for (const auto& path : paths) {
      const bool expected = std::binary_search(ignored.begin(), ignored.end(), path);
      ASSERT_EQ(ignore.ignores(path, fs::is_directory(root.path() / path)), expected)
          << path << " (seed " << seed << ", round " << round << ")\n"
          << all;
    }
  }
}

TEST(GitIgnore, documented_cases_hold) {
  GitIgnore ignore;
  ignore.add("", "*.log\n!keep.log\nbuild/\n/root.txt\ndoc/*.txt\n\\#hash\ntrail \nspace\\ \n");
  ignore.add("sub", "!x.log\n/only\n");
  EXPECT_TRUE(ignore.ignores("a.log", false));
  EXPECT_TRUE(ignore.ignores("deep/er/a.log", false));
  EXPECT_FALSE(ignore.ignores("keep.log", false));
  EXPECT_TRUE(ignore.ignores("build", true));
  EXPECT_FALSE(ignore.ignores("build", false));
  EXPECT_TRUE(ignore.ignores("x/build/keep.log", false))
      << "below an ignored folder nothing is included again";
  EXPECT_TRUE(ignore.ignores("root.txt", false));
  EXPECT_FALSE(ignore.ignores("sub/root.txt", false));
  EXPECT_TRUE(ignore.ignores("doc/a.txt", false));
  EXPECT_FALSE(ignore.ignores("doc/x/a.txt", false));
  EXPECT_TRUE(ignore.ignores("#hash", false));
  EXPECT_TRUE(ignore.ignores("trail", false));
  EXPECT_TRUE(ignore.ignores("space ", false));
  EXPECT_FALSE(ignore.ignores("sub/x.log", false));
  EXPECT_TRUE(ignore.ignores("x.log", false));
  EXPECT_TRUE(ignore.ignores("sub/only", false));
  EXPECT_FALSE(ignore.ignores("sub/deep/only", false));
}

TEST(Glob, patterns_match_components_and_folders) {
  EXPECT_TRUE(matches_glob("*.py", "a.py"));
  EXPECT_FALSE(matches_glob("*.py", "a/b.py"));
  EXPECT_TRUE(matches_glob("[!a]?", "bc"));
  EXPECT_TRUE(matches_glob("\\*", "*"));
  EXPECT_FALSE(matches_glob("\\*", "a"));
  EXPECT_TRUE(matches_glob("src/**/*.py", "src/a.py"));
  EXPECT_TRUE(matches_glob("src/**/*.py", "src/x/y/a.py"));
  EXPECT_FALSE(matches_glob("src/**/*.py", "srcx/a.py"));
  EXPECT_TRUE(matches_glob("src/**", "src/x/y"));
  EXPECT_FALSE(matches_glob("src/**", "src"));
  EXPECT_TRUE(matches_glob("**/a", "a"));
  EXPECT_FALSE(matches_glob("*", "a/b"));
  EXPECT_TRUE(matches_glob("", ""));
}

TEST(Glob, hostile_patterns_take_no_longer_than_others) {
  std::string pattern;
  for (int i = 0; i < 200; ++i) pattern += "**/a*";
  const std::string path(5'000, 'a');
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(matches_glob(pattern + "b*", path));
  EXPECT_FALSE(DockerIgnore(pattern + "b*").ignores(path));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20))
      << "going back would take longer than the universe has lasted";
}

TEST(IgnoreFiles, with_more_rules_than_anyone_writes_are_refused) {
  std::string rules;
  for (int i = 0; i < 50'001; ++i) rules += "file" + std::to_string(i) + "\n";
  EXPECT_THROW(DockerIgnore{rules}, InputError);
  EXPECT_THROW(GitIgnore().add("", rules), InputError);
}

}  // namespace
}  // namespace pipeline::core
