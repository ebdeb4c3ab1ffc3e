#include "settings/snapshot.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <vector>

#include "core/text.hpp"

namespace pipeline::settings {
namespace {

/// Year, month, day, hour, minute, second.
using Moment = std::array<int, 6>;

/// Reads a text of the form `pattern`, in which each zero stands for a digit.
std::optional<Moment> read(std::string_view text, std::string_view pattern) {
  if (text.size() != pattern.size()) return std::nullopt;
  Moment moment{};
  std::size_t field = 0, digits = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (pattern[i] != '0') {
      if (text[i] != pattern[i]) return std::nullopt;
      continue;
    }
    if (!core::is_digit(text[i])) return std::nullopt;
    moment[field] = moment[field] * 10 + (text[i] - '0');
    if (++digits == (field == 0 ? 4U : 2U)) ++field, digits = 0;
  }
  return moment;
}

bool exists(const Moment& moment) {
  const std::chrono::year_month_day date{std::chrono::year(moment[0]),
                                         std::chrono::month(static_cast<unsigned>(moment[1])),
                                         std::chrono::day(static_cast<unsigned>(moment[2]))};
  return date.ok() && moment[3] < 24 && moment[4] < 60 && moment[5] < 60;
}

std::string padded(int number, std::size_t digits) {
  auto text = std::to_string(number);
  return std::string(digits - std::min(digits, text.size()), '0') + text;
}

std::string id_of(const Moment& moment) {
  return padded(moment[0], 4) + padded(moment[1], 2) + padded(moment[2], 2) + 'T' +
         padded(moment[3], 2) + padded(moment[4], 2) + padded(moment[5], 2) + 'Z';
}

}  // namespace

std::optional<std::string> snapshot_id(std::string_view text) {
  for (const char* pattern : {"0000-00-00", "0000-00-00T00:00:00Z", "00000000T000000Z"})
    if (const auto moment = read(text, pattern); moment && exists(*moment)) return id_of(*moment);
  return std::nullopt;
}

bool has_passed(std::string_view id, std::chrono::system_clock::time_point now) {
  const auto seconds = std::chrono::system_clock::to_time_t(now);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::array<char, 32> text{};
  return id <= std::string_view(text.data(),
                                std::strftime(text.data(), text.size(), "%Y%m%dT%H%M%SZ", &utc));
}

bool is_snapshot(std::string_view text) {
  const auto id = snapshot_id(text);
  return id && has_passed(*id, std::chrono::system_clock::now());
}

std::string nearest_snapshot(std::string_view text) {
  std::vector<std::string> numbers(1);
  for (const char c : text)
    if (core::is_digit(c))
      numbers.back() += c;
    else if (!numbers.back().empty())
      numbers.emplace_back();
  if (numbers.back().empty()) numbers.pop_back();
  if (numbers.size() == 1 && numbers[0].size() == 8)
    numbers = {numbers[0].substr(0, 4), numbers[0].substr(4, 2), numbers[0].substr(6)};
  if (numbers.size() < 3) return {};
  if (numbers[2].size() == 4 && text.find('.') != text.npos) std::swap(numbers[0], numbers[2]);
  const auto two = [](const std::string& number) {
    return number.size() == 1 ? "0" + number : number;
  };
  return numbers[0] + "-" + two(numbers[1]) + "-" + two(numbers[2]);
}

}  // namespace pipeline::settings
