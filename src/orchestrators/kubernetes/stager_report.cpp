#include "orchestrators/kubernetes/stager_report.hpp"

#include "core/bounded_json.hpp"
#include "kubernetes_api/json.hpp"
#include "orchestrators/kubernetes/pod_failure.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

using kubernetes_api::at;
using kubernetes_api::list_at;
using kubernetes_api::text_at;
using nlohmann::json;

}  // namespace

std::optional<Failure> stager_failure(const std::string& message, const std::string& pod) {
  const auto report = core::parse_json(message);
  if (!report.is_object()) return std::nullopt;
  const bool is_fetch = report.contains("not_fetched");
  if (!is_fetch && !report.contains("not_collected")) return std::nullopt;
  const auto why = text_at(report, is_fetch ? "/not_fetched" : "/not_collected");
  Failure failure{
      FailureKind::infrastructure,
      pod + (is_fetch ? " could not get its files: " : " could not upload the step's outputs: ") +
          why,
      {retry_advice},
      {}};
  if (at(report, "/passes") == false) failure.kind = FailureKind::environment;
  if (failure.kind == FailureKind::environment) failure.hints.clear();
  if (why.find("certificate") != why.npos)
    failure.hints.emplace_back(
        "pods trust this machine's CAs: name the CA of the store's server, `certificate_authority: "
        "ca.pem`, under `artifact_store`");
  if (why.find("cannot connect") != why.npos || why.find("cannot find the host") != why.npos)
    failure.hints.emplace_back(
        "if pods reach the store at another address than this machine does, name the address as "
        "`pod_endpoint` under `artifact_store`");
  return failure;
}

std::string stager_notes(const json& pod) {
  std::string lines;
  for (const auto& container : list_at(pod, "/status/initContainerStatuses")) {
    const auto report = core::parse_json(text_at(container, "/state/terminated/message"));
    if (!report.is_object()) continue;
    if (const auto text = text_at(report, "/cache"); !text.empty()) lines += "pipe: " + text + "\n";
    if (const auto text = text_at(report, "/checkpoint"); !text.empty())
      lines += "pipe: ${checkpoint} " + text + "\n";
  }
  return lines;
}

}  // namespace pipeline::orchestrators::kubernetes
