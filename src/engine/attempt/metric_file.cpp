#include "engine/attempt/metric_file.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include <nlohmann/json.hpp>

#include "core/bounded_json.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/text.hpp"
#include "engine/attempt/metric_log.hpp"
#include "model/structured_line.hpp"

namespace pipeline::engine {
namespace {

constexpr std::size_t max_file_size = 16 << 20;
/// Further columns of a table are left out: more than a store keeps as metrics.
constexpr std::size_t max_columns = 10 * MetricLog::max_names;

/// Returns the number that a JSON value stands for; nothing if it stands for none.
using ReadNumber = std::optional<double> (*)(const nlohmann::json&);

std::optional<double> plain_number(const nlohmann::json& value) {
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

/// Passes the numbers in `value`.
/// @param name the path of `value` in the file, as `test.accuracy`; empty for the whole file
void take_numbers(const nlohmann::json& value, const std::string& name, ReadNumber read_number,
                  const TakeMetric& take) {
  // Stops at a path that is too long for a name: paths below it are longer still, and deep files
  // would fill the memory with them.
  if (!name.empty() && !model::is_metric_name(name)) return;
  if (value.is_object()) {
    for (const auto& [key, member] : value.items())
      take_numbers(member, name.empty() ? key : name + "." + key, read_number, take);
  } else if (name.empty()) {
    return;
  } else if (value.is_array()) {
    std::int64_t position = 0;
    for (const auto& item : value) {
      if (const auto number = read_number(item)) take(name, {*number, position, {}});
      ++position;
    }
  } else if (const auto number = read_number(value)) {
    take(name, {*number, {}, {}});
  }
}

/// Splits a line of CSV into at most max_columns fields; a field may be in quotes, in which two
/// quotes are one.
std::vector<std::string> fields_of(std::string_view line, char separator) {
  std::vector<std::string> fields(1);
  bool in_quotes = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') {
      if (in_quotes && i + 1 < line.size() && line[i + 1] == '"')
        fields.back() += line[++i];
      else
        in_quotes = !in_quotes;
    } else if (line[i] == separator && !in_quotes) {
      if (fields.size() == max_columns) break;
      fields.emplace_back();
    } else {
      fields.back() += line[i];
    }
  }
  return fields;
}

/// Returns the number in a field, which may have blanks around it; nothing for any other text.
std::optional<double> number_of(std::string_view text) {
  text = core::trimmed(text, " ");
  double value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || read.ec != std::errc() || read.ptr != text.data() + text.size())
    return std::nullopt;
  return value;
}

/// Passes the numbers of a table, whose first line names the columns.
void read_table(std::string_view text, char separator, const TakeMetric& take) {
  std::vector<std::string> names;
  std::size_t step_column = std::string::npos;
  bool has_heading = false;
  for (std::int64_t row = 0; !text.empty();) {
    auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    const auto fields = fields_of(line, separator);
    if (!has_heading) {
      has_heading = true;
      for (const auto& field : fields) names.emplace_back(core::trimmed(field, " "));
      for (const std::string name : {"step", "epoch", "iteration"})
        if (const auto at = std::ranges::find(names, name);
            at != names.end() && step_column == std::string::npos)
          step_column = static_cast<std::size_t>(at - names.begin());
      continue;
    }
    std::optional<std::int64_t> step = row++;
    constexpr double max_step = 9e15;  // Nearly 2^53: doubles are exact integers up to there.
    if (step_column < fields.size())
      if (const auto number = number_of(fields[step_column]);
          number && std::abs(*number) < max_step)
        step = static_cast<std::int64_t>(*number);
    for (std::size_t i = 0; i < std::min(fields.size(), names.size()); ++i)
      if (const auto number = number_of(fields[i]);
          number && i != step_column && model::is_metric_name(names[i]))
        take(names[i], {*number, step, {}});
  }
}

}  // namespace

void read_metric_file(const std::filesystem::path& file, const std::filesystem::path& name,
                      const TakeMetric& take) {
  const auto fail = [&](const std::string& problem) {
    throw core::ContentError(
        "the output " + name.string() + " is marked with `metrics: true`, but " + problem,
        {"write a JSON object or a CSV file with a heading, whose values are numbers: "
         "`{\"accuracy\": 0.93}`"});
  };
  auto text = core::read_untrusted_file(file, max_file_size);
  if (!text) fail("it is not a file of at most 16 MiB");
  const auto extension = name.extension();
  bool has_number = false;
  const TakeMetric pass = [&](const std::string& metric, const store::MetricPoint& point) {
    has_number = true;
    take(metric, point);
  };
  if (extension == ".csv" || extension == ".tsv") {
    read_table(*text, extension == ".tsv" ? '\t' : ',', pass);
  } else {
    auto value = core::parse_json(*text);
    ReadNumber read_number = plain_number;
    if (value.is_discarded()) {  // Python writes NaN and Infinity, which JSON does not have.
      *text = model::with_quoted_numbers(*text);
      value = core::parse_json(*text);
      read_number = model::metric_value;
    }
    if (value.is_discarded())
      fail("it is not JSON (" + core::fault_of_json(*text) +
           "), and its name does not end in .csv");
    take_numbers(value, "", read_number, pass);
  }
  if (!has_number) fail("it has no number");
}

}  // namespace pipeline::engine
