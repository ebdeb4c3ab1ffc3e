#include "model/step_memory.hpp"

#include <nlohmann/json.hpp>

namespace pipeline::model {
namespace {

/// Bytes that an allocation needs besides its content, and those of a node of a map or list.
constexpr std::size_t allocation = 24, node = 2 * allocation;
/// Length of the longest text that libstdc++ keeps in the object.
constexpr std::size_t max_inline_text = 15;

// The overloads of heap() return the bytes that a value takes outside of its own object.
std::size_t heap(const std::string& text) {
  return text.capacity() > max_inline_text ? text.size() + allocation : 0;
}

std::size_t heap(const std::filesystem::path& path) { return heap(path.native()); }

std::size_t heap(const nlohmann::json& value) {
  std::size_t bytes = 0;
  if (value.is_string()) bytes = sizeof(std::string) + heap(value.get_ref<const std::string&>());
  if (value.is_array())
    for (const auto& item : value) bytes += sizeof item + heap(item);
  if (value.is_object())
    for (const auto& [name, member] : value.get_ref<const nlohmann::json::object_t&>())
      bytes += sizeof name + sizeof member + node + heap(name) + heap(member);
  return bytes;
}

std::size_t heap(const Json& value) { return heap(*value); }

std::size_t heap(const SourceSpec& source) { return heap(source.step) + heap(source.output); }
std::size_t heap(const SecretSpec& secret) {
  return heap(secret.name) + (secret.file ? heap(*secret.file) : 0);
}
std::size_t heap(const OutputSpec& output) { return heap(output.name) + heap(output.file_name); }
std::size_t heap(const std::optional<std::string>& text) { return text ? heap(*text) : 0; }

std::size_t heap(const Template& text);
std::size_t heap(const OutputValue& value);
std::size_t heap(const InputSpec& input);
std::size_t heap(const ServiceSpec& service);

template <class T>
std::size_t heap(const std::vector<T>& values) {
  std::size_t bytes = values.empty() ? 0 : allocation;
  for (const auto& value : values) bytes += sizeof value + heap(value);
  return bytes;
}

template <class T>
std::size_t heap(const RareList<T>& values) {
  std::size_t bytes = values.empty() ? 0 : node;
  for (const auto& value : values) bytes += sizeof value + heap(value);
  return bytes;
}

/// Counts the items for each list that shares them, because a list that is changed copies them.
template <class T>
std::size_t heap(const SharedList<T>& values) {
  std::size_t bytes = values.empty() ? 0 : allocation;
  for (const auto& value : values) bytes += sizeof value + heap(value);
  return bytes;
}

template <class T>
std::size_t heap(const RareValue<T>& value) {
  return value.empty() ? 0 : sizeof *value + allocation + heap(*value);
}

template <class T>
std::size_t heap(const std::map<std::string, T>& values) {
  std::size_t bytes = 0;
  for (const auto& [name, value] : values)
    bytes += sizeof name + sizeof value + node + heap(name) + heap(value);
  return bytes;
}

std::size_t heap(const Template& text) {
  return text.parts.bytes() > max_inline_text ? text.parts.bytes() + allocation : 0;
}
std::size_t heap(const StringList& list) { return heap(list.items()); }
std::size_t heap(const OutputValue& value) { return heap(value.source) + heap(value.path); }
std::size_t heap(const Rare<Condition>& condition) {
  if (!condition) return 0;
  return sizeof *condition + heap(condition->text) + heap(condition->parameters) +
         heap(condition->outputs);
}

std::size_t heap(const InputSpec& input) {
  auto bytes = heap(input.name) + input.sources.bytes();
  if (const auto& data = input.data)
    bytes += heap(data->path) + heap(data->url) + heap(data->version) + heap(data->artifact);
  return bytes;
}

std::size_t heap(const ServiceSpec& service) {
  return heap(service.image) + heap(service.entrypoint) + heap(service.command) +
         heap(service.environment) + heap(service.ready.http) + heap(service.ready.command);
}

}  // namespace

std::size_t memory_of(const std::map<std::string, Json>& parameters) { return heap(parameters); }
std::size_t memory_of(const StepEnvironment& environment) { return heap(environment); }
std::size_t memory_of(const std::vector<SecretSpec>& secrets) { return heap(secrets); }
std::size_t memory_of(const std::vector<Json>& values) { return heap(values); }

std::size_t memory_of(const nlohmann::json& value) { return heap(value); }

std::size_t memory_of(const StepSpec& step) {
  auto bytes =
      sizeof step + heap(step.name) + heap(step.description) + heap(step.command.arguments) +
      heap(step.command.interpreter) + heap(step.parameters) + heap(step.inputs) +
      heap(step.outputs) + heap(step.after) + heap(step.when) + heap(step.wait) + heap(*step.code) +
      heap(step.code_root) + heap(*step.files) + heap(*step.environment) + heap(step.secrets) +
      heap(step.retry->on) + heap(step.retry->never) + heap(step.cache_until) +
      heap(step.publish_to) + heap(*step.publish) + heap(step.version) + heap(*step.services);
  if (step.repeat) bytes += sizeof *step.repeat + heap(step.repeat->until);
  for (const auto& [name, units] : step.uses) bytes += sizeof name + node + heap(name);
  return bytes;
}

}  // namespace pipeline::model
