#include "engine/attempt/metric_file.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include <nlohmann/json.hpp>

#include "core/bounded_json.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/text.hpp"
#include "model/structured_line.hpp"

namespace pipeline::engine {
namespace {

constexpr std::size_t max_file_size = 16 << 20;

/// Returns the number that a JSON value stands for; nothing if it stands for none.
using ReadNumber = std::optional<double> (*)(const nlohmann::json&);

std::optional<double> plain_number(const nlohmann::json& value) {
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

/// Adds the numbers in `value` to `found`.
/// @param name the path of `value` in the file, as `test.accuracy`; empty for the whole file
void add_numbers(const nlohmann::json& value, const std::string& name, ReadNumber read_number,
                 FileMetrics& found, std::optional<std::int64_t> step = {}) {
  if (value.is_object()) {
    for (const auto& [key, member] : value.items())
      add_numbers(member, name.empty() ? key : name + "." + key, read_number, found);
  } else if (value.is_array()) {
    std::int64_t position = 0;
    for (const auto& item : value) {
      if (read_number(item)) add_numbers(item, name, read_number, found, position);
      ++position;
    }
  } else if (const auto number = read_number(value); number && model::is_metric_name(name)) {
    found.push_back({name, {*number, step, {}}});
  }
}

/// Splits a line of CSV; a field may be in quotes, in which two quotes are one.
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

/// Returns the numbers of a table, whose first line names the columns.
FileMetrics read_table(std::string_view text, char separator) {
  std::vector<std::string> names;
  std::size_t step_column = std::string::npos;
  FileMetrics found;
  for (std::int64_t row = -1; !text.empty();) {
    auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    const auto fields = fields_of(line, separator);
    if (row++ < 0) {
      names = fields;
      for (const std::string name : {"step", "epoch", "iteration"})
        if (const auto at = std::ranges::find(names, name);
            at != names.end() && step_column == std::string::npos)
          step_column = static_cast<std::size_t>(at - names.begin());
      continue;
    }
    std::optional<std::int64_t> step = row - 1;
    constexpr double max_step = 9e15;  // Nearly 2^53: doubles are exact integers up to there.
    if (step_column < fields.size())
      if (const auto number = number_of(fields[step_column]);
          number && std::abs(*number) < max_step)
        step = static_cast<std::int64_t>(*number);
    for (std::size_t i = 0; i < std::min(fields.size(), names.size()); ++i)
      if (const auto number = number_of(fields[i]);
          number && i != step_column && model::is_metric_name(names[i]))
        found.push_back({names[i], {*number, step, {}}});
  }
  return found;
}

}  // namespace

FileMetrics read_metric_file(const std::filesystem::path& file, const std::filesystem::path& name) {
  const auto fail = [&](const std::string& problem) {
    throw core::ContentError(
        "the output " + name.string() + " is marked with `metrics: true`, but " + problem,
        {"write a JSON object or a CSV file with a heading, whose values are numbers: "
         "`{\"accuracy\": 0.93}`"});
  };
  const auto text = core::read_untrusted_file(file, max_file_size);
  if (!text) fail("it is not a file of at most 16 MiB");
  const auto extension = name.extension();
  FileMetrics found;
  if (extension == ".csv" || extension == ".tsv") {
    found = read_table(*text, extension == ".tsv" ? '\t' : ',');
  } else {
    auto value = core::parse_json(*text);
    ReadNumber read_number = plain_number;
    if (value.is_discarded()) {
      value = core::parse_json(model::with_quoted_numbers(*text));
      read_number = model::metric_value;
    }
    if (value.is_discarded()) fail("it is not JSON, and its name does not end in .csv");
    add_numbers(value, "", read_number, found);
  }
  if (found.empty()) fail("it has no number");
  return found;
}

}  // namespace pipeline::engine
