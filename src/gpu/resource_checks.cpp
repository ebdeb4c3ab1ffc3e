#include "gpu/resource_checks.hpp"

#include <algorithm>

#include "gpu/instance_types.hpp"
#include "gpu/placement.hpp"
#include "settings/decode.hpp"

namespace pipeline::gpu {
namespace {

/// Returns the value that the keys lead to, one map in the other; null if there is none.
const core::Value* find_value(const core::Value& map,
                              std::initializer_list<std::string_view> keys) {
  const core::Value* value = &map;
  for (const auto key : keys)
    if (!(value = value->find(key))) return nullptr;
  return value;
}

/// Reports an error in a placement expression at its position.
void check_expression(const core::Value& value, settings::Diagnostics& diagnostics) {
  if (value.kind != core::Value::Kind::scalar || !settings::formats::word.accepts(value.scalar))
    return;
  const auto parsed = parse_placement(value.scalar);
  const auto* error = std::get_if<PlacementError>(&parsed);
  if (!error) return;
  core::Span span = value.span;
  // If the document has escapes or several lines, offsets in the text are not columns of it: then
  // the error is at the whole value.
  const std::size_t quotes = value.quoted ? 2 : 0;
  if (span.length == value.scalar.size() + quotes) {
    span.column += static_cast<unsigned>(std::min(error->offset, value.scalar.size()) + quotes / 2);
    span.length = 1;
  }
  settings::report(diagnostics, "bad-placement", "in 'placement_constraints': " + error->message,
                   span, {}, error->suggestion);
}

/// Returns the number of GPUs that the machine must have for the request.
unsigned gpus_of(const settings::GpuRequest& request) {
  switch (request.selection) {
    case settings::GpuRequest::Selection::none: return 0;
    case settings::GpuRequest::Selection::all: return 1;
    case settings::GpuRequest::Selection::count:
    case settings::GpuRequest::Selection::first: return request.count;
    case settings::GpuRequest::Selection::devices: break;
  }
  unsigned gpus = 1, named = 0;
  for (const settings::GpuDevice& device : request.devices) {
    if (device.index) gpus = std::max(gpus, *device.index + 1);
    if (!device.mig && !device.uuid.starts_with("MIG-")) ++named;
  }
  return std::max(gpus, named);
}

}  // namespace

void check_placement(const core::Value& settings, settings::Diagnostics& diagnostics) {
  const core::Value* constraints = find_value(settings, {"resources", "placement_constraints"});
  if (!constraints) return;
  for (const core::Value& item : constraints->items) {
    if (const core::Value* expression = item.find("expression"))
      check_expression(*expression, diagnostics);
    else
      check_expression(item, diagnostics);
  }
}

void check_instance_type(const ResourceSettings& resources, const core::Value& step,
                         core::Span step_name, settings::Diagnostics& diagnostics) {
  if (!resources.instance_type) return;
  const std::string& name = *resources.instance_type;
  std::vector<settings::GpuProblem> problems;
  const settings::GpuRequest request = settings::gpu_request(resources, problems);
  if (!problems.empty()) return;  // The errors have been reported already.
  const core::Value* own = find_value(step, {"settings", "resources", "instance_type"});
  const core::Span span = own ? own->span : step_name;
  const InstanceNeeds needs{
      .gpus = gpus_of(request),
      .gpu_class = request.model.value_or(""),
      .gpu_memory = request.min_memory.value_or(0),
      .capability = request.min_capability.value_or(settings::ComputeCapability{}),
      .memory = resources.memory.value_or(0),
      .cpus = resources.cpu_count.value_or(0),
      .architecture = ""};
  const InstanceType* type = find_instance_type(name);
  if (!type) {
    // The table has only types with GPUs; other types are accepted if no GPU is requested.
    if (needs.gpus > 0 || is_gpu_family(name))
      settings::report(diagnostics, "unknown-instance-type",
                       "there is no instance type '" + name + "' with GPUs", span,
                       {"`pipe instances` lists them"}, similar_instance_type(name));
    return;
  }
  const auto reasons = lacks(*type, needs);
  if (reasons.empty()) return;
  std::string message = "the instance type " + name + " is not enough: ";
  for (const auto& reason : reasons) message += (&reason == reasons.data() ? "" : "; ") + reason;
  auto like_type = needs;
  like_type.architecture = type->architecture;  // The step's programs are made for it.
  auto fitting = fitting_instance_types(like_type);
  if (fitting.empty()) fitting = fitting_instance_types(needs);
  std::string suggestion = fitting.empty()
                               ? "no instance type satisfies all of that"
                               : std::string("the smallest that fits: ") + fitting.front().name;
  settings::report(diagnostics, "instance-too-small", std::move(message), span, {},
                   std::move(suggestion));
}

}  // namespace pipeline::gpu
