#include "remote_driver/run_mirror.hpp"

#include "core/error.hpp"
#include "core/identifier.hpp"
#include "core/log.hpp"

namespace pipeline::remote_driver {
namespace {

constexpr std::chrono::seconds mirror_pause{2};
constexpr async::RetryPolicy mirror_retries{.first_pause = std::chrono::milliseconds(200),
                                            .max_pause = std::chrono::milliseconds(1'000),
                                            .max_tries = 3};

}  // namespace

RunMirror::RunMirror(asio::io_context& loop, const settings::RemoteStoreSettings& remote,
                     const std::filesystem::path& folder)
    : pause_(loop), artifacts_(loop, remote, mirror_retries), store_(folder) {}

async::Task<> RunMirror::refresh() {
  const auto found = co_await artifacts_.store().folders("drivers");
  for (const auto& run : found) {
    if (is_stopped_) co_return;
    if (!core::is_name(run)) continue;
    try {
      co_await download(run);
    } catch (const core::EnvironmentError& error) {
      report("run " + run + ": " + error.what());
    }
  }
}

async::Task<> RunMirror::download(std::string run) {
  const auto before = store_.key_values().find(store::saved_kind, run);
  auto& replica = replicas_.try_emplace(run, artifacts_, run).first->second;
  co_await replica.download(store_);
  if (store_.key_values().find(store::saved_kind, run) != before)
    store_.drivers().record_heartbeat(run);
}

async::Task<> RunMirror::follow(std::function<void(const std::string&)> on_trouble) {
  on_trouble_ = std::move(on_trouble);
  while (!is_stopped_) {
    pause_.expires_after(mirror_pause);
    boost::system::error_code stopped;
    co_await pause_.async_wait(asio::redirect_error(asio::use_awaitable, stopped));
    if (is_stopped_) co_return;
    try {
      co_await refresh();
    } catch (const core::EnvironmentError& error) {
      report(error.what());
    }
  }
}

void RunMirror::stop() {
  is_stopped_ = true;
  pause_.cancel();
}

void RunMirror::report(const std::string& trouble) {
  core::log::info(trouble);
  if (on_trouble_ && reported_.insert(trouble).second) on_trouble_(trouble);
}

}  // namespace pipeline::remote_driver
