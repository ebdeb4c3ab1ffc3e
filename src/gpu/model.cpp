#include "gpu/model.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace pipeline::gpu {
namespace {

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words(1);
  for (char c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
      words.back() += c;
    else if (!words.back().empty())
      words.emplace_back();
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

}  // namespace

bool model_matches(std::string_view wanted, std::string_view name) {
  const auto wanted_words = words_of(wanted), words = words_of(name);
  return !wanted_words.empty() &&
         std::all_of(wanted_words.begin(), wanted_words.end(), [&](const auto& each) {
           return std::find(words.begin(), words.end(), each) != words.end();
         });
}

}  // namespace pipeline::gpu
