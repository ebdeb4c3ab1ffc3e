#include "model/structured_line.hpp"
#include "core/bounded_json.hpp"
#include "core/utf8.hpp"
#include "model/usual_metric.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

namespace pipeline::model {
namespace {

using nlohmann::json;

std::string text_of(const json& value) {
  return value.is_string() ? value.get<std::string>()
                           : value.dump(-1, ' ', false, json::error_handler_t::replace);
}

/// Returns the number as text_of() writes it.
std::string shown_number(const UsualMetric& metric) {
  constexpr std::size_t max_digits = 18;
  const bool is_whole = metric.number.find_first_of(".eE") == std::string_view::npos;
  if (is_whole && metric.number.size() <= max_digits) return std::string(metric.number);
  return json(metric.value).dump();
}

}  // namespace

std::string with_quoted_numbers(std::string_view line) {
  std::string text;
  bool in_text = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (in_text && line[i] == '\\' && i + 1 < line.size()) {
      text += line[i++];
    } else if (line[i] == '"') {
      in_text = !in_text;
    } else if (!in_text) {
      const auto rest = line.substr(i);
      const auto word = rest.starts_with("NaN")         ? std::string_view("NaN")
                        : rest.starts_with("Infinity")  ? std::string_view("Infinity")
                        : rest.starts_with("-Infinity") ? std::string_view("-Infinity")
                                                        : std::string_view();
      if (!word.empty()) {
        text += '"' + std::string(word) + '"';
        i += word.size() - 1;
        continue;
      }
    }
    text += line[i];
  }
  return text;
}

std::optional<double> metric_value(const json& value) {
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return std::nullopt;
  constexpr auto infinity = std::numeric_limits<double>::infinity();
  constexpr auto none = std::numeric_limits<double>::quiet_NaN();
  const auto& text = value.get_ref<const std::string&>();
  for (const auto& [word, number] : {std::pair<std::string_view, double>{"nan", none},
                                     {"NaN", none},
                                     {"inf", infinity},
                                     {"Infinity", infinity},
                                     {"-inf", -infinity},
                                     {"-Infinity", -infinity}})
    if (text == word) return number;
  return std::nullopt;
}

bool is_metric_name(std::string_view name) {
  constexpr std::size_t max_length = 200;
  return !name.empty() && name.size() <= max_length && core::is_utf8(name) &&
         std::ranges::none_of(name, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

std::optional<ReportedMetric> parse_metric(std::string_view line) {
  if (const auto usual = read_usual_metric(line); usual && is_metric_name(usual->name))
    return ReportedMetric{std::string(usual->name), usual->value, usual->step, false};
  constexpr double max_step = 9e15;  // Below 2^53: whole numbers up to there are exact in a double.
  if (!line.starts_with(structured_prefix) || line.find("\"metric\"") == line.npos)
    return std::nullopt;
  auto object = parse_structured(line);
  if (!object) object = parse_structured(with_quoted_numbers(line));
  if (!object) return std::nullopt;
  const auto name = object->find("metric"), value = object->find("value");
  if (name == object->end() || !name->is_string() || value == object->end()) return std::nullopt;
  const auto number = metric_value(*value);
  if (!number || !is_metric_name(name->get_ref<const std::string&>())) return std::nullopt;
  ReportedMetric metric{name->get<std::string>(), *number, {}, false};
  for (const auto& [key, member] : object->items())
    metric.has_more |= key != "metric" && key != "value" && key != "step";
  if (const auto step = object->find("step"); step != object->end() && step->is_number())
    if (const auto at = step->get<double>(); std::abs(at) < max_step)
      metric.step = static_cast<std::int64_t>(at);
  return metric;
}

std::string problem_of_report(std::string_view line) {
  if (!line.starts_with(structured_prefix) || parse_metric(line)) return {};
  const auto object = parse_structured(line);
  if (!object) return "the text after `@pipe` is not a JSON object";
  if (!object->contains("metric")) return {};
  return "a metric has a name and a number: `@pipe {\"metric\": \"loss\", \"value\": 0.25}`";
}

std::optional<json> parse_structured(std::string_view line) {
  if (!line.starts_with(structured_prefix)) return std::nullopt;
  auto object = core::parse_json(line.substr(structured_prefix.size() - 1));
  if (!object.is_object()) return std::nullopt;
  return object;
}

std::string shown_line(std::string_view line) {
  if (!line.starts_with(structured_prefix)) return std::string(line);
  if (const auto usual = read_usual_metric(line))
    return std::string(usual->name) + " = " + shown_number(*usual);
  const auto object = parse_structured(line);
  if (!object) return std::string(line);
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : " ") + part; };
  if (const auto progress = object->find("progress");
      progress != object->end() && progress->is_number())
    add(std::to_string(std::lround(progress->get<double>() * 100)) + " %");
  if (const auto metric = object->find("metric"); metric != object->end()) {
    const auto value = object->find("value");
    if (!metric->is_string() || value == object->end()) return std::string(line);
    add(text_of(*metric) + " = " + text_of(*value));
  }
  if (const auto level = object->find("level"); level != object->end()) add(text_of(*level) + ":");
  if (const auto message = object->find("message"); message != object->end())
    add(text_of(*message));
  if (const auto fields = object->find("fields"); fields != object->end() && fields->is_object())
    for (const auto& [name, value] : fields->items()) add(name + "=" + text_of(value));
  return text.empty() ? std::string(line) : text;
}

}  // namespace pipeline::model
