#include "docker/engine_errors.hpp"

#include <array>

#include "core/text.hpp"
#include "docker/registry_errors.hpp"
#include "gpu/errors.hpp"

namespace pipeline::docker {
namespace {

struct EngineHint {
  std::string_view text;  ///< Lower case.
  std::string_view advice;
};

/// The first match is used: specific texts come before general ones.
constexpr std::array engine_hints{
    EngineHint{
        "no space left on device",
        "the engine's disk is full: `docker system df` shows what takes it; `pipe clean --images` "
        "and `docker system prune` free it"},
    EngineHint{"unknown runtime specified",
               "the engine does not know this runtime: `docker info` lists those that it knows"},
    EngineHint{"unknown or invalid runtime name",
               "the engine does not know this runtime: `docker info` lists those that it knows"},
    EngineHint{"exec format error",
               "the program is made for another kind of machine, or is a script without `#!` "
               "line: check `platform`"},
    EngineHint{"no such image",
               "check the image's name and tag; `docker pull` shows whether the engine can get it"},
    EngineHint{"invalid reference format",
               "an image's name is [REGISTRY/]NAME[:TAG][@DIGEST], in lower case"},
    EngineHint{"port is already allocated",
               "another container or program has that port: choose another, or stop it (`docker "
               "ps` shows who has it)"},
    EngineHint{"address already in use",
               "another container or program has that port: choose another, or stop it (`docker "
               "ps` shows who has it)"},
    EngineHint{"bind source path does not exist",
               "the folder must be on the engine's own machine: an engine elsewhere (DOCKER_HOST, "
               "a VM) does not see this machine's files"},
    EngineHint{"mounts denied",
               "share this folder with the engine's virtual machine (Docker Desktop: Settings, "
               "Resources, File sharing)"},
    EngineHint{"minimum memory limit allowed",
               "raise `resources.memory`: the engine takes no less"},
    EngineHint{"range of cpus is from",
               "lower `resources.cpu_count`: the engine's machine has fewer CPUs"},
    EngineHint{"unable to find user",
               "the image has no such user: name one that it has, or a number (UID or UID:GID)"},
    EngineHint{"no matching entries in passwd file",
               "the image has no such user: name one that it has, or a number (UID or UID:GID)"},
    EngineHint{"error setting rlimit",
               "the engine's machine does not allow that limit: lower it under `run_args.ulimits`"},
    EngineHint{"is too new. maximum supported api version",
               "the engine is older than this program expects: update Docker Engine"},
    EngineHint{"is too old. minimum supported api version",
               "the engine is newer than this program: update `pipe`"},
    EngineHint{
        "permission denied while trying to connect",
        "your user may not use the engine: `sudo usermod -aG docker $USER`, then log in again"},
};

}  // namespace

std::vector<std::string> advice_for(std::string_view text, std::string_view registry) {
  if (auto trouble = gpu::gpu_trouble(text)) {
    trouble->advice.insert(trouble->advice.begin(), trouble->cause);
    return std::move(trouble->advice);
  }
  const auto lower = core::lower(text);
  for (const auto& [part, advice] : engine_hints)
    if (lower.find(part) != lower.npos) return {std::string(advice)};
  if (const auto network = lower.find("network ");
      network != lower.npos && lower.find(" not found", network) != lower.npos)
    return {"`docker network ls` lists the networks, `docker network create NAME` makes one"};
  return registry_advice(text, registry);
}

}  // namespace pipeline::docker
