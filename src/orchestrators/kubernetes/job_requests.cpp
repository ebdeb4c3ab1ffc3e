#include "orchestrators/kubernetes/job_requests.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "async/sleep.hpp"
#include "core/log.hpp"
#include "core/user_environment.hpp"
#include "kubernetes_api/json.hpp"
#include "kubernetes_api/time.hpp"
#include "net/url.hpp"
#include "orchestrators/kubernetes/manifest.hpp"

namespace pipeline::orchestrators::kubernetes {

async::Task<> delete_job(kubernetes_api::Client& client, std::string name, std::string uid) {
  co_await client.remove("delete the Job " + name, client.path("batch/v1", "jobs", name), uid,
                         std::nullopt);
}

async::Task<nlohmann::json> pods_of_job(kubernetes_api::Client& client, std::string name) {
  return client.get(
      "list the pods of the Job " + name,
      client.path("", "pods") + "?labelSelector=" + net::url_encode("job-name=" + name));
}

async::Task<nlohmann::json> jobs_with(kubernetes_api::Client& client, StringMap labels) {
  return client.get("list the Jobs of an attempt",
                    client.path("batch/v1", "jobs") +
                        "?labelSelector=" + net::url_encode(label_selector(labels)));
}

async::Task<LeftGang> left_gang(kubernetes_api::Client& client, StringMap labels) {
  const auto jobs = co_await jobs_with(client, std::move(labels));
  LeftGang left;
  for (const auto& job : kubernetes_api::list_at(jobs, "/items")) {
    const auto& found = kubernetes_api::at(job, "/metadata/labels");
    const auto number = found.value(try_label, std::string());
    left.tries =
        std::max(left.tries, static_cast<unsigned>(std::strtoul(number.c_str(), nullptr, 10)));
    left.has_one_job = !found.contains(node_label);
  }
  co_return left;
}

void require_labels(const kubernetes_api::Client& client, const nlohmann::json& job,
                    const StringMap& labels) {
  const auto name = kubernetes_api::text_at(job, "/metadata/name");
  const auto& found = kubernetes_api::at(job, "/metadata/labels");
  for (const auto& [label, value] : labels)
    if (!found.is_object() || found.value(label, std::string()) != value)
      throw core::EnvironmentError("cannot create the Job " + name +
                                       ": there is one of that name, and it is not this step's",
                                   {"`kubectl -n " + client.access().name_space + " describe job " +
                                    name + "` shows whose it is"});
}

namespace {

constexpr std::chrono::seconds quota_poll_interval{5};

/// Returns the failure of an attempt whose Job or Secret a cluster would not store.
std::optional<Failure> too_large_to_store(const nlohmann::json& object) {
  const auto size = object.dump().size();
  if (size <= max_object_bytes) return std::nullopt;
  const auto kind = kubernetes_api::text_at(object, "/kind");
  return Failure{
      FailureKind::not_started, "could not start: " + too_large(kind, size), {shorter_line}, {}};
}

}  // namespace

async::Task<nlohmann::json> create_in_turn(kubernetes_api::Client& client, std::string path,
                                           nlohmann::json object, const AttemptIo& io,
                                           std::optional<Failure>& failure) {
  failure = too_large_to_store(object);
  if (failure) co_return nlohmann::json();
  const auto what = "create the " + kubernetes_api::text_at(object, "/kind") + " " +
                    kubernetes_api::text_at(object, "/metadata/name");
  std::string reported;
  do {
    Refusal refusal;
    try {
      co_return co_await client.create(what, path, object);
    } catch (const kubernetes_api::ApiError& error) {
      if (error.status() == 409) co_return nlohmann::json();
      refusal = refusal_of(error.what());
      if (refusal.kind != Refusal::Kind::full) throw;
    }
    if (std::exchange(reported, refusal.reason) != refusal.reason)
      io.log.write(Stream::err, "[kubernetes] waiting: " + reported + "\n");
    co_await async::sleep(quota_poll_interval, &io.cancel);
  } while (io.cancel.level() == core::StopLevel::none);
  co_return nlohmann::json();
}

async::Task<bool> ask_for_pod(kubernetes_api::Client& client, std::string job) {
  nlohmann::json change;
  change["metadata"]["annotations"]["pipe.asked"] =
      kubernetes_api::format_time(std::chrono::system_clock::now());
  bool is_permitted = true;
  try {
    co_await client.patch("change the Job " + job, client.path("batch/v1", "jobs", job),
                          std::move(change));
  } catch (const kubernetes_api::ApiError& error) {
    is_permitted = error.status() != 403;
    core::log::info(error.what());
  }
  co_return is_permitted;
}

async::Task<nlohmann::json> require_namespace(kubernetes_api::Client& client) {
  const auto& name = client.access().name_space;
  nlohmann::json found;
  try {
    found = co_await client.get("use the namespace " + name,
                                "/api/v1/namespaces/" + net::url_encode(name));
  } catch (const kubernetes_api::ApiError& error) {
    if (error.status() == 404 || error.status() == 401) throw;
    core::log::info(error.what());
  }
  if (kubernetes_api::text_at(found, "/status/phase") == "Terminating")
    throw core::EnvironmentError(
        "the namespace " + name + " of " + client.access().origin + " is being deleted",
        {"name another namespace with --namespace"});
  co_return found;
}

async::Task<std::string> user_of_pods(kubernetes_api::Client& client, bool has_own_files) {
  auto user = core::user_and_group();
  if (!has_own_files || !user.starts_with("0:")) co_return user;
  const auto found = co_await require_namespace(client);
  const auto policy =
      kubernetes_api::text_at(found, "/metadata/labels/pod-security.kubernetes.io~1enforce");
  if (policy == "restricted") user = "65534:65534";  // `nobody` of most images.
  co_return user;
}

async::Task<std::optional<Refusal>> try_out_pod(kubernetes_api::Client& client,
                                                const nlohmann::json& job) {
  kubernetes_api::ApiCall call("try out its pod", "POST", client.path("", "pods") + "?dryRun=All");
  call.body = kubernetes_api::at(job, "/spec/template");
  call.body["apiVersion"] = "v1";
  call.body["kind"] = "Pod";
  call.body["metadata"]["generateName"] = "pipe-";
  call.max_tries = 1;
  std::string message;
  try {
    co_await client.call(std::move(call));
  } catch (const core::EnvironmentError& error) {
    message = error.what();
    core::log::info(message);
  }
  std::optional<Refusal> refusal;
  // Running steps does not take the right to create pods, and check_steps() reports a missing
  // PriorityClass better.
  for (const char* other : {"cannot create resource", "no PriorityClass"})
    if (message.find(other) != message.npos) co_return refusal;
  const auto colon = message.find(": ");
  refusal = refusal_of(colon == message.npos ? message : message.substr(colon + 2));
  if (refusal->kind != Refusal::Kind::permanent) refusal.reset();
  co_return refusal;
}

}  // namespace pipeline::orchestrators::kubernetes
