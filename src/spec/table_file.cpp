#include "spec/table_file.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/utf8.hpp"
#include "model/value_builder.hpp"

namespace pipeline::spec {
namespace {

using Fields = std::vector<std::string>;

/// Takes an empty line from the text, and returns true if the text begins with one. A field `""`
/// is not an empty line, but a row with an empty cell.
bool skip_empty_line(std::string_view& text) {
  const auto line = text.substr(0, text.find('\n'));
  if (!line.empty() && line != "\r") return false;
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return true;
}

/// Takes the fields of the next line from the text; a field in quotes may have line ends. Returns
/// none if a quote is not closed.
Fields next_row(std::string_view& text, char separator) {
  Fields fields{""};
  bool is_quoted = false;
  std::size_t i = 0;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (is_quoted && c == '"' && text.substr(i + 1).starts_with('"'))
      fields.back() += text[++i];
    else if (c == '"' && (is_quoted || fields.back().empty()))
      is_quoted = !is_quoted;
    else if (!is_quoted && c == separator)
      fields.emplace_back();
    else if (!is_quoted && c == '\n')
      break;
    else
      fields.back() += c;
  }
  if (is_quoted) return {};
  text.remove_prefix(std::min(i + 1, text.size()));
  if (fields.back().ends_with('\r')) fields.back().pop_back();
  return fields;
}

/// A cell is a number only if JSON would write it with the same characters: `007` and `1e3` remain
/// texts.
core::Value cell(const std::string& text, core::Span span) {
  const auto number = settings::plain_to_json(text);
  return number && number->is_number() && number->dump() == text ? model::plain_value(text, span)
                                                                 : model::text_value(text, span);
}

}  // namespace

core::Value read_table(const std::filesystem::path& file, const core::Value& place,
                       MemoryBudget& budget, settings::Diagnostics& diagnostics) {
  auto rows = model::empty_value(core::Value::Kind::list, place.span);
  std::string content;
  try {
    content = core::read_file(file);
  } catch (const core::EnvironmentError& error) {
    settings::report(diagnostics, "missing-file", "the table '" + place.scalar + "' cannot be read",
                     place.span, {error.what()});
    return rows;
  }
  std::string_view text = core::without_byte_order_mark(content);
  const auto refuse = [&](const std::string& problem, const std::string& note = "") {
    settings::report(diagnostics, "bad-matrix", problem, place.span,
                     note.empty() ? std::vector<std::string>() : std::vector{note});
    return model::empty_value(core::Value::Kind::list, place.span);
  };
  const auto refuse_quote = [&](std::size_t row) {
    return refuse("a quote that begins in row " + std::to_string(row) + " of '" + place.scalar +
                      "' is not closed",
                  "a field that begins with `\"` ends with `\"`");
  };
  if (!core::is_utf8(text))
    return refuse("the table '" + place.scalar + "' is not valid UTF-8", "save the file as UTF-8");
  const char separator = file.extension() == ".tsv" ? '\t' : ',';
  const auto pieces_between = [&](char c) {
    return static_cast<std::size_t>(std::ranges::count(text, c)) + 1;
  };
  const auto lines = pieces_between('\n');
  const std::string maker = "the table '" + place.scalar + "'";
  // Each cell becomes a member of a map, with the name of its column.
  if (!budget.take(lines + pieces_between(separator), sizeof(core::Value::Member), maker,
                   place.span))
    return rows;
  const auto columns = next_row(text, separator);
  if (columns.empty()) return refuse_quote(1);
  std::size_t name_bytes = 0;
  if (columns.size() == 1 && columns[0].find_first_of(";\t") != std::string::npos) {
    settings::report(diagnostics, "bad-matrix",
                     "the table '" + place.scalar + "' has one column, '" + columns[0] + "'",
                     place.span, {},
                     "separate the fields by commas, or in a file NAME.tsv by tabs");
    return rows;
  }
  std::set<std::string_view> seen;
  for (const auto& column : columns) {
    name_bytes += column.size();
    if (seen.insert(column).second) continue;
    return refuse("two columns of '" + place.scalar + "' have the name '" + column + "'");
  }
  if (!budget.take(lines, name_bytes, maker, place.span)) return rows;
  for (std::size_t row_number = 2; !text.empty(); ++row_number) {
    if (skip_empty_line(text)) continue;
    const auto fields = next_row(text, separator);
    if (fields.empty()) return refuse_quote(row_number);
    if (fields.size() != columns.size())
      return refuse("row " + std::to_string(row_number) + " of '" + place.scalar + "' has " +
                    std::to_string(fields.size()) + " fields, and its first row " +
                    std::to_string(columns.size()));
    auto row = model::empty_value(core::Value::Kind::map, place.span);
    for (std::size_t i = 0; i < fields.size(); ++i)
      row.members.push_back(
          {model::plain_value(columns[i], place.span), cell(fields[i], place.span)});
    rows.items.push_back(std::move(row));
  }
  if (rows.items.empty())
    return refuse("the table '" + place.scalar + "' has no rows",
                  "its first line has the names of its columns");
  return rows;
}

}  // namespace pipeline::spec
