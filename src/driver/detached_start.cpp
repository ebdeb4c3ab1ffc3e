#include "driver/detached_start.hpp"

#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <set>

#include "code/code_tree.hpp"
#include "core/bounded_json.hpp"
#include "core/diagnostic.hpp"
#include "core/file.hpp"
#include "driver/error_report.hpp"
#include "driver/invocation.hpp"
#include "driver/notifications.hpp"
#include "driver/recovery.hpp"
#include "driver/remote_use.hpp"
#include "driver/session.hpp"
#include "driver/step_warnings.hpp"
#include "engine/cache/cache_key.hpp"
#include "engine/data/data_input.hpp"
#include "engine/run/refusal.hpp"
#include "model/step_span.hpp"
#include "notify/webhook.hpp"
#include "orchestrators/kubernetes/driver.hpp"
#include "orchestrators/kubernetes/job_requests.hpp"
#include "orchestrators/kubernetes/pod_images.hpp"
#include "orchestrators/owner.hpp"
#include "remote_driver/driver_store.hpp"
#include "remote_driver/run_replica.hpp"
#include "remote_driver/snapshot.hpp"
#include "spec/profile_file.hpp"
#include "vcs/repository.hpp"

namespace pipeline::driver {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr auto start_timeout = 60s;  ///< The driver may still start later.

/// Rejects steps that a driver in a cluster cannot run, because it has no engine and sees no file
/// of this machine.
void refuse_other_orchestrators(Session& session) {
  std::vector<core::Diagnostic> wrong;
  const auto add = [&](const StepSpec& step, std::string message, std::string suggestion) {
    core::Diagnostic diagnostic;
    diagnostic.code = "not-detached";
    diagnostic.message = std::move(message);
    diagnostic.span = model::span_of(step);
    diagnostic.suggestion = std::move(suggestion);
    wrong.push_back(std::move(diagnostic));
  };
  for (const auto* step : session.source.selected_steps()) {
    if (!step->orchestrator.empty() && !orchestrators::traits_of(*step->orchestrator).can_detach)
      add(*step,
          "step '" + step->name + "' runs on '" + *step->orchestrator +
              "', which a driver in the cluster does not have",
          "run without --detach, or let the step run on the cluster");
    for (const auto& input : step->inputs)
      if (input.data && input.data->url.empty())
        add(*step,
            "the input '" + input.name + "' of step '" + step->name + "' is " +
                engine::name_of(*input.data) +
                " of this machine, which a driver in the cluster does not see",
            "run without --detach, or give it a `url`");
  }
  engine::refuse(std::move(wrong), session.pipeline());
}

/// Returns true if other machines may have mounted the folder, too (statfs(2), linux/magic.h): NFS,
/// CIFS, SMB, CephFS, FUSE, Lustre, 9p.
bool is_on_network(const fs::path& folder) {
  constexpr std::array<unsigned long, 8> kinds{0x6969,     0xff534d42, 0xfe534d42, 0x517b,
                                               0x00c36400, 0x65735546, 0x0bd00bd0, 0x01021997};
  struct statfs about {};
  return ::statfs(folder.c_str(), &about) == 0 &&
         std::ranges::find(kinds, static_cast<unsigned long>(about.f_type) & 0xffffffff) !=
             kinds.end();
}

/// Returns the variables that steps take from this process's environment, including secrets: the
/// driver has another environment.
StringMap variables_of(Session& session) {
  StringMap all;
  const auto add = [&](const StepSpec& step, const std::string& name, const std::string& value) {
    const auto [place, is_new] = all.emplace(name, value);
    if (!is_new && place->second != value)
      throw core::InputError("step '" + step.name + "' takes another value of " + name +
                                 " than a step before it or the remote store: a driver in the "
                                 "cluster has one of each",
                             "give one of them another name, or run without --detach");
  };
  if (session.remote_store())
    all = remote_driver::store_variables_of_driver(session.workspace.driver_context(),
                                                   session.remote_store()->store());
  for (const auto* step : session.source.selected_steps()) {
    const auto values = engine::resolve_environment(*step);
    for (const auto& [name, value] : step->environment)
      if (!value) add(*step, name, values.at(name));
    for (const auto& [name, value] : engine::resolve_secrets(*step)) add(*step, name, value);
  }
  const auto& notify = session.pipeline().notify;
  for (std::size_t i = 0; i < notify.size(); ++i)
    if (notify[i].url.empty()) all[variable_of_notification(i)] = notify::address_of(notify[i]);
  return all;
}

std::vector<std::string> pull_secrets_of(Session& session) {
  std::set<std::string> names;
  for (const auto* step : session.source.selected_steps())
    for (const auto& name : step->settings->kubernetes.image_pull_secrets.items())
      names.insert(name);
  return {names.begin(), names.end()};
}

/// Returns the repository of the first step that names a registry; empty if no step does.
std::string repository_of(Session& session) {
  for (const auto* step : session.source.selected_steps())
    if (auto repository = orchestrators::kubernetes::registry_repository(*step);
        !repository.empty())
      return repository;
  return {};
}

/// Describes the driver's Job. The driver's state folder has the same path as on this machine, or
/// belongs to the pod alone.
orchestrators::kubernetes::DriverJob driver_of(Session& session, const DetachedRecord& detached) {
  const auto& options = session.workspace.options();
  orchestrators::kubernetes::DriverJob driver;
  driver.run_id = session.run_id;
  driver.pipeline = session.pipeline().name;
  driver.owner = detached.owner;
  driver.service_account = options.service_account;
  driver.has_own_state = session.remote_store() != nullptr;
  driver.state = driver.has_own_state ? remote_driver::state_of_driver
                                      : fs::weakly_canonical(session.store.folder());
  const auto field = [&](const char* name) {
    return orchestrators::connection_field(options.connection, name);
  };
  if (const auto claim = field("claim"); !claim.empty())
    driver.claim = {claim, fs::weakly_canonical(field("claim_path"))};
  driver.arguments = {"__drive", session.run_id, "--state", driver.state.string()};
  driver.pull_secrets = pull_secrets_of(session);
  driver.settings = orchestrators::kubernetes::driver_settings(session.source.selected_steps());
  driver.patch = core::parse_json(field("driver_job_patch"));
  driver.variables = variables_of(session);
  return driver;
}

/// Copies the files that define the pipeline, the profile, and the steps' code into a new folder.
/// Returns the pipeline's file in it.
fs::path keep_files(Session& session, const fs::path& folder) {
  const auto& profile = session.workspace.options().profile;
  const auto file = session.source.file().lexically_normal();
  std::set<fs::path> files;
  for (const auto& source : session.source.sources()) files.insert(source.lexically_normal());
  // All profiles are left out, and the one in use is added at the end.
  for (const auto& each : spec::profile_files(file.parent_path()))
    files.erase(each.lexically_normal());
  for (const auto* step : session.source.selected_steps())
    for (const auto& each : session.source.resolver().code_of(*step).files)
      files.insert(each.source.lexically_normal());
  // The values of `.env` reach the driver as variables.
  files.erase((session.pipeline().root / code::env_file_name).lexically_normal());
  const remote_driver::Snapshot snapshot(folder, session.pipeline().root.lexically_normal(), files);
  if (!profile.empty())
    snapshot.add(spec::find_profile(profile, file.parent_path()).file,
                 snapshot.path_of(file.parent_path()) / "profiles.yaml");
  return snapshot.path_of(file);
}

/// Copies the lock file beside the copy of the pipeline's file, so that the driver takes the same
/// data.
void keep_lock(Session& session, const fs::path& file) {
  const auto& source = session.lock().path();
  std::error_code error;
  if (fs::exists(source, error))
    fs::copy_file(source, lockfile::lock_beside(file), fs::copy_options::overwrite_existing, error);
  if (error)
    throw core::system_error("cannot copy " + source.string() + " to the run's folder",
                             error.value());
}

/// Records the run's options for its driver.
/// @param file the copy of the pipeline's file
void keep(Session& session, const fs::path& file, const DetachedRecord& detached) {
  Invocation options = session.workspace.options();
  options.file = file;
  if (session.workspace.options().program) options.root = file.parent_path();
  options.template_dir.clear();
  if (auto path = options.connection.find("claim_path"); path != options.connection.end())
    path->second = fs::weakly_canonical(path->second).string();
  keep_invocation(session.store, session.run_id, options);
  keep_detached(session.store, session.run_id, detached);
}

/// Uploads the run for a driver that sees no file of this machine. Returns the key of the uploaded
/// files in the remote store.
async::Task<std::string> upload_run(Session& session, const fs::path& file) {
  const core::TemporaryFolder folder;
  store::RunStore store(folder.path());
  store.import_run(session.store, session.run_id);
  auto options = *invocation_of(store, session.run_id);
  const auto kept = fs::weakly_canonical(session.store.paths().detached_folder(session.run_id));
  options.file = fs::path(remote_driver::state_of_driver) / "detached" / session.run_id /
                 file.lexically_relative(kept);
  if (!options.root.empty()) options.root = options.file.parent_path();
  options.remote_store = remote_driver::store_settings_of_driver(session.remote_store()->store());
  keep_invocation(store, session.run_id, options);
  remote_driver::RunReplica replica(*session.remote_store(), session.run_id);
  auto files = co_await replica.upload_all(store, kept);
  co_return files;
}

void refuse_unreachable_store(Session& session) {
  const auto* remote = session.remote_store();
  if (!remote || blobs::can_presign(remote->url())) return;
  throw core::InputError("a driver in the cluster cannot reach the remote store " + remote->url(),
                         "leave out --detach, or give an `artifact_store` that pods reach, such as "
                         "`s3://team/pipe`");
}

/// Starts one run.
class DetachedStart {
 public:
  DetachedStart(Workspace& workspace, const kubernetes_api::ClusterAccess& access,
                RunObserver& observer)
      : workspace_(workspace),
        access_(access),
        observer_(observer),
        session_(workspace, {}, &detached_),
        client_(workspace.loop(), access) {}

  DetachedRun start();

 private:
  /// Recovers dead runs, lets other machines use the store, and throws the errors that would
  /// otherwise occur only in the cluster.
  void check();
  /// Returns the run's options, with the Lease that its driver will hold.
  engine::EngineOptions options();
  /// Returns the driver's Job, without its image.
  orchestrators::kubernetes::DriverJob driver();
  /// Prepares images and files, and records the run.
  void prepare();
  /// Records the run's options, uploads the run if the driver shares no files, and starts the
  /// driver's Job.
  void hand_to_cluster();
  async::Task<orchestrators::kubernetes::DriverStatus> wait_for_start();
  void await_driver();

  Workspace& workspace_;
  const kubernetes_api::ClusterAccess& access_;
  RunObserver& observer_;
  DetachedRecord detached_;
  Session session_;
  kubernetes_api::Client client_;
  orchestrators::kubernetes::DriverJob driver_;
  orchestrators::kubernetes::DriverStatus status_;
  std::string user_;  ///< UID:GID of the driver.
  fs::path file_;     ///< The copy of the pipeline's file.
};

void DetachedStart::check() {
  detached_.owner = orchestrators::owner_of(session_.store.folder());
  recover_dead_runs(workspace_, session_.store);
  if (!session_.remote_store() &&
      (workspace_.options().connection.contains("claim") || is_on_network(session_.store.folder())))
    session_.store.share();  // The driver's pod opens the same database.
  refuse_other_orchestrators(session_);
  refuse_unreachable_store(session_);
  const auto& account = workspace_.options().service_account;
  for (const auto& notice :
       workspace_.await(orchestrators::kubernetes::check_driver(client_, account)))
    workspace_.note("note: " + notice);
  user_ = workspace_.await(
      orchestrators::kubernetes::user_of_pods(client_, session_.remote_store() != nullptr));
  workspace_.await(orchestrators::kubernetes::try_out_driver(client_, driver()));
}

engine::EngineOptions DetachedStart::options() {
  auto options = session_.run_options();
  options.driver.lease = {access_.context, access_.name_space,
                          orchestrators::kubernetes::driver_name(session_.run_id)};
  if (const auto state = vcs::source_state(session_.source.file().parent_path())) {
    options.git_commit = state->commit;
    options.git_dirty = state->dirty;
  }
  return options;
}

orchestrators::kubernetes::DriverJob DetachedStart::driver() {
  auto driver = driver_of(session_, detached_);
  driver.user = user_;
  return driver;
}

void DetachedStart::prepare() {
  auto options = this->options();
  require_engine(session_);
  report_step_warnings(session_, observer_);
  const auto folder = session_.store.paths().detached_folder(session_.run_id);
  try {
    driver_ = driver();
    file_ = keep_files(session_, fs::weakly_canonical(folder));
    driver_.image = workspace_.await(orchestrators::kubernetes::make_driver_image(
        workspace_.loop(), repository_of(session_), session_.run_id, observer_.events(),
        observer_.cancel()));
    options.machine = session_.machine_in_use();
    workspace_.await(engine::prepare_detached(session_.services(), observer_.events(),
                                              observer_.cancel(), options));
    keep_lock(session_, file_);
  } catch (...) {
    core::remove_tree(folder);
    if (observer_.cancel().level() == core::StopLevel::none) throw;
    observer_.end();
    workspace_.note("stopped before the run began");
    throw Interrupted();
  }
}

void DetachedStart::hand_to_cluster() {
  try {
    keep(session_, file_, detached_);
    const RemoteUse use(session_);
    if (session_.remote_store())
      driver_.variables[remote_driver::files_variable] =
          workspace_.await(upload_run(session_, file_));
    workspace_.await(orchestrators::kubernetes::start_driver(client_, std::move(driver_)));
  } catch (...) {
    recover_dead_runs(workspace_, session_.store, {}, session_.run_id);
    throw;
  }
}

/// Waits until the driver has started or cannot start, or until start_timeout.
async::Task<orchestrators::kubernetes::DriverStatus> DetachedStart::wait_for_start() {
  const auto until = std::chrono::steady_clock::now() + start_timeout;
  std::string reported;
  for (;;) {
    auto status = co_await orchestrators::kubernetes::driver_status_of(
        client_, orchestrators::kubernetes::driver_name(session_.run_id));
    const auto run = session_.store.runs().find(session_.run_id);
    const bool has_ended = run && run->status != RunStatus::running;
    const bool is_decided = has_ended || !status.holder.empty() || !status.failure.empty() ||
                            status.will_not_start || !status.goes_on;
    if (is_decided || std::chrono::steady_clock::now() > until ||
        observer_.cancel().level() != core::StopLevel::none)
      co_return status;
    if (!status.waits_for.empty() && status.waits_for != reported) {
      reported = status.waits_for;
      observer_.say("the driver waits: " + reported);
    }
    asio::steady_timer pause(client_.loop(), 250ms);
    co_await pause.async_wait(asio::use_awaitable);
  }
}

/// Waits for the driver. If it cannot start, marks the run as failed with the reason.
void DetachedStart::await_driver() {
  status_ = workspace_.await(wait_for_start());
  if (session_.remote_store())  // The run may have ended.
    workspace_.await(remote_driver::RunReplica(*session_.remote_store(), session_.run_id)
                         .download(session_.store));
  const auto run = session_.store.runs().find(session_.run_id);
  if (!status_.holder.empty() || (run && run->status != RunStatus::running)) return;
  if (status_.failure.empty() && !status_.will_not_start && status_.goes_on) return;
  workspace_.await(orchestrators::kubernetes::remove_driver(
      client_, orchestrators::kubernetes::driver_name(session_.run_id)));
  recover_dead_runs(workspace_, session_.store, {}, session_.run_id);
  const std::string reason =
      status_.failure.empty() ? status_.will_not_start ? status_.waits_for : "its Job was deleted"
                              : status_.failure;
  throw core::EnvironmentError("the driver of run " + session_.run_id + " did not start: " + reason,
                               {"`" + workspace_.options().name + " resume " + session_.run_id +
                                "` continues the run from here"});
}

DetachedRun DetachedStart::start() {
  check();
  observer_.begin(workspace_.loop());
  const auto forwarded = workspace_.run_stopped_by(observer_.cancel());
  prepare();
  hand_to_cluster();
  await_driver();
  observer_.end();
  const auto run = session_.store.runs().find(session_.run_id);
  return {.run = session_.run_id,
          .state = session_.store.folder(),
          .status = run->status,
          .lease = run->driver.lease,
          .holder = status_.holder,
          .waits_for = status_.waits_for};
}

}  // namespace

DetachedRun start_detached(const Workspace& workspace, RunObserver& observer) {
  auto options = workspace.options();
  const auto access = kubernetes_api::find_cluster(cluster_of(options));
  // The context in which the run is queried later, even if another one is current then.
  options.connection["context"] = access.context;
  options.connection["namespace"] = access.name_space;
  Workspace in_cluster(std::move(options), workspace.notes());
  return DetachedStart(in_cluster, access, observer).start();
}

}  // namespace pipeline::driver
