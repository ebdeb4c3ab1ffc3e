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

bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

std::optional<std::chrono::system_clock::time_point> parse_time(std::string_view text) {
  using namespace std::chrono;
  // Go writes year 1 for an unset time; tokens may expire in 9999. Both exceed the clock's range.
  const int written = take_number(text, 4),
            y = written < 0 ? written : std::clamp(written, 1700, 2200);
  if (y < 0 || !take(text, '-')) return std::nullopt;
  const int mo = take_number(text, 2);
  if (mo < 0 || !take(text, '-')) return std::nullopt;
  const int d = take_number(text, 2);
  if (d < 0 || !take(text, 'T')) return std::nullopt;
  const int h = take_number(text, 2);
  if (h < 0 || !take(text, ':')) return std::nullopt;
  const int mi = take_number(text, 2);
  if (mi < 0 || !take(text, ':')) return std::nullopt;
  const int s = take_number(text, 2);
  if (s < 0) return std::nullopt;
  nanoseconds fraction{0};
  if (take(text, '.')) {
    nanoseconds unit = 100ms;
    for (int digit = take_number(text, 1); digit >= 0; digit = take_number(text, 1), unit /= 10)
      fraction += unit * digit;
  }
  seconds offset{0};
  if (!take(text, 'Z')) {
    const int sign = take(text, '+') ? 1 : take(text, '-') ? -1 : 0;
    const int hours_off = take_number(text, 2);
    if (sign == 0 || hours_off < 0 || !take(text, ':')) return std::nullopt;
    const int minutes_off = take_number(text, 2);
    if (minutes_off < 0) return std::nullopt;
    offset = sign * (hours(hours_off) + minutes(minutes_off));
  }
  const year_month_day date{year(y), month(static_cast<unsigned>(mo)),
                            day(static_cast<unsigned>(d))};
  if (!text.empty() || !date.ok() || h > 23 || mi > 59 || s > 60) return std::nullopt;
  return sys_days(date) + duration_cast<system_clock::duration>(hours(h) + minutes(mi) +
                                                                seconds(s) + fraction - offset);
}

}  // namespace pipeline::core
