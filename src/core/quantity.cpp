#include "core/quantity.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "core/text.hpp"

namespace pipeline::core {

namespace {

__extension__ typedef unsigned __int128
    Wide;  // NOLINT(modernize-use-using): __extension__ needs a typedef

constexpr std::uint64_t max_quantity = std::numeric_limits<std::int64_t>::max();
/// Clocks count nanoseconds in 64 bits, some 292 years; longer durations than a hundred years are
/// mistakes.
constexpr std::uint64_t max_milliseconds = 100ULL * 365 * 24 * 3600 * 1000;

struct Unit {
  std::string_view name;
  std::uint64_t size;
};

constexpr std::uint64_t power(std::uint64_t base, int exponent) {
  return exponent == 0 ? 1 : base * power(base, exponent - 1);
}

/// Bare lower-case letters are docker's units (powers of 1024). Bare capitals are rejected, because
/// they mean 1000 in Kubernetes and 1024 in docker.
constexpr Unit size_units[] = {
    {"", 1},
    {"B", 1},
    {"b", 1},
    {"KB", power(1000, 1)},
    {"kB", power(1000, 1)},
    {"MB", power(1000, 2)},
    {"GB", power(1000, 3)},
    {"TB", power(1000, 4)},
    {"PB", power(1000, 5)},
    {"KiB", power(1024, 1)},
    {"MiB", power(1024, 2)},
    {"GiB", power(1024, 3)},
    {"TiB", power(1024, 4)},
    {"PiB", power(1024, 5)},
    {"Ki", power(1024, 1)},
    {"Mi", power(1024, 2)},
    {"Gi", power(1024, 3)},
    {"Ti", power(1024, 4)},
    {"Pi", power(1024, 5)},
    {"k", power(1024, 1)},
    {"m", power(1024, 2)},
    {"g", power(1024, 3)},
    {"t", power(1024, 4)},
    {"p", power(1024, 5)},
};

/// From the longest to the shortest, the order in which `1h30m` is parsed.
constexpr Unit time_units[] = {
    {"d", 24 * 3600 * 1000}, {"h", 3600 * 1000}, {"m", 60 * 1000}, {"s", 1000}, {"ms", 1}};

std::size_t count_digits(std::string_view text) {
  return static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_digit) -
                                  text.begin());
}

/// A decimal number before a unit, kept exactly: 0.1 has no binary representation.
struct Decimal {
  std::uint64_t whole = 0, fraction = 0, scale = 1;
  bool has_fraction = false;
  /// Returns the number times `unit`, rounded down; nothing if it is above `limit`.
  std::optional<std::uint64_t> times(std::uint64_t unit, std::uint64_t limit) const {
    const Wide product = Wide(whole) * unit + Wide(fraction) * unit / scale;
    if (product > limit) return std::nullopt;
    return static_cast<std::uint64_t>(product);
  }
};

/// Removes `12` or `1.5` from the front of the text.
std::optional<Decimal> take_decimal(std::string_view& text) {
  Decimal number;
  const auto whole_digits = count_digits(text);
  if (whole_digits == 0 || whole_digits > 19) return std::nullopt;
  for (const char c : text.substr(0, whole_digits)) {
    const Wide next = Wide(number.whole) * 10 + static_cast<unsigned>(c - '0');
    if (next > max_quantity) return std::nullopt;
    number.whole = static_cast<std::uint64_t>(next);
  }
  text.remove_prefix(whole_digits);
  if (!text.starts_with('.')) return number;
  text.remove_prefix(1);
  const auto fraction_digits = count_digits(text);
  if (fraction_digits == 0 || fraction_digits > 18) return std::nullopt;
  for (const char c : text.substr(0, fraction_digits)) {
    number.fraction = number.fraction * 10 + static_cast<unsigned>(c - '0');
    number.scale *= 10;
  }
  number.has_fraction = true;
  text.remove_prefix(fraction_digits);
  return number;
}

template <class... Arguments>
std::string print(const char* format, Arguments... arguments) {
  std::array<char, 64> buffer;
  std::snprintf(buffer.data(), buffer.size(), format, arguments...);
  return buffer.data();
}

}  // namespace

std::optional<Bytes> parse_bytes(std::string_view text) {
  const auto number = take_decimal(text);
  if (!number) return std::nullopt;
  if (text.size() > 1 && text.front() == ' ') text.remove_prefix(1);
  const auto* unit = std::find_if(std::begin(size_units), std::end(size_units),
                                  [&](const Unit& u) { return u.name == text; });
  if (unit == std::end(size_units) || (number->has_fraction && unit->size == 1))
    return std::nullopt;
  return number->times(unit->size, max_quantity);
}

std::string format_bytes(Bytes bytes) {
  static constexpr const char* units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return print("%llu B", static_cast<unsigned long long>(bytes));
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  // 1023.95 would be printed as 1024.0.
  for (; value >= 1023.95 && unit + 1 < std::size(units); ++unit) value /= 1024;
  auto text = print("%.1f", value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text + " " + units[unit];
}

std::optional<double> parse_quantity(std::string_view text) {
  // apimachinery's resource.Quantity: a decimal number with one of these suffixes, or with an
  // exponent.
  constexpr std::array suffixes{
      std::pair{"n", 1e-9},    std::pair{"u", 1e-6},    std::pair{"m", 1e-3},
      std::pair{"", 1.0},      std::pair{"k", 1e3},     std::pair{"M", 1e6},
      std::pair{"G", 1e9},     std::pair{"T", 1e12},    std::pair{"P", 1e15},
      std::pair{"E", 1e18},    std::pair{"Ki", 0x1p10}, std::pair{"Mi", 0x1p20},
      std::pair{"Gi", 0x1p30}, std::pair{"Ti", 0x1p40}, std::pair{"Pi", 0x1p50},
      std::pair{"Ei", 0x1p60}};
  const auto digits = text.find_first_not_of("0123456789.");
  const auto number = text.substr(0, digits);
  auto suffix = digits == text.npos ? std::string_view() : text.substr(digits);
  double value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value,
                                            std::chars_format::fixed);
  if (error != std::errc() || end != number.data() + number.size()) return std::nullopt;
  if (suffix.size() > 1 && (suffix.front() == 'e' || suffix.front() == 'E') && suffix != "Ei") {
    suffix.remove_prefix(1);
    int exponent = 0;
    if (suffix.starts_with('+')) suffix.remove_prefix(1);
    const auto [last, bad] =
        std::from_chars(suffix.data(), suffix.data() + suffix.size(), exponent);
    if (bad != std::errc() || last != suffix.data() + suffix.size() || std::abs(exponent) > 18)
      return std::nullopt;
    return value * std::pow(10, exponent);
  }
  for (const auto& [name, factor] : suffixes)
    if (suffix == name) return value * factor;
  return std::nullopt;
}

std::optional<Duration> parse_duration(std::string_view text) {
  std::uint64_t total = 0;
  const Unit* next = std::begin(time_units);
  bool first = true;
  do {
    const auto number = take_decimal(text);
    if (!number) return std::nullopt;
    const auto letters =
        static_cast<std::size_t>(std::find_if(text.begin(), text.end(), is_digit) - text.begin());
    const auto name = text.substr(0, letters);
    text.remove_prefix(letters);
    const bool bare = name.empty() && first && text.empty();
    const auto* unit = std::find_if(next, std::end(time_units),
                                    [&](const Unit& u) { return u.name == (bare ? "s" : name); });
    if (unit == std::end(time_units) || (number->has_fraction && !text.empty()))
      return std::nullopt;
    const auto part = number->times(unit->size, max_milliseconds);
    if (!part || total + *part > max_milliseconds) return std::nullopt;
    total += *part;
    next = unit + 1;
    first = false;
  } while (!text.empty());
  return Duration(static_cast<std::int64_t>(total));
}

std::string format_duration(Duration duration) {
  const auto ms = static_cast<unsigned long long>(std::max<std::int64_t>(duration.count(), 0));
  if (ms < 1000) return print("%llums", ms);
  if (const auto tenths = (ms + 50) / 100; tenths < 600)
    return print("%llu.%llus", tenths / 10, tenths % 10);
  if (const auto seconds = (ms + 500) / 1000; seconds < 3600)
    return print("%llum%02llus", seconds / 60, seconds % 60);
  const auto minutes = (ms + 30000) / 60000;
  if (minutes < 24 * 60) return print("%lluh%02llum", minutes / 60, minutes % 60);
  return print("%llud%02lluh", minutes / (24 * 60), minutes / 60 % 24);
}

std::string format_time(WallTime time) {
  if (time == WallTime{}) return {};
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[32];
  return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%SZ", &parts));
}

}  // namespace pipeline::core
