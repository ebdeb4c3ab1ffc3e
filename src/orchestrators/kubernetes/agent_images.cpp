#include "orchestrators/kubernetes/agent_images.hpp"

#include "core/digest.hpp"
#include "docker/layer_image.hpp"
#include "kubernetes/agent.hpp"
#include "orchestrators/kubernetes/manifest.hpp"

namespace pipeline {
namespace {

/// Paths in the image are without the leading slash.
std::vector<docker::ContextFile> agent_files() {
  const auto program = kubernetes::agent_program();
  std::vector<docker::ContextFile> files;
  files.push_back({.path = "pipe", .mode = 0755, .kind = docker::ContextFile::Kind::directory});
  files.push_back({.path = agent_in_image + 1, .content = std::string(program), .bytes = program.size(), .mode = 0555});
  return files;
}

}  // namespace

Task<std::string> AgentImages::ensure(std::string repository, std::string step, EventSink& events, CancelSource& cancel) {
  const std::function<Task<std::string>()> make_it = [&]() { return make(repository, step, events, cancel); };
  co_return co_await ready_.get(repository, make_it, &cancel);
}

Task<std::string> AgentImages::make(std::string repository, std::string step, EventSink& events, CancelSource& cancel) {
  docker::LayerImage image;
  image.kind = "agent";
  image.digest = Hasher().field("pipe agent 1").field(kubernetes::agent_program()).finish().hex();
  image.reference = repository + ":agent-" + image.digest.substr(0, 16);
  image.from = "scratch";
  image.run_id = run_id_;
  image.files = agent_files;
  docker::LocalImage local;
  local.reference = image.reference;
  local.id = co_await docker::layer_image_id(engine_, image.reference, image.digest);
  const std::string reason = "new: what starts a step's command in its pod";
  if (local.id.empty()) local.id = co_await docker::build_layer_image(engine_, image, step, reason, events, cancel);
  co_return co_await published_.publish(local, step, events, cancel);
}

}  // namespace pipeline
