/// @file
/// Runs a short-lived container and returns its output.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "docker/engine_api.hpp"
#include "file_tree/tar_stream.hpp"

namespace pipeline::docker {

struct ContainerOutput {
  std::string text;  ///< Both streams, the first 4 MiB.
  int exit_code = 0;
};

/// Runs the container to its end and removes it in any case. Throws EngineError.
/// @param files    copied into its root folder before the start
/// @param platform `os/arch[/variant]`, or empty
/// @param cancel   a stop ends the container; may be null
/// @param on_line  receives each line as it is printed; may be empty
async::Task<ContainerOutput> run_to_end(EngineApi& engine, std::string name, nlohmann::json body,
                                        std::vector<file_tree::ContextFile> files = {},
                                        std::string platform = {},
                                        core::CancelSource* cancel = nullptr,
                                        std::function<void(std::string_view)> on_line = {});

}  // namespace pipeline::docker
