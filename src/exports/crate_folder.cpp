#include "exports/crate_folder.hpp"

#include <nlohmann/json.hpp>

#include "core/diagnostic.hpp"
#include "core/file.hpp"
#include "core/project.hpp"
#include "exports/ro_crate.hpp"

namespace pipeline::exports {
namespace {

namespace fs = std::filesystem;

/// Writes the pipeline's file into the crate and returns the file's name there. Writes the recorded
/// steps instead if the file is gone, if it is outside of the project, because the record of a run
/// that somebody else has made may name any file, or if its name is not also an RO-Crate
/// identifier.
std::string write_workflow(store::RunStore& store, const store::RunRecord& run,
                           const CrateFolder& folder) {
  const fs::path file = run.file;
  std::error_code error;
  if (fs::is_regular_file(file, error) && !core::is_outside_project(file) &&
      file.filename().string().find_first_not_of(
          "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") ==
          std::string::npos) {
    core::write_file_atomically(folder.path / file.filename(), core::read_file(file));
    return file.filename().string();
  }
  folder.note(
      "note: the crate has the recorded steps in place of the pipeline's file, which is missing, "
      "outside of the project, or has a name with other characters than A-Z a-z 0-9 . _ -: " +
      run.file + "\n");
  const auto& recorded = run.same_as.empty() ? run.id : run.same_as;
  core::write_file_atomically(
      folder.path / "workflow.json",
      store.key_values().find(store::declared_kind, recorded).value_or("{}"));
  return "workflow.json";
}

}  // namespace

void write_crate(store::RunStore& store, store::ArtifactStore& artifacts, const RunFacts& facts,
                 const CrateFolder& folder) {
  const auto& crate = folder.path;
  if (fs::exists(crate))
    throw core::InputError("'" + crate.string() + "' is there already",
                           "name another folder with -o, or remove it");
  core::make_folders(crate);
  const CrateOptions options{
      write_workflow(store, facts.run, folder), folder.license,
      [&](const core::Digest& digest) { return artifacts.looks_whole(digest); }};
  for (const auto& step : facts.steps)
    for (const auto& output : step.record.outputs) {
      if (!options.has_content(output.digest)) {
        folder.note("note: " + step.record.name + "." + output.name +
                    " is not in the crate: its content is not on this machine\n");
        continue;
      }
      auto path = crate_path(step.record, output);
      if (path.ends_with('/')) path.pop_back();
      core::make_folders((crate / path).parent_path());
      artifacts.copy_out(output.digest, crate / path);
    }
  const auto metadata =
      ro_crate(facts, options).dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
  core::write_file_atomically(crate / "ro-crate-metadata.json", metadata + "\n");
}

}  // namespace pipeline::exports
