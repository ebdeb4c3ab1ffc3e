#include "orchestrators/kubernetes/agent_images.hpp"

#include "agent/programs.hpp"
#include "core/digest.hpp"
#include "core/file.hpp"
#include "docker/layer_image.hpp"
#include "docker/reference.hpp"
#include "net/trust.hpp"
#include "orchestrators/kubernetes/manifest.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

/// Returns this machine's CA bundle; empty if there is none.
std::string machine_authorities() {
  const auto file = net::authorities_file();
  return file.empty() ? std::string() : core::read_file(file);
}

struct AgentFile {
  const char* path;
  std::string content;
  unsigned mode;
};

std::vector<AgentFile> programs(bool has_stager, std::string_view architecture) {
  std::vector<AgentFile> files{
      {agent_in_image, std::string(agent::agent_program(architecture)), 0555}};
  if (has_stager) {
    files.push_back({stager_in_image, std::string(agent::stager_program(architecture)), 0555});
    files.push_back({authorities_in_image, machine_authorities(), 0444});
  }
  return files;
}

/// Returns the files of the image, by paths without a leading slash.
std::vector<docker::ContextFile> agent_files(bool has_stager, std::string_view architecture) {
  std::vector<docker::ContextFile> files;
  files.push_back({.path = "pipe", .mode = 0755, .kind = docker::ContextFile::Kind::directory});
  for (auto& file : programs(has_stager, architecture)) {
    const auto size = file.content.size();
    files.push_back({.path = file.path + 1,
                     .content = std::move(file.content),
                     .bytes = size,
                     .mode = file.mode});
  }
  return files;
}

std::string digest_of(bool has_stager, std::string_view architecture) {
  core::Hasher hasher;
  hasher.field(has_stager ? "pipe agent and stager 1" : "pipe agent 1");
  hasher.field(agent::agent_program(architecture));
  if (has_stager) {
    hasher.field(agent::stager_program(architecture));
    hasher.field(machine_authorities());
  }
  return hasher.finish().hex();
}

}  // namespace

async::Task<std::string> AgentImages::ensure(std::string repository, std::string architecture,
                                             std::string step, EventSink& events,
                                             core::CancelSource& cancel) {
  const std::function<async::Task<std::string>()> make_it = [&]() {
    return make(repository, architecture, step, events, cancel);
  };
  co_return co_await ready_.get(key_of(repository, architecture), make_it, &cancel);
}

async::Task<std::string> AgentImages::make(std::string repository, std::string architecture,
                                           std::string step, EventSink& events,
                                           core::CancelSource& cancel) {
  docker::LayerImage image;
  image.kind = "agent";
  image.digest = digest_of(has_stager_, architecture);
  image.reference = repository + ":agent-" + image.digest.substr(0, 16);
  image.from = "scratch";
  image.run_id = run_id_;
  if (architecture != agent::own_architecture) image.platform = "linux/" + architecture;
  image.files = [has_stager = has_stager_, &architecture] {
    return agent_files(has_stager, architecture);
  };
  docker::LocalImage local;
  local.reference = image.reference;
  local.id =
      co_await docker::layer_image_id(engine_, image.reference, image.digest, image.platform);
  const std::string reason = "new: the agent, which starts a step's command in its pod";
  if (local.id.empty())
    local.id = co_await docker::build_layer_image(engine_, image, step, reason, events, cancel);
  agent::release_program_pages();
  if (!docker::names_registry(repository))
    co_return local.reference;  // An image of this machine's engine, which the nodes share.
  co_return co_await published_.publish(local, step, events, cancel);
}

}  // namespace pipeline::orchestrators::kubernetes
