#include "engine/graph/gather.hpp"

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
  made_.reserve(input.sources.size());
  for (const auto& source : input.sources) made_.push_back(outputs(source));
}

std::string GatheredFolder::file_of(std::size_t i) const {
  const auto digits = std::to_string(made_.size() - 1).size();
  auto number = std::to_string(i);
  number.insert(0, digits - number.size(), '0');  // Names then sort as their numbers do.
  const auto& [step, output] = made_[i];
  return number + "-" + step->name + orchestrators::extension_of(output->file_name);
}

std::string GatheredFolder::index() const {
  std::string text = "[";
  text.reserve(80 * made_.size());
  for (std::size_t i = 0; i < made_.size(); ++i) {
    const auto& [step, output] = made_[i];
    auto values = nlohmann::json::object();
    if (step->instance)
      for (const auto& axis : step->instance->axes) values[axis] = *step->axis_value(axis);
    const nlohmann::json line{{"step", step->name},
                              {"parameters", std::move(values)},
                              {"file", output ? nlohmann::json(file_of(i)) : nlohmann::json()}};
    text.append(i == 0 ? "\n" : ",\n").append(line.dump());
  }
  text += "\n]\n";
  return text;
}

core::Digest GatheredFolder::digest() const {
  core::Hasher hasher;
  hasher.field(index());
  for (const auto& [step, output] : made_)
    if (output) hasher.field(output->digest.hex());
  return hasher.finish();
}

void GatheredFolder::make(const store::ArtifactStore& artifacts, const fs::path& folder) const {
  core::make_folders(folder);
  for (std::size_t i = 0; i < made_.size(); ++i)
    if (const auto* output = made_[i].output; output && !artifacts.elsewhere(output->digest))
      artifacts.link_out(output->digest, folder / file_of(i));
  core::write_file_atomically(folder / "index.json", index());
}

std::vector<store::GatheredPiece> GatheredFolder::artifacts() const {
  std::vector<store::GatheredPiece> all;
  all.reserve(made_.size());
  for (const auto& [step, output] : made_)
    if (output) all.push_back({output->digest, step->name});
  return all;
}

InputOrigins origins_of(const StepSpec& step, const OutputsOf& outputs) {
  InputOrigins origins;
  for (const auto& input : step.inputs) {
    if (!input.gathered) continue;
    const GatheredFolder folder(input, outputs);
    const auto digest = folder.digest();  // First, because the index and the artifacts are large.
    origins.gathered.emplace_back(digest, store::gathered_text(folder.artifacts()));
  }
  if (step.instance)
    for (const auto& [axis, source] : step.instance->taken)
      origins.taken.emplace_back(axis, outputs(source).output->digest);
  return origins;
}

orchestrators::AttemptPieces GatheredFolder::pieces(const store::ArtifactStore& artifacts) const {
  orchestrators::AttemptPieces all;
  all.reserve(made_.size());
  for (std::size_t i = 0; i < made_.size(); ++i) {
    if (!made_[i].output) continue;
    const auto& digest = made_[i].output->digest;
    orchestrators::AttemptPiece piece{.file = file_of(i), .digest = digest};
    if (const auto place = artifacts.elsewhere(digest)) {
      piece.is_elsewhere = true;
      piece.bytes = place->bytes;
      piece.is_directory = place->is_directory;
      piece.is_executable = place->is_executable;
    } else {
      std::error_code missing;  // The step then fails when the piece is used.
      const auto status = fs::status(artifacts.path(digest), missing);
      piece.is_directory = fs::is_directory(status);
      piece.is_executable = fs::is_regular_file(status) &&
                            (status.permissions() & fs::perms::owner_exec) != fs::perms::none;
    }
    all.push_back(piece);
  }
  return all;
}

}  // namespace pipeline::engine
