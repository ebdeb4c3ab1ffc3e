/// @file
/// Compares whole outputs with files: NAME.expected beside its input. PIPE_ACCEPT=1 writes the
/// current output; read it as a user would before committing it.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "core/file.hpp"

namespace pipeline::test {

/// Returns the names of all inputs in a folder of tests/golden, without extension, sorted.
inline std::vector<std::string> golden_names(const std::filesystem::path& folder,
                                             std::initializer_list<std::string_view> extensions) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (std::find(extensions.begin(), extensions.end(), entry.path().extension().string()) !=
        extensions.end())
      names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

/// Expects that the file NAME.expected of a folder has this text.
inline void expect_golden(const std::string& text, const std::filesystem::path& folder,
                          const std::string& name) {
  const auto expected = folder / (name + ".expected");
  if (std::getenv("PIPE_ACCEPT")) {
    std::filesystem::create_directories(folder);
    core::write_file_atomically(expected, text);
    return;
  }
  ASSERT_TRUE(std::filesystem::exists(expected))
      << "no " << expected << "; PIPE_ACCEPT=1 writes it";
  EXPECT_EQ(text, core::read_file(expected));
}

}  // namespace pipeline::test
