#include "report/run_filter.hpp"

#include <array>
#include <deque>
#include <limits>

#include "core/diagnostic.hpp"

namespace pipeline::report {
namespace {

bool begins_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

bool continues_name(char c) {
  return begins_name(c) || (c >= '0' && c <= '9') || c == '.' || c == '-';
}

bool is_keyword(std::string_view word) {
  static constexpr std::array words{std::string_view("and"), std::string_view("or"),
                                    std::string_view("not"), std::string_view("true"),
                                    std::string_view("false")};
  for (const auto known : words)
    if (word == known) return true;
  return false;
}

[[noreturn]] void refuse(const std::string& text, const core::ExpressionError& error) {
  throw core::InputError("--where '" + text + "': " + error.message,
                         error.suggestion.empty()
                             ? "as in `params.c > 1 and metrics.accuracy > 0.9`"
                             : error.suggestion);
}

core::Expression parsed_filter(const std::string& text) {
  try {
    return core::Expression::parse(text.empty() ? "true" : with_references(text));
  } catch (const core::ExpressionError& error) {
    refuse(text, error);
  }
}

}  // namespace

std::string with_references(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '\'' || c == '"' || text.compare(i, 2, "${") == 0) {
      const auto end = text.find(c == '$' ? '}' : c, i + 1);
      const auto length = end == text.npos ? text.npos : end + 1 - i;
      result += text.substr(i, length);
      i = end == text.npos ? text.size() : end + 1;
    } else if (begins_name(c)) {
      auto end = i;
      while (end < text.size() && continues_name(text[end])) ++end;
      const auto word = text.substr(i, end - i);
      result += is_keyword(word) ? word : "${" + word + "}";
      i = end;
    } else {
      // A number may contain letters: 1e-3.
      const bool is_number = (c >= '0' && c <= '9') || c == '.';
      do result += text[i++];
      while (is_number && i < text.size() && continues_name(text[i]));
    }
  }
  return result;
}

nlohmann::json comparable_value(RunValues& values, const std::string& name) {
  auto found = values.value(name);
  if (!name.starts_with("metrics.") || !found.is_string()) return found;
  constexpr auto infinity = std::numeric_limits<double>::infinity();
  if (found == "inf") return infinity;
  return found == "-inf" ? nlohmann::json(-infinity) : nlohmann::json();
}

RunFilter::RunFilter(const std::string& text) : text_(text), expression_(parsed_filter(text)) {}

bool RunFilter::accepts(RunValues& values) {
  std::deque<nlohmann::json> found;
  const auto look_up = [&](const core::Expression::Variable& variable) {
    found.push_back(comparable_value(values, variable.name));
    return found.back().is_null() ? nullptr : &found.back();
  };
  try {
    const auto decided = expression_.evaluate(look_up);
    has_decided_ |= decided.has_value();
    return decided.value_or(false);
  } catch (const core::ExpressionError& error) {
    if (!mismatch_) mismatch_ = error;
    return false;
  }
}

void RunFilter::check() const {
  if (mismatch_ && !has_decided_) refuse(text_, *mismatch_);
}

}  // namespace pipeline::report
