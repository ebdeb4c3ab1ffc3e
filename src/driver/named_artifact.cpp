#include "driver/named_artifact.hpp"

#include <algorithm>
#include <filesystem>

#include "core/diagnostic.hpp"
#include "core/file.hpp"
#include "core/text.hpp"
#include "driver/named_outputs.hpp"
#include "store/published.hpp"
#include "store/user_data.hpp"

namespace pipeline::driver {
namespace {

/// Returns the artifact published as `NAME` or `NAME@VERSION`.
std::optional<NamedArtifact> published_as(store::RunStore& store, const std::string& words) {
  const auto named = store::PublishedReference::parse(words);
  if (!named) return std::nullopt;
  const auto name = store.published().find(named->name);
  const auto* found = name.find(named->version);
  return found ? std::optional(NamedArtifact{found->output.digest}) : std::nullopt;
}

/// Throws InputError if the words name several outputs.
std::optional<NamedArtifact> output_called(store::RunStore& store, const store::RunRecord& run,
                                           const std::string& words) {
  constexpr std::size_t max_shown = 6;
  if (words.empty()) return std::nullopt;
  const auto steps = store.runs().steps(run.id);
  const auto found = find_outputs(store, run, steps, words);
  if (found.empty()) return std::nullopt;
  if (found.size() == 1) {
    const auto& step = found.front().step;
    return NamedArtifact{found.front().output.digest, step.name,
                         step.reused_from.empty() ? run.id : step.reused_from};
  }
  std::string names;
  for (std::size_t i = 0; i < std::min(found.size(), max_shown); ++i)
    names += (i ? ", " : "") + found[i].name;
  throw core::InputError(
      "'" + words + "' is " + core::counted(found.size(), "output") + " of run " + run.id,
      "name one of them: " + names + (found.size() > max_shown ? ", ..." : ""));
}

/// Returns the digest that a folder of the user's has as an input of a step.
core::Digest digest_of_folder(const std::filesystem::path& folder) {
  const core::TemporaryFolder temporary;
  store::StatIndex index(temporary.path() / "index");
  return store::read_user_data(folder, index).digest;
}

std::optional<NamedArtifact> output_of_latest(store::RunStore& store, const std::string& words) {
  const auto run = store.runs().find("latest");
  return run ? output_called(store, *run, words) : std::nullopt;
}

}  // namespace

NamedArtifact output_of_run(store::RunStore& store, const store::RunRecord& run,
                            const std::string& words) {
  if (auto found = output_called(store, run, words)) return *std::move(found);
  std::vector<std::string> names;
  for (const auto& step : store.runs().steps(run.id))
    for (const auto& output : step.outputs) names.push_back(step.name + "." + output.name);
  throw core::InputError("run " + run.id + " has no output '" + words + "'",
                         core::did_you_mean(words, names));
}

NamedArtifact artifact_named(store::RunStore& store, const std::string& words) {
  constexpr std::size_t all_digits = 64, min_digits = 6;
  std::error_code error;
  if (std::filesystem::is_regular_file(words, error)) return {core::sha256_file(words)};
  if (std::filesystem::is_directory(words, error)) return {digest_of_folder(words)};
  if (words.find("://") != words.npos) {
    if (const auto digest = store.lineage().data_from(words)) return {*digest};
    throw core::InputError("no step in this state folder took the data at " + words,
                           "write the address as the pipeline has it, without its query");
  }
  const bool is_hex = core::all(words, core::is_hex_digit);
  if (is_hex && words.size() == all_digits) return {core::Digest::from_hex(words)};
  std::vector<core::Digest> found;
  if (is_hex && words.size() >= min_digits)
    for (const auto& digest : store.referenced_artifacts())
      if (digest.hex().starts_with(words)) found.push_back(digest);
  if (found.size() == 1) return {found.front()};
  if (found.empty())
    for (const auto look : {published_as, output_of_latest})
      if (auto artifact = look(store, words)) return *std::move(artifact);
  throw core::InputError(found.empty() ? "there is no file and no artifact '" + words + "'"
                                       : "'" + words + "' is the beginning of several digests",
                         "name a file or folder, an address, a published name, an output of the "
                         "latest run as STEP.OUTPUT, or a digest: "
                         "`pipe artifacts --output json` lists them");
}

}  // namespace pipeline::driver
