#include "driver/clean_up.hpp"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/diagnostic.hpp"
#include "core/file.hpp"
#include "core/json_member.hpp"
#include "core/quantity.hpp"
#include "core/text.hpp"
#include "docker/build_stages.hpp"
#include "docker/engine_api.hpp"
#include "docker/image_storage.hpp"
#include "docker/json_text.hpp"
#include "docker/package_resolver.hpp"
#include "docker/unreachable.hpp"
#include "driver/clean_up_parts.hpp"
#include "driver/drivers.hpp"
#include "driver/output_links.hpp"
#include "driver/recovery.hpp"
#include "driver/remote_clean_up.hpp"
#include "driver/session.hpp"
#include "driver/storage.hpp"
#include "engine/attempt/attempt.hpp"
#include "engine/attempt/shell.hpp"
#include "engine/data/download.hpp"
#include "orchestrators/containers/image_use.hpp"
#include "orchestrators/docker/init_program.hpp"
#include "orchestrators/docker/user_entry.hpp"
#include "orchestrators/processes/environment_use.hpp"

namespace pipeline::driver {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class Cleaner {
 public:
  Cleaner(Workspace& workspace, const CleanUp& wanted,
          const std::function<void(const std::string&)>& on_kept)
      : workspace_(workspace), wanted_(wanted), on_kept_(on_kept), dry_run_(wanted.dry_run) {
    const auto state = workspace.existing_state();
    if (!state) return;
    store_ = &workspace.store(*state);
    drivers_.emplace(workspace.driver_context(), *store_);
    if (!dry_run_) nothing_runs_ = store::StateLock::hold_artifacts(store_->folder());
  }

  /// Runs a part that needs an engine. If no engine answers, reports that `things` stay, where all
  /// parts were wanted or another part has found something; otherwise throws the engine's error.
  template <class Part>
  void on_engine(const char* things, Part part) {
    try {
      part();
    } catch (const docker::UnreachableEngine& error) {
      if (!wanted_.all && report_.removed.empty() && report_.kept.empty()) throw;
      kept(std::string(things) + ": " + error.what());
    }
  }
  void remove_containers();
  void remove_images();
  void remove_environments();
  void remove_runs();
  CleanUpReport report() && { return std::move(report_); }

 private:
  struct OldRuns {
    std::vector<store::RunRecord> runs;  ///< The runs to be removed.
    std::set<std::string> reused;        ///< Runs whose results the kept runs reuse.
    std::set<std::string> kept_keys;     ///< Keys of the kept runs' steps.
  };

  void removed(const char* kind, const std::string& name, Bytes bytes) {
    report_.removed.push_back({kind, name, bytes});
    report_.freed += bytes;
  }
  void kept(std::string reason) {
    on_kept_(reason);
    report_.kept.push_back(std::move(reason));
  }
  bool goes_on(store::RunRecord run) { return drivers_->goes_on(run); }
  std::string why_it_stays(store::RunRecord run) {
    if (drivers_->liveness_of(run) != Drivers::Liveness::unknown || run.driver.has_lease())
      return "which is running";
    const auto error = drivers_->liveness_error(run);
    return "since " + std::string(error.what()) + "; " + error.advice().back();
  }
  json all_images();
  void remove_image_files();
  bool remove_image(const std::string& id, const std::vector<std::string>& names);
  void remove_images_above_budget();
  void remove_resolver_cache();
  bool remove_run(const store::RunRecord& run, bool keep_cache);
  bool make_room(const std::string& failure);
  void forget_unused(const store::RunRecord& run);
  void remove_left_folders();
  OldRuns choose_old_runs();
  void remove_shared_folders();
  void list_removable(const std::vector<store::RunRecord>& old);
  bool has_used_output(const store::StepRecord& step) const {
    return std::ranges::any_of(step.outputs,
                               [&](const auto& output) { return used_.contains(output.digest); });
  }
  bool keeps_result(const OldRuns& old, const std::string& run, const store::StepRecord& step);
  Bytes size_of_removable(const OldRuns& old);
  Bytes collect_artifacts();
  void remove_checkpoints(const std::set<std::string>& keys);
  /// Returns true if a run is in progress, or could start and need its artifacts and images.
  bool some_run_goes_on() {
    if (!store_) return false;
    if (!dry_run_ && !nothing_runs_) return true;
    const auto all = store_->runs().list();
    return std::ranges::any_of(all, [&](const auto& run) { return goes_on(run); });
  }
  docker::EngineApi& engine() {
    if (!engine_)
      engine_ = std::make_unique<docker::EngineApi>(workspace_.loop(), docker::find_endpoint());
    return *engine_;
  }

  Workspace& workspace_;
  const CleanUp& wanted_;
  const std::function<void(const std::string&)>& on_kept_;
  const bool dry_run_;
  store::RunStore* store_ = nullptr;
  std::optional<Drivers> drivers_;                ///< The drivers of the runs.
  std::optional<store::StateLock> nothing_runs_;  ///< While it is held, new runs wait.
  std::unique_ptr<docker::EngineApi> engine_;
  std::set<core::Digest> used_;  ///< Outputs of runs that stay.
  /// Outputs that only runs to be removed have, with their sizes.
  std::map<core::Digest, Bytes> of_old_runs_;
  std::vector<fs::path> old_logs_;  ///< Logs of runs to be removed.
  CleanUpReport report_;
};

void Cleaner::remove_containers() {
  if (!store_) return;
  if (!dry_run_) recover_dead_runs(workspace_, *store_);
  // Returns true for a run whose containers stay; reports the others.
  const auto stays = [&](const std::string& id) {
    const auto run = store_->runs().find(id);
    if (run && run->id == id && run->status == RunStatus::running &&
        store_->drivers().liveness(*run) != store::Liveness::dead)
      return true;
    removed("container", "of run " + id, Bytes{0});
    return dry_run_;  // A dry run removes no container.
  };
  for (const auto& entry : orchestrators::catalog()) {
    if (!entry.traits.runs_on_engine) continue;
    const auto orchestrator = make_orchestrator(
        workspace_, entry.name,
        {.state = store_->folder(), .connection = workspace_.options().connection});
    workspace_.await(orchestrator->remove_orphans(stays));
  }
}

/// Removes the files that were made of images for the nodes of a cluster, unless jobs may use them.
void Cleaner::remove_image_files() {
  for (const auto& entry : orchestrators::catalog()) {
    if (!entry.traits.makes_image_files) continue;
    const auto orchestrator = make_orchestrator(
        workspace_, entry.name,
        {.state = store_ ? store_->folder() : fs::path(".pipe"),
         .connection = orchestrators::connection_of(entry, workspace_.options().connection)});
    const auto report_removal = [this](const fs::path& file, Bytes bytes) {
      removed("image file", file.filename().string(), bytes);
      return !dry_run_;
    };
    try {
      workspace_.await(orchestrator->remove_image_files(report_removal));
    } catch (const core::EnvironmentError& error) {
      kept("the files of images for " + entry.name + ": " + error.what());
    }
  }
}

/// Returns all images. The engine's disk usage includes the sizes shared between images, which its
/// list of images lacks; Podman's disk usage lacks labels.
json Cleaner::all_images() {
  const bool is_podman = workspace_.await(engine().info())->podman;
  if (is_podman) return workspace_.await(engine().call("GET", "/images/json"));
  const auto usage = workspace_.await(engine().disk_usage());
  const auto* images = core::member(usage, "Images");
  return images ? *images : json::array();
}

void Cleaner::remove_images() {
  if (some_run_goes_on()) return kept("the images, since a run is in progress");
  if (wanted_.keep_storage.empty()) remove_image_files();
  // A `pipe` that was killed during a build by the classic builder has left the images of its
  // stages. A build of another state folder may be in progress, so young images stay.
  constexpr std::time_t max_build = 6 * 3600;  // Seconds.
  if (!dry_run_)
    workspace_.await(
        docker::remove_stages(engine(), docker::stage_label, std::time(nullptr) - max_build));
  if (!wanted_.keep_storage.empty()) return remove_images_above_budget();
  for (const auto& image : all_images()) {
    const auto id = docker::text_at(image, "Id");
    if (id.empty()) continue;
    const auto names = workspace_.await(docker::own_references(engine(), image));
    if (names.empty() || !remove_image(id, names)) continue;
    const auto size = docker::number_at(image, "Size"),
               shared = docker::number_at(image, "SharedSize");
    const bool has_other_names = names.size() < docker::names_of(image).size();
    removed("image", names.front(), has_other_names ? 0 : size - std::min(size, shared));
  }
  remove_resolver_cache();
}

/// Removes the volume where the resolver of Python packages keeps uv; its next use fills it again.
void Cleaner::remove_resolver_cache() {
  const auto usage = workspace_.await(engine().disk_usage());
  const auto* volumes = core::member(usage, "Volumes");
  if (!volumes || !volumes->is_array()) return;
  const auto found = std::ranges::find_if(*volumes, [](const json& volume) {
    return docker::text_at(volume, "Name") == docker::cache_volume;
  });
  if (found == volumes->end()) return;
  const std::string name(docker::cache_volume);
  try {
    if (!dry_run_) workspace_.await(engine().call("DELETE", "/volumes/" + name));
  } catch (const docker::EngineError& error) {
    return kept(name + ": " + error.what());
  }
  const auto* use = core::member(*found, "UsageData");
  const Bytes size = use ? docker::number_at(*use, "Size") : 0;
  removed("volume", name, size);
}

/// Removes virtual environments of local steps, which all pipelines of the user share.
void Cleaner::remove_environments() {
  if (some_run_goes_on()) return kept("the virtual environments, since a run is in progress");
  for (const auto& folder : orchestrators::processes::unused_environments()) {
    const auto bytes = size_of(folder);
    if (!dry_run_ && !orchestrators::processes::remove_environment(folder))
      kept("the virtual environment " + folder.filename().string() + ", which is being made");
    else
      removed("virtual environment", folder.filename().string(), bytes);
  }
}

/// Removes the image. Returns false if the engine keeps the image, because a container uses it.
bool Cleaner::remove_image(const std::string& id, const std::vector<std::string>& names) {
  bool is_gone = true;
  for (const auto& name : names) {
    try {
      if (!dry_run_) workspace_.await(engine().remove_image(name));
    } catch (const docker::EngineError& error) {
      is_gone = false;
      kept(name + ": " + error.what());
    }
  }
  if (is_gone && !dry_run_) orchestrators::containers::forget_use(id);
  return is_gone;
}

/// Removes the least recently used images until the layers of the others fit the budget.
void Cleaner::remove_images_above_budget() {
  const auto text = wanted_.keep_storage;
  const auto budget = *core::parse_bytes(text);
  auto images = workspace_.await(docker::stored_images(engine()));
  docker::sort_by_use(images, orchestrators::containers::last_use);
  auto storage = docker::storage_of(images);
  for (std::size_t i = 0; i < images.size() && storage.total() > budget;) {
    if (!images[i].is_own || !remove_image(images[i].id, images[i].names)) {
      ++i;
      continue;
    }
    const auto name = images[i].names.front();
    images.erase(images.begin() + static_cast<std::ptrdiff_t>(i));
    const auto remaining = docker::storage_of(images);
    removed("image", name, storage.total() - remaining.total());
    storage = remaining;
  }
  if (storage.total() > budget)
    kept(core::counted(storage.images, "image") + " of " + core::format_bytes(storage.total()) +
         ", which containers use");
}

/// Removes the run, with its results unless `keep_cache`. Returns false for a run that stays.
bool Cleaner::remove_run(const store::RunRecord& run, bool keep_cache) {
  for (;;) try {
      forget_unused(run);
      if (store_->remove_run(run.id, keep_cache)) return true;
      kept("run " + run.id + ", which was resumed meanwhile");
      return false;
    } catch (const core::EnvironmentError& error) {
      if (make_room(error.what())) continue;
      kept(error.what());
      const auto left = store_->runs().find(run.id);
      const bool is_gone = !left || left->id != run.id;  // Some of its files may be left.
      report_.is_complete &= is_gone;
      return is_gone;
    }
}

/// Removes logs and artifacts of the runs to be removed, if the failure says that the disk is full:
/// then even the removal of a record needs room. Returns false if that frees nothing.
bool Cleaner::make_room(const std::string& failure) {
  const auto is_full = [&](int error) {
    return failure.find(std::generic_category().message(error)) != failure.npos;
  };
  if (!is_full(ENOSPC) && !is_full(EDQUOT)) return false;
  const auto logs = std::exchange(old_logs_, {});
  for (const auto& log : logs) store_->paths().remove(log);
  if (of_old_runs_.empty() || some_run_goes_on()) return !logs.empty();
  const auto unused = std::exchange(of_old_runs_, {});
  const auto freed = workspace_.artifacts().collect(
      [&](const core::Digest& digest) { return !unused.contains(digest); });
  if (freed) removed("artifacts", "that nothing else uses", freed);
  return freed > 0 || !logs.empty();
}

/// Within a budget, forgets the results of the run that no remaining run uses: otherwise all
/// results of the run stay if one of them is reused.
void Cleaner::forget_unused(const store::RunRecord& run) {
  if (wanted_.keep_storage.empty()) return;
  for (const auto& step : store_->runs().steps(run.id))
    if (step.status == StepStatus::succeeded && !step.outputs.empty() && !has_used_output(step))
      store_->cache().remove(step.key);
}

/// Removes folders whose removal failed before: folders of attempts whose runs have ended, and
/// folders of failed attempts of removed runs.
void Cleaner::remove_left_folders() {
  auto left = core::entries_of(store_->folder() / "work");
  std::ranges::move(core::entries_of(store_->folder() / "failed"), std::back_inserter(left));
  for (const auto& folder : left) {
    const auto id = folder.filename().string();
    const bool is_work = folder.parent_path().filename() == "work";
    const auto bytes = size_of(folder);
    try {
      if (const auto run = store_->runs().find(id);
          run && run->id == id && (!is_work || run->status == RunStatus::running))
        continue;
      const auto held = store_->drivers().hold(id);
      if (!held) continue;
      core::remove_tree(folder);
      removed(is_work ? "work folder" : "folder of failed attempts", "of run " + id, bytes);
    } catch (const std::exception& failed) {
      kept(failed.what());
    }
  }
}

/// Removes the checkpoints of steps that no remaining run has begun.
/// @param keys keys of the steps whose checkpoints stay
void Cleaner::remove_checkpoints(const std::set<std::string>& keys) {
  for (const auto& folder : core::entries_of(store_->folder() / engine::checkpoints_folder)) {
    if (keys.contains(folder.filename().string())) continue;
    const auto bytes = size_of(folder);
    try {
      if (!dry_run_) core::remove_tree(folder);
      removed("checkpoint", folder.filename().string(), bytes);
    } catch (const core::EnvironmentError& failed) {
      kept(failed.what());
    }
  }
}

/// Returns the runs to be removed: all but the newest, those tagged `keep`, and those in progress.
Cleaner::OldRuns Cleaner::choose_old_runs() {
  auto all = store_->runs().list();
  std::size_t keep = std::min<std::size_t>(wanted_.keep.value_or(0), all.size());
  if (!wanted_.keep_storage.empty() && !wanted_.images)
    keep = std::max(keep, newest_within(*store_, all, *core::parse_bytes(wanted_.keep_storage)));
  OldRuns old;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool is_pinned = std::ranges::count(all[i].tags, "keep") > 0;
    if (i >= keep && !is_pinned && !goes_on(all[i])) {
      old.runs.push_back(std::move(all[i]));
      continue;
    }
    if (i >= keep)
      kept("run " + all[i].id + ", " +
           (is_pinned ? "which has the tag `keep`" : why_it_stays(all[i])));
    for (const auto& step : store_->runs().steps(all[i].id)) {
      old.reused.insert(step.reused_from);
      old.kept_keys.insert(step.key);
      for (const auto& output : step.outputs) used_.insert(output.digest);
    }
  }
  return old;
}

/// Removes folders that the runs of this state share, unless a run is in progress.
void Cleaner::remove_shared_folders() {
  for (const auto* folder :
       {orchestrators::docker_engine::users_folder, orchestrators::docker_engine::programs_folder,
        engine::shells_folder, engine::downloads_folder})
    if (!some_run_goes_on()) core::remove_tree(store_->folder() / folder);
}

/// Returns true if the result of a step stays because a kept run reuses some result of its run.
bool Cleaner::keeps_result(const OldRuns& old, const std::string& run,
                           const store::StepRecord& step) {
  if (!old.reused.contains(run) || step.status != StepStatus::succeeded) return false;
  if (!wanted_.keep_storage.empty() && !has_used_output(step)) return false;
  const auto entry = store_->cache().find(step.key);
  return entry && entry->run == run;
}

/// Lists what make_room() may remove: logs of the old runs, and artifacts that only these use.
void Cleaner::list_removable(const std::vector<store::RunRecord>& old) {
  auto in_use = used_;
  for (const auto& name : store_->published().names())
    for (const auto& version : store_->published().find(name).versions)
      in_use.insert(version.output.digest);
  for (const auto& run : old) {
    old_logs_.push_back(store_->paths().log_file(run.id));
    for (const auto& step : store_->runs().steps(run.id))
      for (const auto& output : step.outputs)
        if (!in_use.contains(output.digest)) of_old_runs_.emplace(output.digest, output.bytes);
  }
}

/// Returns the recorded size of the artifacts here that would go with the old runs.
Bytes Cleaner::size_of_removable(const OldRuns& old) {
  std::set<core::Digest> staying;
  for (const auto& run : old.runs)
    for (const auto& step : store_->runs().steps(run.id))
      if (keeps_result(old, run.id, step))
        for (const auto& output : step.outputs) staying.insert(output.digest);
  Bytes sum = 0;
  for (const auto& [digest, bytes] : of_old_runs_)
    if (!staying.contains(digest) && !workspace_.artifacts().elsewhere(digest)) sum += bytes;
  return sum;
}

/// Removes the artifacts that no record refers to. Returns their size.
Bytes Cleaner::collect_artifacts() {
  store_->lineage().remove_unused();
  const auto referenced = store_->referenced_artifacts();
  const std::set<core::Digest> in_use(referenced.begin(), referenced.end());
  const Bytes bytes = workspace_.artifacts().collect(
      [&](const core::Digest& digest) { return in_use.contains(digest); });
  remove_dead_links(store_->folder());
  return bytes;
}

void Cleaner::remove_runs() {
  if (!store_) return;
  if (!dry_run_) try {
      recover_dead_runs(workspace_, *store_);
    } catch (const core::EnvironmentError& error) {  // The disk may be full: the next run recovers.
      kept(error.what());
    }
  const auto old = choose_old_runs();
  if (!dry_run_) {
    remove_left_folders();  // Files before records: on a full disk these need room.
    remove_shared_folders();
  }
  list_removable(old.runs);
  std::map<std::string, Bytes> log_bytes;
  for (const auto& run : old.runs) log_bytes[run.id] = size_of(store_->paths().log_file(run.id));
  for (const auto& run : old.runs)
    if (dry_run_ || remove_run(run, old.reused.contains(run.id)))
      removed("run", run.id, log_bytes.at(run.id));
  if (some_run_goes_on()) return kept("the artifacts, since a run is in progress");
  const auto artifact_bytes = dry_run_ ? size_of_removable(old) : collect_artifacts();
  remove_checkpoints(old.kept_keys);
  if (artifact_bytes) removed("artifacts", "that nothing else uses", artifact_bytes);
}

}  // namespace

CleanUpReport clean_up(Workspace& workspace, const CleanUp& wanted,
                       const std::function<void(const std::string&)>& on_kept) {
  check_parts(wanted);
  if (!workspace.options().state.empty()) workspace.required_state();
  if (wanted.remote) return clean_remote_store(workspace, wanted, on_kept);
  Cleaner cleaner(workspace, wanted, on_kept);
  if (wanted.containers || wanted.all)
    cleaner.on_engine("the containers", [&] { cleaner.remove_containers(); });
  if (cleans_runs(wanted)) cleaner.remove_runs();
  if (wanted.environments || wanted.all) cleaner.remove_environments();
  if (wanted.images || wanted.all)
    cleaner.on_engine("the images", [&] { cleaner.remove_images(); });
  return std::move(cleaner).report();
}

}  // namespace pipeline::driver
