#include "orchestrators/kubernetes/driver_image.hpp"

#include "agent/programs.hpp"
#include "core/digest.hpp"
#include "docker/layer_image.hpp"
#include "docker/program_image.hpp"
#include "docker/published_images.hpp"
#include "model/running_program.hpp"
#include "net/trust.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

namespace fs = std::filesystem;
using docker::ContextFile;

constexpr const char* authorities_in_driver_image = "/etc/ssl/certs/ca-certificates.crt";

/// Returns the files, folders before their content.
std::vector<ContextFile> files_of(const Program& program) {
  auto files = docker::program_files(program);
  const auto authorities = net::authorities_file();
  std::error_code error;
  const auto bytes = fs::file_size(authorities, error);
  if (error) return files;
  for (const char* folder : {"etc", "etc/ssl", "etc/ssl/certs"})
    files.push_back({.path = folder, .mode = 0755, .kind = ContextFile::Kind::directory});
  files.push_back({.path = authorities_in_driver_image + 1,
                   .source = authorities,
                   .bytes = bytes,
                   .mode = 0644});
  return files;
}

}  // namespace

async::Task<DriverImage> make_driver_image(asio::io_context& loop, std::string repository,
                                           std::string run_id, EventSink& events,
                                           core::CancelSource& cancel) {
  const auto program = model::running_program();
  core::Hasher hasher;
  hasher.field("pipe driver 1");
  for (const auto& each : files_of(program))
    hasher.field(each.path).field(
        each.kind == ContextFile::Kind::file ? core::sha256_file(each.source).hex() : "");
  docker::LayerImage image;
  image.kind = "driver";
  image.digest = hasher.finish().hex();
  image.reference =
      (repository.empty() ? "pipe" : repository) + ":driver-" + image.digest.substr(0, 16);
  image.from = "scratch";
  image.run_id = run_id;
  image.files = [&program] { return files_of(program); };

  docker::EngineApi engine(loop, docker::find_endpoint());
  docker::LocalImage local;
  local.reference = image.reference;
  local.id = co_await docker::layer_image_id(engine, image.reference, image.digest, image.platform);
  const std::string step = "driver", reason = "new: this program, to drive runs in a cluster";
  if (local.id.empty())
    local.id = co_await docker::build_layer_image(engine, image, step, reason, events, cancel);
  DriverImage made;
  made.reference = image.reference;
  made.command = docker::program_words(program, {});
  made.architecture = agent::own_architecture;
  if (!repository.empty()) {
    docker::PublishedImages published(loop, engine);
    made.reference = co_await published.publish(local, step, events, cancel);
    made.pull = true;
  }
  co_return made;
}

}  // namespace pipeline::orchestrators::kubernetes
