#include "store/lineage.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include <nlohmann/json.hpp>

#include "core/bounded_json.hpp"
#include "store/cache_entries.hpp"
#include "store/database.hpp"
#include "store/key_values.hpp"
#include "store/record_texts.hpp"
#include "store/runs.hpp"

namespace pipeline::store {
namespace {

constexpr const char* gathered_kind = "gathered";
constexpr const char* matrix_kind = "taken values";
constexpr std::size_t digits = 64;  // Length of a digest in hex.

/// Returns true if the key of a step has the digest as an input or as data.
bool takes(const std::vector<KeyPart>& parts, const std::string& digest) {
  return std::ranges::any_of(parts, [&](const KeyPart& part) {
    const bool is_data = part.name.starts_with("data ");
    return ((is_data || part.name.starts_with("input ")) &&
            part.value.find(digest) != std::string::npos) ||
           (is_data && part.producer.find(digest) != std::string::npos);
  });
}

void add_inputs(const std::vector<KeyPart>& parts, InputDigests& inputs) {
  for (const auto& part : parts)
    if (const auto input = part.name.starts_with("input ") ? artifact_of(part) : std::nullopt)
      inputs.push_back({part.name.substr(6), *input, part.producer});
}

void add_data(const std::vector<KeyPart>& parts, InputDigests& inputs) {
  for (const auto& part : parts)
    if (auto data = data_input(part))
      inputs.push_back({std::move(data->first), {}, {}, std::move(data->second)});
}

/// Replaces inputs that are items of a folder, which are not artifacts, by the folder.
void add_matrix_inputs(const MatrixInputs& values, InputDigests& inputs) {
  for (const auto& value : values) {
    std::erase_if(inputs, [&](const auto& input) { return input.name == value.first; });
    inputs.push_back({value.first, value.second});
  }
}

}  // namespace

std::optional<StepRecord> Lineage::producer(const core::Digest& artifact,
                                            std::optional<WallTime> latest_end,
                                            const std::string& step, const std::string& run) {
  std::string found_run, found_name;
  {
    auto row = database_.prepare(
        "SELECT run, name FROM steps WHERE status = ?1 AND instr(outputs, ?2) > 0 ORDER BY "
        "ended <= ?3 DESC, name = ?4 DESC, run = ?5 DESC, id DESC LIMIT 1");
    const auto digest = artifact.hex();
    row.bind(static_cast<int>(StepStatus::succeeded), digest,
             to_integer(latest_end.value_or(WallTime::max())), step, run);
    if (!row.step()) return std::nullopt;
    found_run = row.text(0);
    found_name = row.text(1);
  }
  auto found = runs_.steps(found_run, found_name);
  return found.empty() ? std::nullopt : std::optional(std::move(found.front()));
}

std::string gathered_text(const std::vector<GatheredPiece>& pieces) {
  std::size_t size = 0;
  for (const auto& piece : pieces) size += digits + 1 + piece.step.size();
  std::string text;
  text.reserve(size);
  for (const auto& piece : pieces) text += piece.artifact.hex();
  for (const auto& piece : pieces) text.append("\n").append(piece.step);
  return text;
}

void Lineage::record_gather(const core::Digest& input, std::string_view pieces) {
  key_values_.put(gathered_kind, input.hex(), pieces);
}

std::vector<GatheredPiece> Lineage::gathered(const core::Digest& input) {
  const auto text = key_values_.find(gathered_kind, input.hex()).value_or("");
  std::istringstream steps(text);
  std::string artifacts, step;
  std::getline(steps, artifacts);
  std::vector<GatheredPiece> pieces;
  for (std::size_t at = 0; at + digits <= artifacts.size(); at += digits) {
    step.clear();  // Earlier versions have recorded no steps.
    std::getline(steps, step);
    pieces.push_back({core::Digest::from_hex(artifacts.substr(at, digits)), step});
  }
  return pieces;
}

void Lineage::record_matrix_inputs(const std::string& key, const MatrixInputs& values) {
  auto list = nlohmann::json::array();
  for (const auto& [axis, artifact] : values) list.push_back({axis, artifact.hex()});
  key_values_.put(matrix_kind, key, list.dump());
}

MatrixInputs Lineage::matrix_inputs(const std::string& key) {
  MatrixInputs values;
  const auto text = key_values_.find(matrix_kind, key);
  const auto list = text ? core::parse_json(*text) : nlohmann::json::array();
  for (const auto& row : list)
    if (row.is_array() && row.size() == 2 && row[0].is_string() && row[1].is_string())
      values.emplace_back(row[0], core::Digest::from_hex(row[1].get<std::string>()));
  return values;
}

std::unordered_map<std::string, InputDigests> Lineage::inputs_of_run(const std::string& run) {
  std::unordered_map<std::string, InputDigests> all;
  // Inputs are the last parts of a key, those of data first. Within a text, the quote would be
  // escaped.
  const std::pair<const char*, decltype(&add_data)> kinds[] = {{"[\"data ", add_data},
                                                               {"[\"input ", add_inputs}};
  for (const auto& [prefix, add] : kinds) {
    auto row = database_.prepare(
        "SELECT key, substr(parts, instr(parts, ?2)) FROM cache WHERE key IN "
        "(SELECT key FROM steps WHERE run = ?1) AND instr(parts, ?2) > 0");
    row.bind(run, prefix);
    while (row.step()) add(read_parts("[" + row.text(1)), all[row.text(0)]);
  }
  auto matrices = database_.prepare(
      "SELECT key FROM blobs WHERE kind = ?1 AND key IN (SELECT key FROM steps WHERE run = ?2)");
  matrices.bind(matrix_kind, run);
  while (matrices.step()) add_matrix_inputs(matrix_inputs(matrices.text(0)), all[matrices.text(0)]);
  return all;
}

InputDigests Lineage::inputs_of_step(const std::string& key) {
  InputDigests inputs;
  const auto parts = cache_.key_parts(key);
  add_data(parts, inputs);
  add_inputs(parts, inputs);
  add_matrix_inputs(matrix_inputs(key), inputs);
  return inputs;
}

std::optional<core::Digest> Lineage::data_from(const std::string& source) {
  auto row = database_.prepare(
      "SELECT parts FROM cache WHERE instr(parts, ?1) > 0 ORDER BY id DESC LIMIT 100");
  row.bind(source);
  while (row.step())
    for (const auto& part : read_parts(row.text(0)))
      if (const auto data = data_input(part); data && data->second.source == source)
        return data->second.digest;
  return std::nullopt;
}

void Lineage::remove_unused() {
  database_.transaction([&] {
    std::set<core::Digest> used;
    {
      auto row = database_.prepare("SELECT parts FROM cache");
      InputDigests inputs;
      while (row.step()) add_inputs(read_parts(row.text(0)), inputs);
      for (const auto& input : inputs) used.insert(input.digest);
    }
    for (const auto& input : key_values_.keys(gathered_kind))
      if (!used.contains(core::Digest::from_hex(input))) key_values_.remove(gathered_kind, input);
    database_.prepare("DELETE FROM blobs WHERE kind = ?1 AND key NOT IN (SELECT key FROM cache)")
        .bind(matrix_kind)
        .run();
  });
}

std::vector<StepRecord> Lineage::consumers(const core::Digest& artifact) {
  std::vector<std::string> inputs{artifact.hex()};
  {
    auto row = database_.prepare(
        "SELECT key FROM blobs WHERE kind = ?1 AND instr(value, ?2) > 0 ORDER BY key");
    row.bind(gathered_kind, inputs.front());
    while (row.step()) inputs.push_back(row.text(0));
  }
  // Keyed by the number of the row, so that the oldest comes first.
  std::map<std::int64_t, std::pair<std::string, std::string>> found;
  for (const auto& input : inputs) {
    auto row =
        database_.prepare("SELECT id, run, step, parts FROM cache WHERE instr(parts, ?1) > 0");
    row.bind(input);
    while (row.step())
      if (takes(read_parts(row.text(3)), input))
        found.try_emplace(row.integer(0), row.text(1), row.text(2));
  }
  {
    auto row = database_.prepare(
        "SELECT id, run, step FROM cache WHERE key IN "
        "(SELECT key FROM blobs WHERE kind = ?1 AND instr(value, ?2) > 0)");
    row.bind(matrix_kind, inputs.front());
    while (row.step()) found.try_emplace(row.integer(0), row.text(1), row.text(2));
  }
  std::vector<std::string> runs;
  std::map<std::string, std::set<std::string>> steps_of;
  for (const auto& [id, step] : found) {
    const auto [of_run, is_new] = steps_of.try_emplace(step.first);
    if (is_new) runs.push_back(step.first);
    of_run->second.insert(step.second);
  }
  std::vector<StepRecord> consumers;
  for (const auto& run : runs) {
    const auto& names = steps_of.at(run);
    // Reads a single step of a run: in a chain of steps each has one consumer.
    for (auto& record : runs_.steps(run, names.size() == 1 ? *names.begin() : std::string()))
      if (names.contains(record.name)) consumers.push_back(std::move(record));
  }
  return consumers;
}

}  // namespace pipeline::store
