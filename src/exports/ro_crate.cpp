#include "exports/ro_crate.hpp"

#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "core/bounded_json.hpp"

namespace pipeline::exports {
namespace {

using nlohmann::json;

constexpr auto formal_parameter = "https://bioschemas.org/profiles/FormalParameter/1.0-RELEASE";

struct CrateProfile {
  const char *address, *name, *version;
};
constexpr CrateProfile process_run{"https://w3id.org/ro/wfrun/process/0.5", "Process Run Crate",
                                   "0.5"};
constexpr CrateProfile workflow_run{"https://w3id.org/ro/wfrun/workflow/0.5", "Workflow Run Crate",
                                    "0.5"};
constexpr CrateProfile workflow_crate{"https://w3id.org/workflowhub/workflow-ro-crate/1.0",
                                      "Workflow RO-Crate", "1.0"};
constexpr CrateProfile crate_profiles[] = {process_run, workflow_run, workflow_crate};

json reference(const std::string& id) { return {{"@id", id}}; }

/// Adds a value to the key's values. A single value is stored as itself, several as a list.
void add_value(json& entity, const char* key, json value) {
  auto& present = entity[key];
  if (present.is_null())
    present = std::move(value);
  else if (present.is_array())
    present.push_back(std::move(value));
  else
    present = json::array({std::move(present), std::move(value)});
}

const char* type_of(const json& value) {
  return value.is_boolean()          ? "Boolean"
         : value.is_number_integer() ? "Integer"
         : value.is_number()         ? "Float"
                                     : "Text";
}

const char* status_of(bool succeeded) {
  return succeeded ? "http://schema.org/CompletedActionStatus"
                   : "http://schema.org/FailedActionStatus";
}

class CrateWriter {
 public:
  CrateWriter(const RunFacts& facts, const CrateOptions& options)
      : facts_(facts), options_(options) {}

  json metadata() {
    root_ = {{"@id", "./"},
             {"@type", "Dataset"},
             {"name", "Run " + facts_.run.id + " of " + facts_.run.pipeline},
             {"description", "The pipeline " + facts_.run.pipeline + ", its run " + facts_.run.id +
                                 ", and the outputs of its steps."},
             {"datePublished", rfc3339(facts_.run.ended)},
             {"mainEntity", reference(options_.workflow)}};
    add_license();
    workflow_ = {{"@id", options_.workflow},
                 {"@type", {"File", "SoftwareSourceCode", "ComputationalWorkflow"}},
                 {"name", facts_.run.pipeline},
                 {"programmingLanguage", reference("#pipe")}};
    add_value(root_, "hasPart", reference(options_.workflow));
    add_outputs();
    add_run();
    for (const auto& step : facts_.steps) add_step(step);
    for (const auto& [address, name, version] : crate_profiles) {
      add_value(root_, "conformsTo", reference(address));
      graph_.push_back(
          {{"@id", address}, {"@type", "CreativeWork"}, {"name", name}, {"version", version}});
    }
    json descriptor{
        {"@id", "ro-crate-metadata.json"},
        {"@type", "CreativeWork"},
        {"conformsTo",
         {reference("https://w3id.org/ro/crate/1.1"), reference(workflow_crate.address)}},
        {"about", reference("./")}};
    auto all = json::array({std::move(descriptor), std::move(root_), std::move(workflow_)});
    all.push_back({{"@id", "#pipe"},
                   {"@type", "ComputerLanguage"},
                   {"name", "pipe"},
                   {"version", facts_.version}});
    for (auto& entity : graph_) all.push_back(std::move(entity));
    // RO-Crate's context lacks `sha256`, a term of Workflow Run Crate.
    json context = json::array();
    context.push_back("https://w3id.org/ro/crate/1.1/context");
    context.push_back({{"sha256", "https://w3id.org/ro/terms/workflow-run#sha256"}});
    return {{"@context", std::move(context)}, {"@graph", std::move(all)}};
  }

 private:
  void add_license() {
    if (options_.license.empty()) {
      root_["license"] = "No license is stated.";
      return;
    }
    const auto address = "https://spdx.org/licenses/" + options_.license;
    root_["license"] = reference(address);
    graph_.push_back({{"@id", address}, {"@type", "CreativeWork"}, {"name", options_.license}});
  }

  /// Adds the outputs; equal artifacts of two steps are separate files.
  void add_outputs() {
    for (const auto& step : facts_.steps)
      for (const auto& output : step.record.outputs) {
        if (!options_.has_content(output.digest)) continue;
        const auto name = step.record.name + "." + output.name;
        const auto path = crate_path(step.record, output);
        const auto parameter = "#output-" + name;
        json file{{"@id", path},
                  {"@type", output.is_directory ? "Dataset" : "File"},
                  {"name", name},
                  {"exampleOfWork", reference(parameter)}};
        if (!output.is_directory) {
          file["contentSize"] = std::to_string(output.bytes);
          file["sha256"] = output.digest.hex();
        }
        graph_.push_back(std::move(file));
        graph_.push_back(
            parameter_entity(parameter, name, output.is_directory ? "Dataset" : "File", path));
        add_value(root_, "hasPart", reference(path));
        add_value(workflow_, "output", reference(parameter));
        paths_.try_emplace(output.digest.hex(), path);
        results_.push_back(path);
      }
    if (!paths_.empty())
      graph_.push_back({{"@id", formal_parameter},
                        {"@type", "CreativeWork"},
                        {"name", "FormalParameter"},
                        {"version", "1.0-RELEASE"}});
  }

  static json parameter_entity(const std::string& id, const std::string& name, const char* type,
                               const std::string& example) {
    return {{"@id", id},
            {"@type", "FormalParameter"},
            {"name", name},
            {"additionalType", type},
            {"conformsTo", reference(formal_parameter)},
            {"workExample", reference(example)}};
  }

  void add_run() {
    const auto& run = facts_.run;
    json action{{"@id", "#run"},
                {"@type", "CreateAction"},
                {"name", "Run " + run.id},
                {"instrument", reference(options_.workflow)},
                {"startTime", rfc3339(run.started)},
                {"endTime", rfc3339(run.ended)},
                {"actionStatus", reference(status_of(run.status == RunStatus::succeeded))}};
    const auto parameters = core::parse_json(run.parameters);
    for (const auto& [name, value] : parameters.items()) {
      const auto id = "#value-" + name, parameter = "#parameter-" + name;
      graph_.push_back({{"@id", id},
                        {"@type", "PropertyValue"},
                        {"name", name},
                        {"value", value},
                        {"exampleOfWork", reference(parameter)}});
      graph_.push_back(parameter_entity(parameter, name, type_of(value), id));
      add_value(workflow_, "input", reference(parameter));
      add_value(action, "object", reference(id));
    }
    for (const auto& path : results_) add_value(action, "result", reference(path));
    add_value(root_, "mentions", reference("#run"));
    graph_.push_back(std::move(action));
  }

  /// Adds an action for a step that the run executed; its instrument is the command.
  void add_step(const StepFacts& step) {
    const auto& record = step.record;
    const auto tool = "#step-" + record.name;
    if (record.attempts == 0) return;
    json software{{"@id", tool}, {"@type", "SoftwareApplication"}, {"name", record.name}};
    if (!step.command.empty()) software["description"] = step.command;
    if (!record.image.empty()) software["softwareRequirements"] = record.image;
    graph_.push_back(std::move(software));
    const auto id = "#run-" + record.name;
    json action{{"@id", id},
                {"@type", "CreateAction"},
                {"name", "Step " + record.name + " of run " + record.run},
                {"instrument", reference(tool)},
                {"startTime", rfc3339(record.started)},
                {"endTime", rfc3339(record.ended)},
                {"actionStatus", reference(status_of(record.status == StepStatus::succeeded))}};
    if (record.status == StepStatus::failed) action["error"] = record.message;
    for (const auto& input : step.inputs)
      for (const auto& artifact : input.artifacts)
        add_value(action, "object", reference(object_of(artifact)));
    for (const auto& output : record.outputs)
      if (options_.has_content(output.digest))
        add_value(action, "result", reference(crate_path(record, output)));
    add_value(root_, "mentions", reference(id));
    graph_.push_back(std::move(action));
  }

  /// Returns the identifier of an input's entity: a file of the crate, or the digest of content
  /// that is not in the crate.
  std::string object_of(const TakenArtifact& artifact) {
    const auto hex = artifact.digest.hex();
    if (const auto found = paths_.find(hex); found != paths_.end()) return found->second;
    const auto id = "#sha256-" + hex;
    if (outside_.insert(hex).second)
      graph_.push_back({{"@id", id},
                        {"@type", "PropertyValue"},
                        {"name", !artifact.source.empty() ? artifact.source
                                 : artifact.maker.empty() ? "data"
                                                          : artifact.maker},
                        {"value", "sha256:" + hex}});
    return id;
  }

  const RunFacts& facts_;
  const CrateOptions& options_;
  json root_, workflow_, graph_ = json::array();
  std::map<std::string, std::string> paths_;  ///< First path in the crate, by digest.
  std::vector<std::string> results_;          ///< Paths of all outputs in the crate.
  std::set<std::string> outside_;  ///< Digests that have an entity, of content not in the crate.
};

}  // namespace

std::string crate_path(const store::StepRecord& step, const store::OutputRecord& output) {
  return "outputs/" + step.name + "/" + output.file_name + (output.is_directory ? "/" : "");
}

json ro_crate(const RunFacts& facts, const CrateOptions& options) {
  return CrateWriter(facts, options).metadata();
}

}  // namespace pipeline::exports
