#include "model/usual_metric.hpp"

#include <charconv>

#include "core/text.hpp"
#include "model/structured_line.hpp"

namespace pipeline::model {
namespace {

/// The rest of a line. Each take_ function removes what it returns from the start of the rest.
class MetricReader {
 public:
  explicit MetricReader(std::string_view text) : text_(text) {}

  bool is_empty() const { return text_.empty(); }
  void skip_spaces() {
    while (!text_.empty() && text_.front() == ' ') text_.remove_prefix(1);
  }
  bool take(char c) {
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  /// Takes a text in quotes; nothing if the text is not ASCII or has a backslash.
  std::optional<std::string_view> take_text() {
    if (!take('"')) return std::nullopt;
    std::size_t length = 0;
    while (length < text_.size() && is_plain_in_json(text_[length])) ++length;
    if (length == text_.size() || text_[length] != '"') return std::nullopt;
    const auto text = text_.substr(0, length);
    text_.remove_prefix(length + 1);
    return text;
  }
  /// Takes a number as JSON writes it; empty if there is none.
  std::string_view take_number() {
    std::size_t length = text_.starts_with('-') ? 1 : 0;
    const auto digits = [&] {
      const auto begin = length;
      while (length < text_.size() && core::is_digit(text_[length])) ++length;
      return length - begin;
    };
    const auto whole = length;
    const auto count = digits();
    if (count == 0 || (count > 1 && text_[whole] == '0')) return {};
    if (length < text_.size() && text_[length] == '.') {
      ++length;
      if (digits() == 0) return {};
    }
    if (length < text_.size() && (text_[length] == 'e' || text_[length] == 'E')) {
      ++length;
      if (length < text_.size() && (text_[length] == '+' || text_[length] == '-')) ++length;
      if (digits() == 0) return {};
    }
    const auto number = text_.substr(0, length);
    text_.remove_prefix(length);
    return number;
  }

 private:
  static bool is_plain_in_json(char c) { return c >= ' ' && c < 0x7f && c != '"' && c != '\\'; }
  std::string_view text_;
};

template <class Number>
std::optional<Number> number_of(std::string_view text) {
  Number number{};
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  return end.ec == std::errc() && end.ptr == text.data() + text.size() ? std::optional(number)
                                                                       : std::nullopt;
}

/// Reads a member's value; returns false if it is unusual, or not the first of its name.
bool read_member(std::string_view key, MetricReader& rest, UsualMetric& metric, bool& has_name) {
  if (key == "metric") {
    const auto name = rest.take_text();
    if (!name || has_name) return false;
    metric.name = *name;
    has_name = true;
    return true;
  }
  const auto number = rest.take_number();
  if (key == "value") {
    const auto value = number_of<double>(number);
    // The JSON parser reads -0 as the whole number 0.
    if (!value || !metric.number.empty() || number == "-0") return false;
    metric.number = number;
    metric.value = *value;
    return true;
  }
  constexpr std::size_t max_digits = 15;
  if (key != "step" || metric.step || number.size() > max_digits) return false;
  metric.step = number_of<std::int64_t>(number);
  return metric.step.has_value();
}

}  // namespace

std::optional<UsualMetric> read_usual_metric(std::string_view line) {
  if (!line.starts_with(structured_prefix)) return std::nullopt;
  MetricReader rest(line.substr(structured_prefix.size()));
  UsualMetric metric;
  bool has_name = false;
  do {
    rest.skip_spaces();
    const auto key = rest.take_text();
    rest.skip_spaces();
    if (!key || !rest.take(':')) return std::nullopt;
    rest.skip_spaces();
    if (!read_member(*key, rest, metric, has_name)) return std::nullopt;
    rest.skip_spaces();
  } while (rest.take(','));
  const bool is_closed = rest.take('}');
  rest.skip_spaces();
  if (!is_closed || !rest.is_empty() || !has_name || metric.number.empty()) return std::nullopt;
  return metric;
}

}  // namespace pipeline::model
