#include "docker/short_container.hpp"

#include <exception>
#include <functional>
#include <optional>

#include <nlohmann/json.hpp>

#include "async/joinable_task.hpp"
#include "core/error.hpp"
#include "core/lines.hpp"
#include "core/log.hpp"
#include "core/text.hpp"
#include "docker/step_rights.hpp"

namespace pipeline::docker {
namespace {

constexpr std::size_t max_printed = 4 << 20, max_printed_line = 64 << 10;

/// Calls on_line with each line while the container prints it.
async::Task<> follow(EngineApi& engine, std::string id,
                     std::function<void(std::string_view)> on_line, core::CancelSource& over) {
  core::Lines lines(max_printed_line);
  const std::function<void(bool, std::string_view)> feed = [&](bool, std::string_view bytes) {
    lines.feed(bytes, on_line);
  };
  co_await engine.follow_logs(std::move(id), feed, &over);
}

}  // namespace

async::Task<ContainerOutput> run_to_end(EngineApi& engine, std::string name, nlohmann::json body,
                                        std::vector<file_tree::ContextFile> files,
                                        std::string platform, core::CancelSource* cancel,
                                        std::function<void(std::string_view)> on_line) {
  ContainerOutput output;
  core::CancelSource never;
  withhold_rights(body["HostConfig"]);
  const auto id =
      co_await engine.create_container(name, std::move(body), std::move(platform), cancel);
  std::exception_ptr error;
  const auto executor = co_await asio::this_coro::executor;
  core::CancelSource over;
  std::optional<async::JoinableTask> following;
  try {
    if (!files.empty()) {
      const std::function<net::BodySource()> tar = [&] { return file_tree::tar_stream(files); };
      co_await engine.put_archive(id, "/", tar, cancel ? *cancel : never);
    }
    co_await engine.start_container(id, cancel);
    if (on_line) following.emplace(executor, follow(engine, id, std::move(on_line), over));
    output.exit_code = co_await engine.wait_container(id, "not-running", {}, cancel);
    // The container has ended: this reads all of its output, whatever follow() has seen.
    const std::function<void(bool, std::string_view)> keep = [&](bool, std::string_view bytes) {
      core::append_bounded(output.text, bytes, max_printed);
    };
    co_await engine.follow_logs(id, keep, cancel);
  } catch (...) {
    error = std::current_exception();
  }
  over.stop(core::StopLevel::immediate);
  if (following) co_await following->join();  // An error of follow() is ignored.
  try {
    co_await engine.remove_container(id);
  } catch (const core::EnvironmentError& left) {
    if (!error) throw;  // Otherwise the first error is reported.
    core::log::warn(std::string(left.what()) + "; `pipe clean --containers` removes it");
  }
  if (error) std::rethrow_exception(error);
  co_return output;
}

}  // namespace pipeline::docker
