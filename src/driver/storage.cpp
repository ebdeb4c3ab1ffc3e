#include "driver/storage.hpp"

#include <set>

#include "core/diagnostic.hpp"
#include "core/quantity.hpp"
#include "core/user_environment.hpp"
#include "store/published.hpp"

namespace pipeline::driver {

namespace fs = std::filesystem;

Bytes size_of(const fs::path& folder) {
  Bytes bytes = 0;
  std::error_code error;
  if (fs::is_regular_file(fs::symlink_status(folder, error))) {
    bytes = fs::file_size(folder, error);
    return error ? 0 : bytes;
  }
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code gone;  // Another process may remove the file meanwhile.
    if (!entry->is_regular_file(gone) || entry->is_symlink(gone)) continue;
    if (const auto size = entry->file_size(gone); !gone) bytes += size;
  }
  return bytes;
}

std::size_t newest_within(store::RunStore& store, const std::vector<store::RunRecord>& all,
                          Bytes budget) {
  const store::ArtifactStore artifacts(store.folder() / "artifacts");
  std::set<core::Digest> seen;
  Bytes bytes = 0;
  const auto count = [&](const store::OutputRecord& output) {
    if (seen.insert(output.digest).second && !artifacts.elsewhere(output.digest))
      bytes += output.bytes;
  };
  auto& published = store.published();
  for (const auto& name : published.names())
    for (const auto& version : published.find(name).versions) count(version.output);
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const auto& step : store.runs().steps(all[i].id))
      for (const auto& output : step.outputs) count(output);
    if (bytes > budget) return std::max<std::size_t>(i, 1);
  }
  return all.size();
}

Bytes storage_budget(const WorkspaceOptions& options) {
  if (options.keep_storage) return options.keep_storage;
  const auto text = core::variable("PIPE_KEEP_STORAGE");
  if (text.empty()) return 0;
  if (const auto bytes = core::parse_bytes(text)) return *bytes;
  throw core::InputError("PIPE_KEEP_STORAGE '" + text + "' is not a size",
                         "write a number and a unit: 20GB, 500MiB");
}

void warn_of_storage(const Workspace& workspace, const fs::path& state) {
  const auto budget = storage_budget(workspace.options());
  if (!budget) return;
  const auto bytes = size_of(state / "artifacts");
  if (bytes <= budget) return;
  workspace.note("warning: the artifacts in " + shown_path(state) + " take " +
                 core::format_bytes(bytes) + ", and the budget is " + core::format_bytes(budget) +
                 ": `" + workspace.options().name + " clean --keep-storage " +
                 std::to_string(budget) + "B" + workspace.state_option(state) +
                 "` removes the oldest runs; with --dry-run it only lists them");
}

}  // namespace pipeline::driver
