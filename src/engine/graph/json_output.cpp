#include "engine/graph/json_output.hpp"

#include <charconv>
#include <stdexcept>
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

/// Returns the JSON that an output contains. @param name the output's name for messages
nlohmann::json read_json(const store::OutputRecord& output, const std::string& name,
                         store::ArtifactStore& artifacts, std::uint64_t max_bytes) {
  if (output.is_directory) throw std::runtime_error(name + " is a folder, not a JSON file");
  if (output.bytes > max_bytes)
    throw std::runtime_error(name + " has " + core::format_bytes(output.bytes) + "; at most " +
                             core::format_bytes(max_bytes) + " of such an output are read");
  if (!artifacts.is_intact(output.digest)) throw std::runtime_error(name + " is damaged");
  const auto text = core::read_file(artifacts.path(output.digest));
  auto value = core::parse_json(text);
  // Python writes NaN, which must not affect a condition on another member.
  if (value.is_discarded()) value = core::parse_json(model::with_quoted_numbers(text));
  if (value.is_discarded()) throw std::runtime_error(name + " is not JSON");
  return value;
}

}  // namespace

std::string shown_json(const nlohmann::json& value) {
  auto text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return core::printable(text.size() <= max_shown ? text : text.substr(0, max_shown) + "...");
}

nlohmann::json read_member(const store::OutputRecord& output, const OutputValue& value,
                           store::ArtifactStore& artifacts, std::uint64_t max_bytes) {
  auto name = value.source.step + "." + value.source.output;
  auto found = read_json(output, name, artifacts, max_bytes);
  for (const auto& part : value.path) {
    auto inner = member_of(found, part, name);
    found = std::move(inner);
    name += "." + part;
  }
  return found;
}

}  // namespace pipeline::engine
