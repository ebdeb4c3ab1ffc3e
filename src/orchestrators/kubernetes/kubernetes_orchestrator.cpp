#include "orchestrators/kubernetes/kubernetes_orchestrator.hpp"

#include <map>
#include <optional>
#include <set>

#include "agent/programs.hpp"
#include "core/diagnostic.hpp"
#include "core/digest.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/scope_guard.hpp"
#include "core/user_environment.hpp"
#include "kubernetes_api/json.hpp"
#include "net/url.hpp"
#include "orchestrators/agent_reports.hpp"
#include "orchestrators/kubernetes/gang_job.hpp"
#include "orchestrators/kubernetes/gang_pods.hpp"
#include "orchestrators/kubernetes/job_requests.hpp"
#include "orchestrators/kubernetes/job_run.hpp"
#include "orchestrators/kubernetes/node_contents.hpp"
#include "orchestrators/kubernetes/pod_group.hpp"
#include "orchestrators/kubernetes/pod_images.hpp"
#include "orchestrators/kubernetes/pod_shell.hpp"
#include "orchestrators/kubernetes/pod_staging.hpp"
#include "orchestrators/kubernetes/preflight.hpp"
#include "orchestrators/owner.hpp"
#include "orchestrators/shared_file.hpp"
#include "orchestrators/usage/agent_waits.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

using nlohmann::json;

class KubernetesOrchestrator : public Orchestrator {
 public:
  KubernetesOrchestrator(asio::io_context& loop, OrchestratorOptions options)
      : loop_(loop),
        options_(std::move(options)),
        images_(options_.images && !options_.images->empty() ? locked_images(*options_.images)
                                                             : built_images(loop, options_)),
        owner_(options_.owner) {
    capabilities_.name = "kubernetes";
    capabilities_.traits = entry_of("kubernetes").traits;
    capabilities_.gpus = capabilities_.memory_limits = capabilities_.cpu_limits = true;
    capabilities_.gpus_of_this_machine = capabilities_.on_this_machine = false;
    capabilities_.infrastructure_retries = 3;
    capabilities_.outlives_driver = capabilities_.shells = capabilities_.reports_begin =
        capabilities_.services = true;
    capabilities_.fetches_addresses = capabilities_.takes_elsewhere = stages_files();
  }

  const Capabilities& capabilities() const override { return capabilities_; }

  async::Task<Environment> environment(const StepSpec& step) override {
    auto environment = co_await images_->environment(step);
    add_notice(step, environment);
    co_return environment;
  }

  async::Task<bool> matches(std::string fingerprint) override {
    return images_->matches(std::move(fingerprint));
  }

  async::Task<std::vector<core::Diagnostic>> check(
      const std::vector<const StepSpec*>& steps) override {
    require_files();
    for (const auto* step : steps) require_shared_files(*step);
    ExampleJobOptions options;
    options.state = std::filesystem::absolute(options_.state);
    options.claim = claim();
    options.has_stager = files() != nullptr;
    options.node_cache = node_cache();
    // This driver has started no Job yet, so a stop of the run may end all requests.
    client().stop_calls_by(options_.run);
    const core::ScopeGuard lifted([this] { client().stop_calls_by(nullptr); });
    options.user = co_await user();
    auto found = co_await check_steps(client(), steps, std::move(options));
    if (files()) co_await files()->probe();
    gpu_models_ = std::move(found.gpu_models);
    co_return std::move(found.obstacles);
  }

  async::Task<std::string> packages(const StepSpec& step) override {
    return images_->packages(step);
  }

  async::Task<> lock(const StepSpec& step, EventSink& events, core::CancelSource& cancel) override {
    return images_->lock(step, events, cancel);
  }

  async::Task<Environment> prepare(const StepSpec& step, EventSink& events,
                                   core::CancelSource& cancel) override {
    auto environment = co_await images_->prepare(step, events, cancel);
    add_notice(step, environment);
    co_return environment;
  }

  async::Task<AttemptResult> run(const Attempt& attempt) override {
    const auto image = co_await images_->image_of(attempt.step);
    if (attempt.shell && image.id != attempt.shell->image)
      throw core::EnvironmentError(
          "the image of '" + attempt.step.name +
              "' has changed since the attempt: " + image.reference,
          {"undo the change of the step's settings; or run the step again, and open a shell in the "
           "new run"});
    JobOptions options;
    options.image = image.reference;
    options.pull = image.pull;
    options.user = co_await user();
    options.owner = owner();
    options.claim = claim();
    options.has_stager = files() != nullptr;
    options.node_cache = node_cache();
    options.agent_image = image.agent;
    if (image.agent.empty()) options.agent = agent();
    options.program = image.program;
    options.services = image.services;
    options.gpu_models = gpu_models_;
    // A cache in a claim (`pvc/CLAIM`, not a path on the node) is the same on all nodes, so no node
    // is preferred.
    const bool nodes_have_caches = options.has_stager && options.node_cache.path.starts_with('/');
    if (nodes_have_caches) options.preferred_nodes = node_contents_.holders(attempt);
    if (attempt.process) options.gang = &gangs_.at(gang_key(attempt));
    if (attempt.process && attempt.process->addresses->nodes_share_description)
      options.gang_job = &gang_jobs_.at(gang_key(attempt));
    const auto selector =
        attempt.shell ? shell_selector(attempt.shell->id) : run_selector(attempt.run_id, owner());
    auto& informer = informers_.try_emplace(selector, client(), selector).first->second;
    co_await informer.ready(attempt.io.cancel);
    const core::ScopeGuard has_ended([this, &attempt] {
      reports_.forget(attempt);
      // The gang will release all that the attempt holds, and start over with connect_nodes().
      if (attempt.process && attempt.process->addresses->gives_back)
        given_back_[gang_key(attempt)] = attempt.process->addresses->tries;
    });
    const JobContext context{client(), informer, removals_, reports_.of(attempt), files()};
    auto result = co_await run_job(context, attempt, options);
    if (nodes_have_caches && result.exit_code) node_contents_.note(attempt, result.node);
    result.image = image.id;
    co_return result;
  }

  async::Task<std::vector<std::string>> waits_of(const Attempt& attempt) override {
    const auto waits = co_await reports_.waits_of(attempt);
    co_return usage::read_agent_waits(waits);
  }

  async::Task<std::optional<core::Activity>> activity_of(const Attempt& attempt) override {
    co_return reports_.activity_of(attempt);
  }

  async::Task<std::optional<int>> join(RunningProcess process, ShellRequest shell) override {
    return join_pod(client(), owner(), std::move(process), std::move(shell));
  }
  async::Task<std::optional<std::string>> ask(RunningProcess process,
                                              std::vector<std::string> words) override {
    return ask_pod(client(), owner(), std::move(process), std::move(words));
  }

  /// Returns marks, `{node0}`, in place of addresses, because a pod gets its address once it is on
  /// a node. The driver then sends the addresses to the agents, which replace the marks.
  async::Task<NodeAddresses> connect_nodes(const Attempt& attempt, unsigned nodes,
                                           unsigned /*ranks*/) override {
    const auto key = gang_key(attempt);
    NodeAddresses made;
    for (unsigned node = 0; node < nodes; ++node)
      made.nodes.push_back("{node" + std::to_string(node) + "}");
    made.port = node_port;
    made.has_agents = true;
    made.gpus = settings::gpu_request(attempt.step.settings->resources).count;
    LeftGang left;
    if (const auto earlier = given_back_.extract(key))
      left.tries = earlier.mapped() + 1;
    else if (attempt.joins)
      left = co_await left_gang(client(), labels_of(attempt));
    made.tries = left.tries;
    const auto pod_group_version = co_await pod_group_version_for(attempt.step);
    if (!left.has_one_job)
      left.has_one_job = co_await gets_one_job(attempt.step, pod_group_version);
    made.nodes_share_description = *left.has_one_job;
    gangs_.insert_or_assign(key, GangPods(nodes, patience_for(attempt.step)));
    gang_jobs_.erase(key);
    gang_jobs_.try_emplace(key, loop_.get_executor(), pod_group_version);
    co_return made;
  }

  async::Task<> disconnect_nodes(const Attempt& attempt) override {
    gangs_.erase(gang_key(attempt));
    gang_jobs_.erase(gang_key(attempt));
    co_return;
  }

  async::Task<> settle() override { return removals_.settle(); }

  async::Task<> discard_attempt(const std::string& run_id, const std::string& step,
                                unsigned number) override {
    const auto labels = attempt_labels(run_id, step, number, owner());
    const auto jobs = co_await jobs_with(client(), labels);
    for (const auto& job : kubernetes_api::list_at(jobs, "/items"))
      co_await delete_job(client(), kubernetes_api::text_at(job, "/metadata/name"));
  }

  async::Task<> remove_orphans(const std::function<bool(const std::string&)>& is_alive) override {
    const auto selector = net::url_encode("pipe.run,pipe.state=" + owner());
    const auto jobs =
        co_await client().get("list the Jobs of earlier runs",
                              client().path("batch/v1", "jobs") + "?labelSelector=" + selector);
    std::set<std::string> runs;
    if (!options_.run_id.empty() && !is_alive(options_.run_id)) runs.insert(options_.run_id);
    std::vector<json> left;
    for (const auto& job : kubernetes_api::list_at(jobs, "/items")) {
      const auto run = kubernetes_api::text_at(job, "/metadata/labels/pipe.run");
      if (is_alive(run)) continue;
      runs.insert(run);
      left.push_back(kubernetes_api::at(job, "/metadata"));
    }
    // Jobs are deleted last: if this driver is killed here, the next one finds the runs by them.
    if (!runs.empty() && files())
      for (const auto& run : runs) co_await files()->forget_run(run);
    for (const auto& job : left)
      co_await delete_job(client(), kubernetes_api::text_at(job, "/name"),
                          kubernetes_api::text_at(job, "/uid"));
  }

 private:
  static std::string gang_key(const AttemptSpec& attempt) {
    return job_name(attempt.run_id, attempt.step.name, attempt.number);
  }

  StringMap labels_of(const AttemptSpec& attempt) {
    return attempt_labels(attempt.run_id, attempt.step.name, attempt.number, owner());
  }

  /// Returns the API version of the PodGroup that the step can have; empty: none.
  async::Task<std::string> pod_group_version_for(const StepSpec& step) {
    if (!can_have_pod_group(step)) co_return std::string();
    if (!pod_group_version_) pod_group_version_ = co_await find_pod_group_version(client());
    co_return *pod_group_version_;
  }
  /// Returns whether all nodes of the step get one Job, so that a queue or a PodGroup starts all
  /// pods at once.
  async::Task<bool> gets_one_job(const StepSpec& step, std::string pod_group_version) {
    if (!step.settings->kubernetes.queue_name && pod_group_version.empty()) co_return false;
    const auto version = co_await client().version();
    co_return has_indexed_jobs(version);
  }

  SharedClaim claim() const {
    return {connection_field(options_.connection, "claim"),
            connection_field(options_.connection, "claim_path")};
  }

  NodeCache node_cache() const {
    return {connection_field(options_.connection, "node_cache"),
            connection_field(options_.connection, "node_cache_budget")};
  }

  static void add_notice(const StepSpec& step, Environment& environment) {
    if (const auto names = unhonoured(step); !names.empty())
      environment.notices.push_back(names + ": a cluster does not honour that");
  }

  /// Returns true if pods get their files by URLs of the remote store.
  bool stages_files() const {
    return options_.artifacts && blobs::can_presign(options_.artifacts->url());
  }
  /// Throws InputError if pods neither share this machine's files nor reach the remote store.
  void require_files() const {
    if (!options_.artifacts || stages_files() ||
        !connection_field(options_.connection, "claim").empty())
      return;
    throw core::InputError(
        "pods cannot reach the remote store " + options_.artifacts->url() +
            ": it gives no URLs by which they get their files",
        "name a `claim` beside it, through which pods and this machine share files, or give an "
        "`artifact_store` that pods reach, such as `s3://team/pipe`");
  }
  /// Throws InputError for a step whose pods would all write to the same places of a remote store.
  void require_shared_files(const StepSpec& step) const {
    if (step.nodes && stages_files())
      throw core::InputError(
          "step '" + step.name +
              "' has `nodes`, and with the profile's `artifact_store` all of its pods would upload "
              "outputs to the same place",
          "name a `claim` in place of the `artifact_store`, through which pods and this machine "
          "share files (docs/kubernetes.md)");
  }
  /// Returns null if pods see this machine's files.
  PodStaging* files() {
    if (!files_ && stages_files()) files_.emplace(*options_.artifacts);
    return files_ ? &*files_ : nullptr;
  }

  kubernetes_api::Client& client() {
    if (!client_)
      client_.emplace(loop_,
                      kubernetes_api::find_cluster(
                          {.context = connection_field(options_.connection, "context"),
                           .name_space = connection_field(options_.connection, "namespace")}));
    return *client_;
  }

  async::Task<std::string> user() {
    if (user_.empty()) user_ = co_await user_of_pods(client(), files() != nullptr);
    co_return user_;
  }

  const std::string& owner() {
    if (owner_.empty()) owner_ = owner_of(options_.state);
    return owner_;
  }

  /// Returns the agent's file in the state folder, which the runs share and pods see.
  const std::filesystem::path& agent() {
    if (!agent_.empty()) return agent_;
    const auto program = agent::agent_program();
    const auto file = std::filesystem::absolute(options_.state) / "kubernetes" /
                      ("agent-" + core::sha256(program).hex().substr(0, 16));
    write_shared_file(file, program, program_mode);
    return agent_ = file;
  }

  asio::io_context& loop_;
  OrchestratorOptions options_;
  std::unique_ptr<PodImages> images_;
  Capabilities capabilities_;
  /// Created when the cluster is needed; a plan does not need it.
  std::optional<kubernetes_api::Client> client_;
  std::optional<PodStaging> files_;  ///< Created when needed.
  /// Keyed by selector; there is one, except in tests.
  std::map<std::string, JobInformer> informers_;
  Removals removals_;
  AgentReports reports_;
  std::string owner_, user_;  ///< Owner of the Jobs, user of the pods; determined when needed.
  std::filesystem::path agent_;
  std::optional<std::string> pod_group_version_;  ///< The result of find_pod_group_version().
  std::map<std::string, GangPods> gangs_;         ///< Running attempts with nodes, by gang_key().
  std::map<std::string, GangJob>
      gang_jobs_;  ///< Keyed by gang_key(); used if NodeAddresses::nodes_share_description.
  /// NodeAddresses::tries of gangs that start over (NodeAddresses::gives_back), by gang_key().
  std::map<std::string, unsigned> given_back_;
  NodeContents node_contents_;  ///< From the attempts that have ended.
  GpuModels gpu_models_;        ///< GPU models of the cluster's nodes, if known.
};

}  // namespace

}  // namespace pipeline::orchestrators::kubernetes

namespace pipeline::orchestrators {

std::unique_ptr<Orchestrator> make_kubernetes_orchestrator(asio::io_context& loop,
                                                           OrchestratorOptions options) {
  return std::make_unique<kubernetes::KubernetesOrchestrator>(loop, std::move(options));
}

}  // namespace pipeline::orchestrators
