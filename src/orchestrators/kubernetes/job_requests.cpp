#include "orchestrators/kubernetes/job_requests.hpp"

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

}  // namespace pipeline::orchestrators::kubernetes
