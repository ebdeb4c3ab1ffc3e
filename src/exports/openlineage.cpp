#include "exports/openlineage.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/uuid.hpp"
#include "net/url.hpp"

namespace pipeline::exports {
namespace {

using nlohmann::json;

constexpr auto specification = "https://openlineage.io/spec/2-0-2/OpenLineage.json";
constexpr auto facet_schemas = "https://openlineage.io/spec/facets/";
constexpr auto name_space = "pipe";

class EventWriter {
 public:
  explicit EventWriter(const RunFacts& facts)
      : facts_(facts), producer_("pkg:generic/pipe@" + net::url_encode(facts.version)) {}

  std::vector<json> all() {
    const auto& run = facts_.run;
    add("START", run.started, run_of({}), job_of({}));
    for (const auto& step : facts_.steps) add_step(step);
    if (const auto* type = end_of(run.status)) add(type, run.ended, run_of({}), job_of({}));
    std::ranges::stable_sort(events_, {}, [](const json& event) {
      return event["eventTime"].get_ref<const std::string&>();
    });
    return std::move(events_);
  }

 private:
  /// Returns the type of the event for the end; null for a status that has no such event.
  static const char* end_of(RunStatus status) {
    return status == RunStatus::succeeded     ? "COMPLETE"
           : status == RunStatus::failed      ? "FAIL"
           : status == RunStatus::interrupted ? "ABORT"
                                              : nullptr;
  }
  static const char* end_of(StepStatus status) {
    return status == StepStatus::succeeded   ? "COMPLETE"
           : status == StepStatus::failed    ? "FAIL"
           : status == StepStatus::cancelled ? "ABORT"
                                             : nullptr;
  }

  json facet(const std::string& name) const {
    return {{"_producer", producer_}, {"_schemaURL", facet_schemas + name}};
  }

  std::string uuid(const std::string& step) const {
    return core::uuid_of(core::sha256(facts_.run.id + "/" + step).hex());
  }

  /// @param step empty: the pipeline's run
  json run_of(const std::string& step) const {
    json run{{"runId", uuid(step)}, {"facets", json::object()}};
    if (step.empty()) return run;
    auto parent = facet("1-0-1/ParentRunFacet.json#/$defs/ParentRunFacet");
    parent["run"] = {{"runId", uuid({})}};
    parent["job"] = {{"namespace", name_space}, {"name", facts_.run.pipeline}};
    run["facets"]["parent"] = std::move(parent);
    return run;
  }

  json job_of(const std::string& step) const {
    auto type = facet("2-0-3/JobTypeJobFacet.json#/$defs/JobTypeJobFacet");
    type["processingType"] = "BATCH";
    type["integration"] = "PIPE";
    type["jobType"] = step.empty() ? "PIPELINE" : "STEP";
    return {{"namespace", name_space},
            {"name", facts_.run.pipeline + (step.empty() ? "" : "." + step)},
            {"facets", {{"jobType", std::move(type)}}}};
  }

  json dataset_of(const std::string& name, const core::Digest& digest, const char* facets) const {
    auto version = facet("1-0-1/DatasetVersionDatasetFacet.json#/$defs/DatasetVersionDatasetFacet");
    version["datasetVersion"] = digest.hex();
    return {{"namespace", name_space},
            {"name", name.empty() ? "sha256:" + digest.hex() : facts_.run.pipeline + "." + name},
            {"facets", {{"version", std::move(version)}}},
            {facets, json::object()}};
  }

  /// Returns an input. Data from outside of pipelines is named by its address or file.
  json input_of(const TakenArtifact& artifact) const {
    auto dataset = dataset_of(artifact.maker, artifact.digest, "inputFacets");
    if (artifact.source.empty() || !artifact.maker.empty()) return dataset;
    dataset["name"] = artifact.source;
    return dataset;
  }

  void add_step(const StepFacts& step) {
    const auto& record = step.record;
    const auto* type = end_of(record.status);
    if (record.attempts == 0 || !type) return;
    add("START", record.started, run_of(record.name), job_of(record.name));
    auto run = run_of(record.name);
    if (record.status == StepStatus::failed) {
      auto message = facet("1-0-1/ErrorMessageRunFacet.json#/$defs/ErrorMessageRunFacet");
      message["message"] = record.message;
      message["programmingLanguage"] = "unknown";
      run["facets"]["errorMessage"] = std::move(message);
    }
    add(type, record.ended, std::move(run), job_of(record.name));
    auto& end = events_.back();
    for (const auto& input : step.inputs)
      for (const auto& artifact : input.artifacts) end["inputs"].push_back(input_of(artifact));
    for (const auto& output : record.outputs)
      end["outputs"].push_back(
          dataset_of(record.name + "." + output.name, output.digest, "outputFacets"));
  }

  void add(const char* type, WallTime time, json run, json job) {
    events_.push_back({{"eventType", type},
                       {"eventTime", rfc3339(time)},
                       {"producer", producer_},
                       {"schemaURL", std::string(specification) + "#/$defs/RunEvent"},
                       {"run", std::move(run)},
                       {"job", std::move(job)},
                       {"inputs", json::array()},
                       {"outputs", json::array()}});
  }

  const RunFacts& facts_;
  const std::string producer_;
  std::vector<json> events_;
};

}  // namespace

std::vector<json> openlineage_events(const RunFacts& facts) { return EventWriter(facts).all(); }

}  // namespace pipeline::exports
