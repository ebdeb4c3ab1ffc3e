#include "docker/layer_image.hpp"

#include <nlohmann/json.hpp>

#include "docker/build_log.hpp"
#include "docker/build_report.hpp"
#include "docker/context.hpp"
#include "docker/engine_connection.hpp"
#include "docker/json_text.hpp"
#include "net/url.hpp"

namespace pipeline::docker {
namespace {

/// A single instruction copies this folder into the image, so that it is one layer.
constexpr const char* layer_folder = "layer";

/// Builds the image and returns its id. Throws BuildError and EnvironmentError.
async::Task<std::string> run_build(EngineApi& engine, LayerImage image, EventSink& events,
                                   core::CancelSource& cancel) {
  const auto* info = co_await engine.info();
  const std::string dockerfile = "FROM " + image.from + "\nCOPY " + layer_folder + "/ /\n";
  std::vector<ContextFile> files;
  files.push_back({.path = layer_folder, .mode = 0755, .kind = ContextFile::Kind::directory});
  for (auto& each : image.files()) {
    each.path = std::string(layer_folder) + "/" + each.path;
    files.push_back(std::move(each));
  }
  files.push_back({.path = "Dockerfile", .content = dockerfile, .bytes = dockerfile.size()});
  const nlohmann::json labels{
      {"pipe.image", image.kind}, {"pipe.digest", image.digest}, {"pipe.run", image.run_id}};
  std::string query = std::string("version=") + (info->buildkit ? "2" : "1") +
                      "&rm=1&forcerm=1&t=" + net::url_encode(image.reference) +
                      "&labels=" + net::url_encode(labels.dump());
  if (!image.platform.empty()) query += "&platform=" + net::url_encode(image.platform);
  const auto context = file_tree::tar_stream(std::move(files));
  BuildLog log([&](const std::string& line) {
    events.emit(event::BuildProgress{image.reference, line});
  });
  const std::function<void(const nlohmann::json&)> on_message = [&](const nlohmann::json& message) {
    log.read(message);
  };
  co_await engine.build(query, "", context, on_message, cancel);
  if (log.failed())
    throw core::BuildError("the " + image.kind + " could not be put into the image " +
                               image.reference + ": " + log.error(),
                           log.last_lines(15), {});
  const auto made = co_await engine.inspect_image(image.reference, image.platform);
  if (!made) throw vanished_image_error(image.reference);
  co_return (*made)["Id"].get<std::string>();
}

}  // namespace

core::BuildError vanished_image_error(const std::string& reference) {
  return core::BuildError(
      "the engine built " + reference + " without an error, but does not have it", {},
      {"if another program removes images at this moment (docker image prune), run again"});
}

async::Task<std::string> layer_image_id(EngineApi& engine, std::string reference,
                                        std::string digest, std::string platform) {
  const auto image = co_await engine.inspect_image(reference, platform);
  if (!image) co_return std::string();
  const auto labels =
      image->value(nlohmann::json::json_pointer("/Config/Labels"), nlohmann::json());
  if (text_at(labels, "pipe.digest") != digest) co_return std::string();
  co_return (*image)["Id"].get<std::string>();
}

async::Task<std::string> build_layer_image(EngineApi& engine, LayerImage image, std::string step,
                                           std::string reason, EventSink& events,
                                           core::CancelSource& cancel) {
  const BuildReport report{image.reference, step, reason};
  co_return co_await reported(run_build(engine, image, events, cancel), report, events, cancel);
}

}  // namespace pipeline::docker
