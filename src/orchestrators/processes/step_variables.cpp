#include "orchestrators/processes/step_variables.hpp"

#include <algorithm>
#include <cstdlib>

#include "orchestrators/processes/virtual_environment.hpp"

namespace pipeline::orchestrators::processes {

std::string path_of(const StepSpec& step) {
  if (auto& runtime = step.settings->docker.runtime_environment; runtime.contains("PATH"))
    return runtime.at("PATH");
  if (auto own = step.environment.find("PATH"); own != step.environment.end() && own->second)
    return *own->second;
  if (auto& environment = step.settings->docker.environment; environment.contains("PATH"))
    return environment.at("PATH");
  const char* callers_path = std::getenv("PATH");
  return callers_path ? callers_path : std::string(default_path);
}

StringMap passed_on_variables() {
  static constexpr std::string_view names[] = {"HOME",
                                               "USER",
                                               "LOGNAME",
                                               "SHELL",
                                               "LANG",
                                               "LANGUAGE",
                                               "TZ",
                                               "PATH",
                                               "LD_LIBRARY_PATH",
                                               "PYENV_VERSION",
                                               "PIPE_NVML",
                                               "PIPE_GPU_LOCKS",
                                               "SSL_CERT_FILE",
                                               "SSL_CERT_DIR",
                                               "REQUESTS_CA_BUNDLE",
                                               "CURL_CA_BUNDLE",
                                               "http_proxy",
                                               "https_proxy",
                                               "ftp_proxy",
                                               "all_proxy",
                                               "no_proxy",
                                               "HTTP_PROXY",
                                               "HTTPS_PROXY",
                                               "FTP_PROXY",
                                               "ALL_PROXY",
                                               "NO_PROXY"};
  auto variables = caller_variables();
  std::erase_if(variables, [](auto& variable) {
    return !variable.first.starts_with("LC_") &&
           std::find(std::begin(names), std::end(names), variable.first) == std::end(names);
  });
  return variables;
}

void show_gpus(const std::vector<AssignedGpu>& gpus, GpuIds ids, StringMap& variables) {
  if (gpus.empty()) {
    variables.try_emplace("CUDA_VISIBLE_DEVICES", "");
    variables.try_emplace("NVIDIA_VISIBLE_DEVICES", "void");
    return;
  }
  std::string uuids, indices;
  for (const auto& gpu : gpus) {
    uuids += (uuids.empty() ? "" : ",") + gpu.uuid;
    indices += (indices.empty() ? "" : ",") + std::to_string(gpu.index);
    if (!gpu.profile.empty()) ids = GpuIds::uuid;  // CUDA has no index for a MIG slice.
  }
  variables["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";
  variables["CUDA_VISIBLE_DEVICES"] = ids == GpuIds::index ? indices : uuids;
  variables["NVIDIA_VISIBLE_DEVICES"] = uuids;
}

}  // namespace pipeline::orchestrators::processes
