// Fuzzes the readers of requests for GPUs: docker's option, Lightning's devices as a text and as
// JSON, alone and merged. Nothing may crash, and an accepted request has to be consistent.
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "gpu/wheels.hpp"
#include "settings/accelerator.hpp"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void check(const pipeline::ResourceSettings& resources) {
  using Selection = pipeline::settings::GpuRequest::Selection;
  std::vector<pipeline::settings::GpuProblem> problems;
  const auto request = pipeline::settings::gpu_request(resources, problems);
  for (const auto& problem : problems) require(!problem.message.empty() && !problem.key.empty());
  if (!problems.empty()) return;
  require((request.selection == Selection::count || request.selection == Selection::first) ==
          (request.count > 0));
  require((request.selection == Selection::devices) == !request.devices.empty());
  std::set<std::string> names;
  for (const auto& device : request.devices) {
    require(names.insert(device.text()).second);
    require(pipeline::settings::parse_gpu_device(device.text()) == device);
  }
  require(!request.if_present || request.wanted());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
  pipeline::ResourceSettings option, devices, json;
  option.gpus = text;
  devices.devices = text;
  auto parsed = nlohmann::json::parse(text, nullptr, false);
  *json.devices = parsed.is_discarded() ? nlohmann::json() : std::move(parsed);
  for (auto* each : {&option, &devices, &json}) {
    if (data[0] & 1)
      each->accelerator = data[0] & 2   ? pipeline::Accelerator::gpu
                          : data[0] & 4 ? pipeline::Accelerator::automatic
                                        : pipeline::Accelerator::cpu;
    if (data[0] & 8) each->auto_select_gpus = (data[0] & 16) != 0;
    check(*each);
  }
  pipeline::ResourceSettings merged = option;
  pipeline::settings::merge_gpu_settings(merged, option, devices);
  check(merged);
  const std::string line = text;
  pipeline::gpu::wheels_of(std::span(&line, 1), {{"index-url", line}}, true);
  return 0;
}
