#include "spec/nodes_reader.hpp"

#include <nlohmann/json.hpp>

#include "settings/accelerator.hpp"
#include "spec/keys.hpp"

namespace pipeline::spec {
namespace {

/// Larger numbers are treated as mistakes; NodesSpec::restarts has eight bits.
constexpr unsigned max_nodes = 4096, max_processes = 1024, max_restarts = 255;
constexpr const char* nodes_example = "as in `nodes: 2` or `nodes: {count: 2, processes: gpus}`";

/// Reads a number from 1 to `max`; returns 1 for anything else, which is reported.
std::uint16_t read_number_of(const char* key, const core::Value& value, unsigned max,
                             settings::Diagnostics& diagnostics) {
  return static_cast<std::uint16_t>(
      settings::read_count(key, value, diagnostics, {1, max}).value_or(1));
}

std::uint16_t read_processes(const core::Value& value, settings::Diagnostics& diagnostics) {
  if (value.kind == core::Value::Kind::scalar && value.scalar == "gpus") return per_gpu;
  const auto before = diagnostics.size();
  const auto number = read_number_of("processes", value, max_processes, diagnostics);
  if (diagnostics.size() > before)
    diagnostics.back().notes.emplace_back("or `gpus`: one for each GPU of the node");
  return number;
}

void report_node_keys(const core::Value& map, settings::Diagnostics& diagnostics) {
  static const std::vector<std::string> keys{"count", "processes", "done", "visible", "restarts"};
  static constexpr const char* processes = "write `processes: gpus`, or a number of them";
  static constexpr const char* of_step = "it belongs to the step, beside `nodes`";
  static constexpr settings::OtherName others[]{
      {"nodes", "write `count: 2`"},
      {"num_nodes", "write `count: 2`"},
      {"replicas", "write `count: 2`"},
      {"size", "write `count: 2`"},
      {"nproc_per_node", processes},
      {"processes_per_node", processes},
      {"per_node", processes},
      {"devices", processes},
      {"gpus", "write `processes: gpus`; `settings: {resources: {gpu_count: 4}}` are each node's"},
      {"stop_criteria", "write `done: first`"},
      {"max_restarts", "write `restarts: 2`"},
      {"retry", of_step},
      {"timeout", of_step},
      {"stalled_after", of_step},
      {"settings", of_step}};
  settings::report_unknown_keys(map, keys, "'nodes'", diagnostics, others);
}

/// Reports requests for GPUs that several nodes cannot have.
void check_gpus(const StepSpec& step, const settings::GpuRequest& gpus, core::Span span,
                settings::Diagnostics& diagnostics) {
  using Choice = settings::GpuRequest::Selection;
  const auto& nodes = step.nodes;
  const bool is_counted = gpus.selection == Choice::count || gpus.selection == Choice::first;
  if (nodes.processes == per_gpu && !gpus.wanted())
    settings::report(diagnostics, "contradiction",
                     "step '" + step.name + "' has a process for each GPU, and asks for no GPUs",
                     span, {"the GPUs that it asks for are those of each node"},
                     "add `settings: {resources: {gpu_count: 2}}`, or write a number of processes");
  if (nodes.count > 1 && gpus.wanted() && !is_counted)
    settings::report(diagnostics, "contradiction",
                     "step '" + step.name + "' has " + std::to_string(nodes.count) +
                         " nodes, and its GPUs are not a number of them for each node",
                     span, {"two nodes cannot have the same GPUs"},
                     "write `gpu_count: 2` for 2 GPUs of each node");
  if (nodes.visible != VisibleGpus::own || !is_counted || nodes.processes == per_gpu ||
      gpus.count % nodes.processes == 0)
    return;
  settings::report(diagnostics, "contradiction",
                   "step '" + step.name + "' gives each process GPUs of its own, and a node has " +
                       std::to_string(gpus.count) + " for " + std::to_string(nodes.processes) +
                       " processes",
                   span, {}, "write `processes: gpus` for a process on each GPU");
}

}  // namespace

NodesSpec read_nodes(const core::Value& value, settings::Diagnostics& diagnostics) {
  NodesSpec nodes;
  if (value.kind == core::Value::Kind::scalar) {
    const auto before = diagnostics.size();
    nodes.count = read_number_of("nodes", value, max_nodes, diagnostics);
    if (diagnostics.size() > before) diagnostics.back().suggestion = nodes_example;
    return nodes;
  }
  if (!settings::expect_map("nodes", value, diagnostics)) {
    diagnostics.back().suggestion = nodes_example;
    return nodes;
  }
  report_node_keys(value, diagnostics);
  if (const auto* count = value.find("count"))
    nodes.count = read_number_of("count", *count, max_nodes, diagnostics);
  if (const auto* processes = value.find("processes"))
    nodes.processes = read_processes(*processes, diagnostics);
  if (const auto* done = value.find("done"))
    if (read_word("done", *done, {"all", "first"}, diagnostics) == "first")
      nodes.done = NodesDone::first;
  if (const auto* visible = value.find("visible"))
    if (read_word("visible", *visible, {"node", "own"}, diagnostics) == "own")
      nodes.visible = VisibleGpus::own;
  if (const auto* restarts = value.find("restarts"))
    nodes.restarts = static_cast<std::uint8_t>(
        settings::read_count("restarts", *restarts, diagnostics, {0, max_restarts}).value_or(0));
  return nodes;
}

void check_nodes(const StepSpec& step, const core::Value& written,
                 settings::Diagnostics& diagnostics) {
  // Problems of the resources themselves are reported where they are written.
  std::vector<settings::GpuProblem> problems;
  const auto gpus = settings::gpu_request(step.settings->resources, problems);
  if (problems.empty()) check_gpus(step, gpus, written.span, diagnostics);
  if (!step.services.empty())
    settings::report(diagnostics, "contradiction",
                     "step '" + step.name + "' has nodes and services", written.span,
                     {"a service runs beside one process"},
                     "let a step without `nodes` use the service");
}

nlohmann::json nodes_document(const NodesSpec& nodes) {
  nlohmann::json document{{"count", nodes.count}};
  document["processes"] =
      nodes.processes == per_gpu ? nlohmann::json("gpus") : nlohmann::json(nodes.processes);
  if (nodes.done == NodesDone::first) document["done"] = "first";
  if (nodes.visible == VisibleGpus::own) document["visible"] = "own";
  if (nodes.restarts > 0) document["restarts"] = nodes.restarts;
  return document;
}

nlohmann::json nodes_schema() {
  const auto described = [](nlohmann::json schema, const char* text) {
    schema["description"] = text;
    return schema;
  };
  const nlohmann::json filled{{"type", "string"}, {"pattern", "^\\$\\{params\\..+\\}$"}};
  const auto number = [&](unsigned max) {
    return nlohmann::json{{"type", "integer"}, {"minimum", 1}, {"maximum", max}};
  };
  const nlohmann::json count{{"anyOf", {number(max_nodes), filled}}};
  const nlohmann::json restarts{{"type", "integer"}, {"minimum", 0}, {"maximum", max_restarts}};
  nlohmann::json map{
      {"type", "object"},
      {"properties",
       {{"count", described(count, "Number of nodes. Default: 1.")},
        {"processes",
         described({{"anyOf", {number(max_processes), {{"const", "gpus"}}, filled}}},
                   "Processes on each node: a number, or `gpus`: one for each GPU of the node. "
                   "Default: 1.")},
        {"done", described({{"enum", {"all", "first"}}},
                           "The step has succeeded when all processes have, or when that of rank "
                           "0 has, which ends the others. Default: all.")},
        {"visible", described({{"enum", {"node", "own"}}},
                              "The GPUs that a process sees: all of its node's, or an equal "
                              "share. Default: node.")},
        {"restarts", described({{"anyOf", {restarts, filled}}},
                               "How often all processes of an attempt begin again in place after "
                               "one has failed. Default: 0.")}}},
      {"additionalProperties", false}};
  return described({{"anyOf", {number(max_nodes), filled, std::move(map)}}},
                   "Makes the step several processes, which start together, fail together and "
                   "give one result: `2`, or `{count: 2, processes: gpus}`. Each finds the others "
                   "by the variables of torchrun, JAX and TensorFlow, such as RANK and "
                   "MASTER_ADDR. `settings.resources` are those of each node. Outputs are those "
                   "of the first node, or with `from: all` those of all nodes.");
}

}  // namespace pipeline::spec
