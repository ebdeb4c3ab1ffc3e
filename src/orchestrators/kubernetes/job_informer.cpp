#include "orchestrators/kubernetes/job_informer.hpp"

#include <charconv>

#include "async/sleep.hpp"
#include "kubernetes_api/json.hpp"
#include "kubernetes_api/watch.hpp"
#include "orchestrators/kubernetes/preflight.hpp"

namespace pipeline::orchestrators::kubernetes {

using kubernetes_api::Change;
using kubernetes_api::text_at;

std::optional<unsigned> index_of(const nlohmann::json& pod) {
  const auto text = text_at(pod, "/metadata/annotations/batch.kubernetes.io~1job-completion-index");
  unsigned index = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return index;
}

struct JobInformer::State {
  State(kubernetes_api::Client& cluster, std::string label_selector)
      : client(cluster), selector(std::move(label_selector)) {}

  void take_job(const Change& change) {
    const auto name = text_at(change.object, "/metadata/name");
    for (auto found = entries.lower_bound({name});
         found != entries.end() && found->first.job == name; ++found) {
      auto& entry = found->second;
      if (change.kind == Change::Kind::deleted)
        entry.job_gone = true;
      else
        entry.job = change.object;
      if (entry.on_change) entry.on_change();
    }
  }
  void take_pod(const Change& change) {
    const auto name = text_at(change.object, "/metadata/name"),
               uid = text_at(change.object, "/metadata/uid");
    if (change.kind == Change::Kind::added)
      jobs_of_pods[name] = {text_at(change.object, "/metadata/labels/job-name"),
                            index_of(change.object)};
    const auto job = jobs_of_pods.find(name);
    if (job == jobs_of_pods.end()) return;
    const auto found = entries.find(job->second);
    if (change.kind == Change::Kind::deleted) jobs_of_pods.erase(job);
    if (found == entries.end()) return;
    auto& entry = found->second;
    if (!entry.pod.is_null() && text_at(entry.pod, "/metadata/uid") != uid) return;
    if (change.kind == Change::Kind::deleted) {
      entry.pod_gone = true;
      if (change.object.contains("status"))
        entry.pod = std::move(change.object);  // The last status before its deletion.
    } else {
      entry.pod = std::move(change.object);
    }
    if (entry.on_change) entry.on_change();
  }
  /// Records that a watch has ended, and wakes all who wait for changes.
  void fail(std::exception_ptr why) {
    if (!error) error = std::move(why);
    listed.stop(core::StopLevel::immediate);
    for (auto& [name, entry] : entries)
      if (entry.on_change) entry.on_change();
  }
  void note_list() {
    if (++lists == 2) listed.stop(core::StopLevel::immediate);
  }

  kubernetes_api::Client& client;
  const std::string selector;
  core::CancelSource stop;
  core::CancelSource listed;  ///< Is stopped once both lists are known, or a watch has failed.
  int lists = 0;              ///< How many of the two lists are known.
  bool begun = false;
  std::exception_ptr error;
  nlohmann::json nodes;
  std::chrono::steady_clock::time_point nodes_expire;
  std::map<PodOfJob, Entry> entries;
  std::map<std::string, PodOfJob> jobs_of_pods;  ///< Keyed by the pod's name.
};

namespace {

template <class State>
async::Task<> keep_watching(std::shared_ptr<State> state, std::string path,
                            void (State::*take)(const Change&)) {
  kubernetes_api::Watch watch(
      state->client, std::move(path), state->selector,
      [self = state.get(), take](const Change& change) { (self->*take)(change); });
  const std::function<void()> on_listed = [self = state.get()] { self->note_list(); };
  try {
    co_await watch.run(state->stop, on_listed);
  } catch (...) {
    state->fail(std::current_exception());
  }
}

}  // namespace

JobInformer::JobInformer(kubernetes_api::Client& client, std::string selector)
    : state_(std::make_shared<State>(client, std::move(selector))) {}

JobInformer::~JobInformer() { state_->stop.stop(core::StopLevel::immediate); }

async::Task<> JobInformer::ready(core::CancelSource& stop) {
  const auto state = state_;
  if (!std::exchange(state->begun, true)) {
    const auto executor = co_await asio::this_coro::executor;
    asio::co_spawn(executor,
                   keep_watching(state, state->client.path("batch/v1", "jobs"), &State::take_job),
                   asio::detached);
    asio::co_spawn(executor, keep_watching(state, state->client.path("", "pods"), &State::take_pod),
                   asio::detached);
  }
  core::CancelSource either;
  const auto pass_on = [&either](core::StopLevel level) { either.stop(level); };
  const core::CancelSource::Listener by_list(state->listed, pass_on), by_stop(stop, pass_on);
  while (either.level() == core::StopLevel::none)
    co_await async::sleep(std::chrono::hours(1), &either);
  if (state->error) std::rethrow_exception(state->error);
}

JobInformer::Entry& JobInformer::entry(const PodOfJob& pod) { return state_->entries[pod]; }
void JobInformer::forget(const PodOfJob& pod) { state_->entries.erase(pod); }
std::size_t JobInformer::size() const { return state_->entries.size(); }

async::Task<nlohmann::json> JobInformer::nodes() {
  const auto state = state_;
  const auto now = std::chrono::steady_clock::now();
  if (now >= state->nodes_expire) {
    state->nodes_expire = now + std::chrono::seconds(30);
    state->nodes = co_await nodes_of(state->client);
  }
  co_return state->nodes;
}

std::exception_ptr JobInformer::error() const { return state_->error; }

}  // namespace pipeline::orchestrators::kubernetes
