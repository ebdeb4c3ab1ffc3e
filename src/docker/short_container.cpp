#include "docker/short_container.hpp"

#include <algorithm>
#include <exception>
#include <functional>

#include <nlohmann/json.hpp>

namespace pipeline::docker {
namespace {

constexpr std::size_t most_printed = 4 << 20;

}  // namespace

async::Task<ContainerOutput> run_to_end(EngineApi& engine, std::string name, nlohmann::json body,
                                        std::vector<archive::ContextFile> files,
                                        std::string platform, core::CancelSource* cancel) {
  ContainerOutput output;
  core::CancelSource never;
  const auto id =
      co_await engine.create_container(name, std::move(body), std::move(platform), cancel);
  std::exception_ptr error;
  try {
    if (!files.empty()) {
      const std::function<net::BodySource()> tar = [&] { return archive::tar_stream(files); };
      co_await engine.put_archive(id, "/", tar, cancel ? *cancel : never);
    }
    co_await engine.start_container(id, cancel);
    output.code = co_await engine.wait_container(id, "not-running", {}, cancel);
    const std::function<void(bool, std::string_view)> keep = [&](bool, std::string_view bytes) {
      output.text += bytes.substr(0, most_printed - std::min(most_printed, output.text.size()));
    };
    co_await engine.follow_logs(id, keep, cancel);
  } catch (...) {
    error = std::current_exception();
  }
  co_await engine.remove_container(id);
  if (error) std::rethrow_exception(error);
  co_return output;
}

}  // namespace pipeline::docker
