#include "core/timestamp.hpp"

#include <algorithm>
#include <charconv>

namespace pipeline::core {
namespace {

/// Removes `digits` digits from the text's beginning and returns their value; -1 if the text does
/// not begin with so many digits.
int take_number(std::string_view& text, std::size_t digits) {
  int number = 0;
  if (text.size() < digits || text.substr(0, digits).find_first_not_of("0123456789") != text.npos)
    return -1;
  std::from_chars(text.data(), text.data() + digits, number);
  text.remove_prefix(digits);
  return number;
}

/// Removes the character from the text's beginning; returns false if the text begins otherwise.
bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

std::optional<std::chrono::system_clock::time_point> parse_time(std::string_view text) {
  using namespace std::chrono;
  // Go writes year 1 for an unset time; tokens may expire in 9999. Both exceed the clock's range.
  const int given_year = take_number(text, 4);
  const int year_number = std::clamp(given_year, 1700, 2200);
  if (given_year < 0 || !take(text, '-')) return std::nullopt;
  const int month_number = take_number(text, 2);
  if (month_number < 0 || !take(text, '-')) return std::nullopt;
  const int day_number = take_number(text, 2);
  if (day_number < 0 || !take(text, 'T')) return std::nullopt;
  const int hour = take_number(text, 2);
  if (hour < 0 || !take(text, ':')) return std::nullopt;
  const int minute = take_number(text, 2);
  if (minute < 0 || !take(text, ':')) return std::nullopt;
  const int second = take_number(text, 2);
  if (second < 0) return std::nullopt;
  nanoseconds fraction{0};
  if (take(text, '.')) {
    nanoseconds unit = 100ms;
    for (int digit = take_number(text, 1); digit >= 0; digit = take_number(text, 1), unit /= 10)
      fraction += unit * digit;
  }
  seconds offset{0};
  if (!take(text, 'Z')) {
    const int sign = take(text, '+') ? 1 : take(text, '-') ? -1 : 0;
    const int offset_hours = take_number(text, 2);
    if (sign == 0 || offset_hours < 0 || !take(text, ':')) return std::nullopt;
    const int offset_minutes = take_number(text, 2);
    if (offset_minutes < 0) return std::nullopt;
    offset = sign * (hours(offset_hours) + minutes(offset_minutes));
  }
  const year_month_day date{year(year_number), month(static_cast<unsigned>(month_number)),
                            day(static_cast<unsigned>(day_number))};
  if (!text.empty() || !date.ok() || hour > 23 || minute > 59 || second > 60) return std::nullopt;
  const auto time_of_day = hours(hour) + minutes(minute) + seconds(second) + fraction - offset;
  return sys_days(date) + duration_cast<system_clock::duration>(time_of_day);
}

}  // namespace pipeline::core
