#include "orchestrators/kubernetes/gang_pods.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

#include "async/retry_policy.hpp"
#include "async/sleep.hpp"
#include "core/joined.hpp"
#include "core/log.hpp"
#include "kubernetes_api/channels.hpp"
#include "kubernetes_api/json.hpp"
#include "orchestrators/kubernetes/manifest.hpp"
#include "orchestrators/kubernetes/pod_failure.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

using kubernetes_api::ApiError;
using kubernetes_api::text_at;
using namespace std::chrono_literals;

constexpr std::chrono::seconds max_patience = 2min;
constexpr auto address_pause = 100ms;
constexpr int pauses_after_telling = 50;  ///< Five seconds for the agent to confirm in its log.

}  // namespace

void GangPods::see(unsigned node, const nlohmann::json& pod, TimePoint now, bool is_gone) {
  const bool is_going = is_gone || text_at(pod, "/status/phase") == "Failed" ||
                        !text_at(pod, "/metadata/deletionTimestamp").empty();
  if (is_going && !first_to_go_) first_to_go_ = node;
  addresses_.at(node) = text_at(pod, "/status/podIP");
  have_nodes_[node] = !text_at(pod, "/spec/nodeName").empty();
  const auto count = std::ranges::count(have_nodes_, true);
  if (count == 0 || count == std::ssize(have_nodes_))
    waits_since_.reset();
  else if (!waits_since_)
    waits_since_ = now;
}

bool GangPods::is_overdue(unsigned node, TimePoint now) const {
  return waits_since_ && !have_nodes_.at(node) && now - *waits_since_ >= patience_;
}

Failure GangPods::failure_of(const nlohmann::json& pod) const {
  Failure failure{FailureKind::infrastructure,
                  "has no node " + std::to_string(patience_.count()) +
                      " s after another pod of the step had one",
                  {},
                  {}};
  if (auto state = pod_state_of(pod); !state.waits_for.empty())
    failure.details.push_back(std::move(state.waits_for));
  return failure;
}

std::optional<nlohmann::json> GangPods::own_end(unsigned node, const nlohmann::json& pod) const {
  if (!first_to_go_ || *first_to_go_ == node) return pod;
  if (pod.is_null()) return std::nullopt;
  if (!is_unexplained(pod)) return pod;
  const auto code = exit_code_of(pod);
  if (!code || *code == 128 + SIGTERM || *code == 128 + SIGKILL) return std::nullopt;
  auto own = pod;
  own["metadata"].erase("deletionTimestamp");  // The step had ended by itself in this pod.
  return own;
}

std::string GangPods::addresses() const {
  const bool are_known = std::ranges::none_of(addresses_, &std::string::empty);
  return are_known ? core::joined(addresses_, ",") : std::string();
}

std::chrono::seconds patience_for(const StepSpec& step) {
  // A cluster that adds nodes adds them one after the other.
  if (step.settings->kubernetes.autoscaling.value_or(false)) return startup_timeout(step);
  return std::min(startup_timeout(step), max_patience);
}

async::Task<> tell_addresses(kubernetes_api::Client& client, const GangPods& gang, std::string pod,
                             std::function<bool()> is_told, core::CancelSource& stop) {
  const auto path = client.path("", "pods", pod) + "/attach?container=" + step_container +
                    "&stdin=true&stdout=false&stderr=false&tty=false";
  const auto is_over = [&] { return is_told() || stop.level() != core::StopLevel::none; };
  async::Backoff backoff({.first_pause = 200ms, .max_pause = 5s, .max_tries = 20});
  while (!is_over()) {
    if (gang.addresses().empty()) {
      co_await async::sleep(address_pause, &stop);
      continue;
    }
    std::exception_ptr lost;
    try {
      const auto channels =
          co_await kubernetes_api::open_channels(client, "attach to the pod " + pod, path);
      co_await channels->send(kubernetes_api::Channel::input, gang.addresses() + "\n");
      for (int look = 0; look < pauses_after_telling && !is_over(); ++look)
        co_await async::sleep(address_pause, &stop);
    } catch (const ApiError& error) {
      if (error.status() == 403) throw;
      lost = std::current_exception();
      core::log::info(error.what());
    } catch (const core::EnvironmentError& error) {
      lost = std::current_exception();
      core::log::info(error.what());
    }
    if (lost && !is_over() && backoff.exhausted()) std::rethrow_exception(lost);
    if (lost) co_await async::sleep(backoff.next(), &stop);
  }
}

}  // namespace pipeline::orchestrators::kubernetes
