// `pipe instances`: Amazon EC2's instance types that satisfy some needs.
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "core/diagnostic.hpp"
#include "core/quantity.hpp"
#include "gpu/instance_types.hpp"

namespace pipeline::cli {
namespace {

constexpr Bytes mebibyte = Bytes{1} << 20;

Bytes size_of(const char* option, const std::string& text) {
  if (text.empty()) return 0;
  if (const auto bytes = core::parse_bytes(text); bytes && *bytes > 0) return *bytes;
  throw core::InputError(std::string(option) + " must be a size such as 24GB or 100GiB, not '" +
                         text + "'");
}

gpu::InstanceNeeds needs_of(const Options& options) {
  gpu::InstanceNeeds needs;
  needs.gpus = std::max(options.instances.gpus, 1u);
  needs.gpu_class = options.instances.gpu_class;
  needs.gpu_memory = size_of("--gpu-memory", options.instances.gpu_memory);
  needs.memory = size_of("--memory", options.instances.memory);
  needs.cpus = options.instances.cpus;
  needs.architecture = options.instances.architecture;
  if (options.instances.compute_capability.empty()) return needs;
  const auto capability = settings::parse_compute_capability(options.instances.compute_capability);
  if (!capability)
    throw core::InputError("--compute-capability must be of the form 8.0, not '" +
                           options.instances.compute_capability + "'");
  needs.capability = *capability;
  return needs;
}

}  // namespace

core::ExitCode instances_command(Context& context) {
  const auto types = gpu::fitting_instance_types(needs_of(context.options()));
  if (context.options().json) {
    nlohmann::json list = nlohmann::json::array();
    for (const auto& type : types)
      list.push_back({{"instance_type", type.name},
                      {"gpus", type.gpus},
                      {"gpu", type.gpu},
                      {"gpu_memory", type.gpu_memory * mebibyte},
                      {"compute_capability", type.capability.text()},
                      {"vcpus", type.vcpus},
                      {"memory", type.memory * mebibyte},
                      {"architecture", type.architecture}});
    context.print_json(list);
    return core::ExitCode::ok;
  }
  Table table;
  table.add({"INSTANCE TYPE", "GPUS", "MODEL", "MEMORY EACH", "CAPABILITY", "VCPUS", "MEMORY",
             "PROCESSOR"});
  for (const auto& type : types)
    table.add({type.name, std::to_string(type.gpus), type.gpu,
               core::format_bytes(type.gpu_memory * mebibyte), type.capability.text(),
               std::to_string(type.vcpus), core::format_bytes(type.memory * mebibyte),
               type.architecture});
  context.print(table.empty() ? "no instance type satisfies all of that\n"
                              : table.render(context.paint()));
  return core::ExitCode::ok;
}

}  // namespace pipeline::cli
