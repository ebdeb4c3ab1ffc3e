#include "engine/graph/json_output.hpp"

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/bounded_json.hpp"
#include "core/diagnostic.hpp"
#include "core/file.hpp"
#include "core/joined.hpp"
#include "core/quantity.hpp"
#include "model/structured_line.hpp"

namespace pipeline::engine {
namespace {

constexpr std::size_t max_shown = 80;  ///< Bytes of a value or of a list of names in a message.

/// Returns the member or item of the value; throws std::runtime_error if it has none.
const nlohmann::json& member_of(const nlohmann::json& value, const std::string& name,
                                const std::string& parent) {
  if (value.is_object()) {
    const auto found = value.find(name);
    if (found != value.end()) return *found;
    std::vector<std::string> names;
    for (const auto& [each, member] : value.items()) names.push_back(each);
    auto list = core::joined(names, ", ");
    if (list.size() > max_shown) list = list.substr(0, max_shown) + "...";
    throw std::runtime_error(parent + " has no member '" + name + "'" +
                             (list.empty() ? "" : "; it has: " + core::printable(list)));
  }
  if (value.is_array()) {
    std::size_t index = 0;
    const auto end = name.data() + name.size();
    if (const auto read = std::from_chars(name.data(), end, index);
        read.ec == std::errc() && read.ptr == end && index < value.size())
      return value[index];
    throw std::runtime_error(parent + " is a list of " + std::to_string(value.size()) +
                             " items and has no item '" + name + "'");
  }
  throw std::runtime_error(parent + " is " + shown_json(value) + " and has no member '" + name +
                           "'");
}

/// Returns true for a whole number that no integer of 64 bits holds.
bool is_large_integer(std::string_view number) {
  const auto digits = number.substr(number.starts_with('-') ? 1 : 0);
  if (digits.empty() || digits.find_first_not_of("0123456789") != digits.npos) return false;
  const auto fits = [&](auto integer) {
    const auto end = number.data() + number.size();
    return std::from_chars(number.data(), end, integer).ec == std::errc();
  };
  return !fits(std::int64_t{}) && !fits(std::uint64_t{});
}

/// Returns the JSON text with its large integers in quotes.
std::string with_quoted_integers(std::string_view text) {
  std::string quoted;
  quoted.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    auto end = i + 1;
    if (text[i] == '"') {
      while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
      end = std::min(end + 1, text.size());
    } else if (text[i] == '-' || (text[i] >= '0' && text[i] <= '9')) {
      end = std::min(text.find_first_not_of("0123456789+-.eE", i), text.size());
    }
    const auto token = text.substr(i, end - i);
    const std::string_view quote = is_large_integer(token) ? "\"" : "";
    quoted.append(quote).append(token).append(quote);
    i = end;
  }
  return quoted;
}

/// Returns the JSON that an output contains.
/// @param name the output's name for messages
nlohmann::json read_json(const store::OutputRecord& output, const std::string& name,
                         store::ArtifactStore& artifacts, std::uint64_t max_bytes,
                         LargeIntegers large_integers) {
  if (output.is_directory) throw std::runtime_error(name + " is a folder, not a JSON file");
  if (output.bytes > max_bytes)
    throw std::runtime_error(name + " has " + core::format_bytes(output.bytes) + "; at most " +
                             core::format_bytes(max_bytes) + " of such an output are read");
  if (!artifacts.is_intact(output.digest)) throw std::runtime_error(name + " is damaged");
  auto text = core::read_file(artifacts.path(output.digest));
  if (large_integers == LargeIntegers::as_texts) text = with_quoted_integers(text);
  auto value = core::parse_json(text);
  // Python writes NaN, which must not affect a condition on another member.
  if (value.is_discarded()) {
    text = model::with_quoted_numbers(text);
    value = core::parse_json(text);
  }
  if (value.is_discarded())
    throw std::runtime_error(name + " is not JSON: " + core::fault_of_json(text));
  return value;
}

}  // namespace

std::string shown_json(const nlohmann::json& value) {
  auto text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return core::printable(text.size() <= max_shown ? text : text.substr(0, max_shown) + "...");
}

nlohmann::json read_member(const store::OutputRecord& output, const OutputValue& value,
                           store::ArtifactStore& artifacts, std::uint64_t max_bytes,
                           LargeIntegers large_integers) {
  auto name = value.source.step + "." + value.source.output;
  auto found = read_json(output, name, artifacts, max_bytes, large_integers);
  for (const auto& part : value.path) {
    auto inner = member_of(found, part, name);
    found = std::move(inner);
    name += "." + part;
  }
  return found;
}

}  // namespace pipeline::engine
