/// @file
/// Fuzzes the reader of kubectl's configuration file: it finds a cluster's address in the text, or
/// throws an error with a message.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "core/diagnostic.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "kubernetes_api/kubeconfig.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pipeline;
  static const core::TemporaryFolder folder;
  static const std::string file = folder.path() / "config";
  core::write_file_atomically(file, std::string_view(reinterpret_cast<const char*>(data), size));
  kubernetes_api::KubeconfigEnvironment environment;
  environment.variable = [](const char* name) -> const char* {
    return std::strcmp(name, "KUBECONFIG") == 0 ? file.c_str() : nullptr;
  };
  environment.pod_folder = folder.path() / "none";  // The process does not run in a pod.
  try {
    const auto found = kubernetes_api::find_cluster({}, environment);
    if (found.name_space.empty() || found.server.ends_with('/')) __builtin_trap();
  } catch (const core::InputError& error) {
    if (std::string_view(error.what()).empty()) __builtin_trap();
  } catch (const core::EnvironmentError& error) {
    if (std::string_view(error.what()).empty()) __builtin_trap();
  }
  return 0;
}
