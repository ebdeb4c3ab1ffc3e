// `pipe run -o kubernetes --detach`: does the work that needs this machine, then a driver in the
// cluster continues the run.
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <set>

#include "cli/commands.hpp"
#include "cli/display.hpp"
#include "cli/gpu_warnings.hpp"
#include "cli/notifications.hpp"
#include "cli/session.hpp"
#include "code/code_tree.hpp"
#include "core/diagnostic.hpp"
#include "core/file.hpp"
#include "core/identifier.hpp"
#include "core/user_environment.hpp"
#include "detached/driver_bucket.hpp"
#include "detached/invocation.hpp"
#include "detached/run_replica.hpp"
#include "detached/snapshot.hpp"
#include "engine/cache/cache_key.hpp"
#include "engine/data/data_input.hpp"
#include "engine/run/refusal.hpp"
#include "notify/webhook.hpp"
#include "orchestrators/kubernetes/driver.hpp"
#include "orchestrators/kubernetes/pod_images.hpp"
#include "orchestrators/owner.hpp"
#include "spec/profile_file.hpp"
#include "vcs/repository.hpp"

namespace pipeline::cli {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr auto retry_policy = 60s;  // Time limit for the driver's start; it may still start later.

/// Rejects steps that a driver in a cluster cannot run, because it has no engine and is another
/// machine.
void refuse_other_places(Session& session) {
  std::vector<core::Diagnostic> wrong;
  const auto add = [&](const StepSpec& step, std::string message, std::string suggestion) {
    core::Diagnostic diagnostic;
    diagnostic.code = "not-detached";
    diagnostic.message = std::move(message);
    diagnostic.span = core::Span{step.line, 0, 1, step.file};
    diagnostic.suggestion = std::move(suggestion);
    wrong.push_back(std::move(diagnostic));
  };
  for (const auto* step : session.source.selected_steps()) {
    if (!step->orchestrator.empty() && step->orchestrator != "kubernetes")
      add(*step,
          "step '" + step->name + "' runs on '" + step->orchestrator +
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
    all = detached::store_variables_of_driver(session.context.driver_context(),
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

std::string repository_of(Session& session) {
  for (const auto* step : session.source.selected_steps())
    if (auto repository = orchestrators::kubernetes::registry_repository(*step);
        !repository.empty())
      return repository;
  return {};
}

/// Describes the driver's Job. Its state folder has the same path as here, without links, or is the
/// pod's own.
orchestrators::kubernetes::DriverJob driver_of(Session& session,
                                               const detached::DetachedRecord& detached,
                                               orchestrators::kubernetes::DriverImage image) {
  const auto& options = session.context.options();
  orchestrators::kubernetes::DriverJob driver;
  driver.run_id = session.run_id;
  driver.pipeline = session.pipeline().name;
  driver.owner = detached.owner;
  driver.service_account = options.service_account;
  driver.user = core::user_and_group();
  driver.image = std::move(image);
  driver.has_own_state = session.remote_store() != nullptr;
  driver.state = driver.has_own_state ? detached::state_of_driver
                                      : fs::weakly_canonical(session.store.folder());
  if (!options.claim.empty())
    driver.claim = {options.claim, fs::weakly_canonical(options.claim_path)};
  driver.arguments = {"__drive", session.run_id, "--state", driver.state.string()};
  driver.pull_secrets = pull_secrets_of(session);
  driver.variables = variables_of(session);
  return driver;
}

/// Copies the files that define the pipeline, the profile, and the steps' code into a new folder.
/// Returns the pipeline's file in it.
fs::path keep_files(Session& session, const fs::path& folder) {
  const auto& profile = session.context.options().profile;
  const auto file = session.source.file().lexically_normal();
  std::set<fs::path> files;
  for (const auto& source : session.source.sources()) files.insert(source.lexically_normal());
  for (const auto& each : spec::profile_files(file.parent_path()))
    files.erase(each.lexically_normal());
  for (const auto* step : session.source.selected_steps())
    for (const auto& each : session.source.resolver().code_of(*step).files)
      files.insert(each.source.lexically_normal());
  files.erase((session.pipeline().root / code::env_file_name).lexically_normal());
  const detached::Snapshot snapshot(folder, session.pipeline().root.lexically_normal(), files);
  if (!profile.empty())
    snapshot.add(spec::find_profile(profile, file.parent_path()).file,
                 snapshot.placed(file.parent_path()) / "profiles.yaml");
  return snapshot.placed(file);
}

/// Copies the lock file beside the copy of the pipeline's file: the driver takes the same data.
void keep_lock(Session& session, const fs::path& file) {
  const auto& source = session.lock().path();
  std::error_code error;
  if (fs::exists(source, error))
    fs::copy_file(source, lockfile::lock_beside(file), fs::copy_options::overwrite_existing, error);
  if (error)
    throw core::system_error("cannot copy " + source.string() + " to the run's folder",
                             error.value());
}

void keep(Session& session, const fs::path& file, const detached::DetachedRecord& detached) {
  detached::Invocation options = session.context.options();
  options.file = file;
  if (session.context.options().program) options.root = file.parent_path();
  options.template_dir.clear();
  if (!options.claim_path.empty()) options.claim_path = fs::weakly_canonical(options.claim_path);
  detached::keep_invocation(session.store, session.run_id, options);
  detached::keep_detached(session.store, session.run_id, detached);
}

/// Uploads the run for a driver that sees no file of this machine. Returns the key of its files.
async::Task<std::string> upload_run(Session& session, const fs::path& file) {
  const core::TemporaryFolder folder;
  store::RunStore store(folder.path());
  store.import_run(session.store, session.run_id);
  auto options = *detached::invocation_of(store, session.run_id);
  const auto kept = fs::weakly_canonical(session.store.paths().detached_folder(session.run_id));
  options.file = fs::path(detached::state_of_driver) / "detached" / session.run_id /
                 file.lexically_relative(kept);
  if (!options.root.empty()) options.root = options.file.parent_path();
  options.remote_store = detached::store_settings_of_driver(session.remote_store()->store());
  detached::keep_invocation(store, session.run_id, options);
  detached::RunReplica replica(*session.remote_store(), session.run_id);
  auto files = co_await replica.upload_all(store, kept);
  co_return files;
}

/// Waits until the driver has started, or will not start, or the time is up.
async::Task<orchestrators::kubernetes::DriverStatus> begun(kubernetes_api::Client& client,
                                                           Session& session, Display& display) {
  const auto until = std::chrono::steady_clock::now() + retry_policy;
  std::string reported;
  for (;;) {
    auto status = co_await orchestrators::kubernetes::driver_status_of(
        client, orchestrators::kubernetes::driver_name(session.run_id));
    const auto run = session.store.runs().find(session.run_id);
    const bool has_ended = run && run->status != RunStatus::running;
    const bool is_decided = has_ended || !status.holder.empty() || !status.failure.empty() ||
                            status.hopeless || !status.goes_on;
    if (is_decided || std::chrono::steady_clock::now() > until ||
        display.cancel().level() != core::StopLevel::none)
      co_return status;
    if (!status.waits_for.empty() && status.waits_for != reported)
      display.progress().say("the driver waits: " + (reported = status.waits_for));
    asio::steady_timer pause(client.loop(), 250ms);
    co_await pause.async_wait(asio::use_awaitable);
  }
}

/// Waits for the driver. If it cannot start, marks the run as failed with the reason.
void await_driver(kubernetes_api::Client& client, Session& session, Display& display,
                  orchestrators::kubernetes::DriverStatus& status) {
  auto& context = session.context;
  status = context.await(begun(client, session, display));
  if (session.remote_store())
    context.await(detached::RunReplica(*session.remote_store(), session.run_id)
                      .bring(session.store));  // The run may have ended.
  const auto run = session.store.runs().find(session.run_id);
  if (!status.holder.empty() || (run && run->status != RunStatus::running)) return;
  if (status.failure.empty() && !status.hopeless && status.goes_on) return;
  context.await(orchestrators::kubernetes::remove_driver(
      client, orchestrators::kubernetes::driver_name(session.run_id)));
  recover_dead_runs(context, session.store, {}, session.run_id);
  const std::string why = status.failure.empty()
                              ? status.hopeless ? status.waits_for : "its Job was deleted"
                              : status.failure;
  throw core::EnvironmentError("the driver of run " + session.run_id + " could not begin: " + why,
                               {"`" + context.options().name + " resume " + session.run_id +
                                "` continues the run from here"});
}

void tell(Session& session, const orchestrators::kubernetes::DriverStatus& status) {
  auto& context = session.context;
  const auto run = session.store.runs().find(session.run_id);
  const auto& lease = run->driver.lease;
  if (context.options().json) {
    const nlohmann::json event{{"event", "detached"},
                               {"run", session.run_id},
                               {"status", to_string(run->status)},
                               {"driver",
                                {{"job", lease.name},
                                 {"namespace", lease.name_space},
                                 {"context", lease.context},
                                 {"holder", status.holder}}}};
    return context.print(event.dump() + "\n");
  }
  const auto state = context.state_option(session.store.folder());
  const auto command = [&](const char* words) {
    return context.options().name + " " + words + " " + session.run_id;
  };
  std::string text = "run " + session.run_id + " is driven by the Job " + lease.name +
                     " of the namespace " + lease.name_space;
  if (run->status != RunStatus::running)
    text += ", and has ended: " + std::string(to_string(run->status));
  else if (status.holder.empty())
    text += ", which has not begun yet" + (status.waits_for.empty() ? "" : ": " + status.waits_for);
  text += "\n  " + command("attach") + state + "\n  " + command("logs") + " -f" + state + "\n  " +
          command("cancel") + state + "\n";
  context.print(text);
}

void refuse_unreachable_store(Session& session) {
  const auto* remote = session.remote_store();
  if (!remote || blobs::can_presign(remote->url())) return;
  throw core::InputError("a driver in the cluster cannot reach the remote store " + remote->url(),
                         "leave out --detach, or give an `artifact_store` that pods reach, such as "
                         "`s3://team/pipe`");
}

core::ExitCode detach(Context& context, const kubernetes_api::ClusterAccess& access) {
  detached::DetachedRecord detached;
  Session session(context, {}, &detached);
  detached.owner = orchestrators::owner_of(session.store.folder());
  recover_dead_runs(context, session.store);
  if (!session.remote_store() &&
      (!context.options().claim.empty() || is_on_network(session.store.folder())))
    session.store.share();
  refuse_other_places(session);
  refuse_unreachable_store(session);
  kubernetes_api::Client client(context.loop(), access);
  for (const auto& notice : context.await(
           orchestrators::kubernetes::check_driver(client, context.options().service_account)))
    context.note("note: " + notice);

  auto options = session.run_options();
  options.driver.lease = {access.context, access.name_space,
                          orchestrators::kubernetes::driver_name(session.run_id)};
  if (const auto state = vcs::source_state(session.source.file().parent_path())) {
    options.git_commit = state->commit;
    options.git_dirty = state->dirty;
  }
  options.is_task = session.source.is_task();

  Display display(context);
  require_engine(session);
  report_gpu_warnings(session, display.progress());
  const auto folder = session.store.paths().detached_folder(session.run_id);
  orchestrators::kubernetes::DriverJob driver;
  fs::path file;
  try {
    driver = driver_of(session, detached, {});
    file = keep_files(session, fs::weakly_canonical(folder));
    driver.image = context.await(orchestrators::kubernetes::make_driver_image(
        context.loop(), repository_of(session), session.run_id, display.progress(),
        display.cancel()));
    options.machine = session.machine_in_use();
    context.await(engine::prepare_detached(session.services(), display.progress(), display.cancel(),
                                           options));
    keep_lock(session, file);
  } catch (...) {
    core::remove_tree(folder);
    if (display.cancel().level() == core::StopLevel::none) throw;
    display.close();
    context.note("stopped before the run began");
    return core::ExitCode::interrupted;
  }
  orchestrators::kubernetes::DriverStatus status;
  try {
    keep(session, file, detached);
    if (session.remote_store())
      driver.variables[detached::files_variable] = context.await(upload_run(session, file));
    context.await(orchestrators::kubernetes::start_driver(client, std::move(driver)));
  } catch (...) {
    recover_dead_runs(context, session.store, {}, session.run_id);
    throw;
  }
  await_driver(client, session, display, status);
  display.close();
  tell(session, status);
  return core::ExitCode::ok;
}

}  // namespace

core::ExitCode detach_command(Context& given) {
  auto options = given.options();
  const auto access =
      kubernetes_api::find_cluster({.context = options.context, .name_space = options.name_space});
  options.context = access.context;  // The context in which the run is queried later, even if
                                     // another one is current then.
  options.name_space = access.name_space;
  Context context(std::move(options));
  return detach(context, access);
}

}  // namespace pipeline::cli
