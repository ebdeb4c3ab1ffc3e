#include "orchestrators/kubernetes/job_requests.hpp"

#include "core/log.hpp"
#include "kubernetes_api/json.hpp"
#include "net/url.hpp"

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
  // The right to create pods is not needed otherwise; a missing PriorityClass is found before.
  for (const char* other : {"cannot create resource", "no PriorityClass"})
    if (message.find(other) != message.npos) co_return refusal;
  refusal = refusal_of(message);
  if (refusal->kind != Refusal::Kind::permanent) refusal.reset();
  co_return refusal;
}

}  // namespace pipeline::orchestrators::kubernetes
