#include "remote_cache/record.hpp"

#include <stdexcept>

#include <nlohmann/json.hpp>

#include "core/bounded_json.hpp"
#include "core/diagnostic.hpp"
#include "core/identifier.hpp"

namespace pipeline::remote_cache {
namespace {

using engine::RemoteOutput;
using nlohmann::json;

RemoteOutput output_of(const json& document) {
  RemoteOutput output;
  output.record.name = document.at("name").get<std::string>();
  output.record.file_name = document.at("file_name").get<std::string>();
  output.record.digest = core::Digest::from_hex(document.at("digest").get<std::string>());
  output.record.is_directory = document.at("kind").get<std::string>() == "tree";
  output.record.bytes = core::integer_of<std::uint64_t>(document.at("bytes"));
  output.is_executable = document.value("executable", false);
  for (const auto& name :
       {output.record.name, output.record.file_name})  // Both become parts of paths.
    if (!core::is_name(name)) throw std::invalid_argument("no name");
  return output;
}

}  // namespace

std::optional<engine::RemoteResult> read_record(std::string_view text) try {
  const auto record = core::parse_json(text);
  if (!record.at("format").is_number_integer()) throw std::invalid_argument("no format");
  if (record.at("format") != record_format) return std::nullopt;
  engine::RemoteResult found;
  found.run = core::printable(record.at("run").get<std::string>());
  for (const auto& output : record.at("outputs")) found.outputs.push_back(output_of(output));
  return found;
} catch (const json::exception& error) {
  throw std::invalid_argument(error.what());
}

}  // namespace pipeline::remote_cache
