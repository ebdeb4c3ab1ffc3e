#include "engine/graph/gather.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/file.hpp"

namespace pipeline::engine {

namespace fs = std::filesystem;

std::string content_of(const InputSpec& input, const OutputsOf& outputs) {
  if (input.gathered)
    return GatheredFolder(input, outputs).digest().hex() + " of " +
           std::to_string(input.sources.size());
  const auto& output = *outputs(input.sources.at(0)).output;
  return output.digest.hex() + " " + output.file_name;
}

GatheredFolder::GatheredFolder(const InputSpec& input, const OutputsOf& outputs) {
  const auto digits = std::to_string(std::max<std::size_t>(input.sources.size(), 1) - 1).size();
  entries_.reserve(input.sources.size());
  for (const auto& source : input.sources) {
    const auto made = outputs(source);
    auto number = std::to_string(entries_.size());
    number.insert(0, digits - number.size(), '0');  // So that names sort as their numbers do.
    if (made.output)
      entries_.push_back(
          {number + "-" + source.step + orchestrators::extension_of(made.output->file_name), made});
    else
      entries_.push_back({{}, made});
  }
}

std::string GatheredFolder::index() const {
  std::string text = "[";
  text.reserve(80 * entries_.size());
  for (const auto& entry : entries_) {
    auto values = nlohmann::json::object();
    if (entry.made.step->instance)
      for (const auto& [axis, value] : entry.made.step->instance->values) values[axis] = *value;
    const nlohmann::json line{
        {"step", entry.made.step->name},
        {"parameters", std::move(values)},
        {"file", entry.made.output ? nlohmann::json(entry.file) : nlohmann::json()}};
    text.append(&entry == &entries_.front() ? "\n" : ",\n").append(line.dump());
  }
  return text + "\n]\n";
}

core::Digest GatheredFolder::digest() const {
  core::Hasher hasher;
  hasher.field(index());
  for (const auto& entry : entries_)
    if (entry.made.output) hasher.field(entry.made.output->digest.hex());
  return hasher.finish();
}

void GatheredFolder::make(const store::ArtifactStore& artifacts, const fs::path& folder) const {
  core::make_folders(folder);
  for (const auto& entry : entries_)
    if (entry.made.output && !artifacts.elsewhere(entry.made.output->digest))
      artifacts.link_out(entry.made.output->digest, folder / entry.file);
  core::write_file_atomically(folder / "index.json", index());
}

std::vector<store::GatheredPiece> GatheredFolder::artifacts() const {
  std::vector<store::GatheredPiece> all;
  for (const auto& entry : entries_)
    if (entry.made.output) all.push_back({entry.made.output->digest, entry.made.step->name});
  return all;
}

InputOrigins origins_of(const StepSpec& step, const OutputsOf& outputs) {
  InputOrigins origins;
  for (const auto& input : step.inputs) {
    if (!input.gathered) continue;
    const GatheredFolder folder(input, outputs);
    origins.gathered.emplace_back(folder.digest(), folder.artifacts());
  }
  if (step.instance)
    for (const auto& [axis, source] : step.instance->taken)
      origins.taken.emplace_back(axis, outputs(source).output->digest);
  return origins;
}

std::vector<orchestrators::AttemptPiece> GatheredFolder::pieces(
    const store::ArtifactStore& artifacts) const {
  std::vector<orchestrators::AttemptPiece> all;
  all.reserve(entries_.size());
  for (const auto& entry : entries_) {
    if (!entry.made.output) continue;
    const auto& digest = entry.made.output->digest;
    all.push_back({entry.file, artifacts.path(digest), digest.hex(), artifacts.elsewhere(digest)});
  }
  return all;
}

}  // namespace pipeline::engine
