#include "remote_driver/held_lease.hpp"

#include <unistd.h>

#include <random>

#include "core/error.hpp"

namespace pipeline::remote_driver {
namespace {

/// Returns a name that no other process has: `HOST_PID-RANDOM`. In a cluster, the host name is the
/// pod's name.
std::string unique_holder() {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  return std::string(host) + "_" + std::to_string(::getpid()) + "-" +
         std::to_string(std::random_device{}());
}

}  // namespace

HeldLease::HeldLease(DriverContext context, const kubernetes_api::AccessOptions& cluster,
                     const std::string& name, std::function<void(const std::string&)> on_message,
                     nlohmann::json owners)
    : context_(std::move(context)),
      name_(name),
      holder_(unique_holder()),
      client_(context_.loop, kubernetes_api::find_cluster(cluster)),
      lease_(client_, name_, holder_) {
  lease_.on_message = std::move(on_message);
  lease_.owners = std::move(owners);
  context_.await(lease_.acquire([&](const std::string& other) {
    context_.note("waiting for the run's Lease " + name_ + ", which " + other + " holds");
  }));
  keeping_.emplace(context_.loop.get_executor(), keep());
}

void HeldLease::guard(store::RunStore& store) {
  guarded_ = &store;
  store.before_commit([this] { check(); });
}

HeldLease::~HeldLease() {
  if (guarded_) guarded_->before_commit({});
  stop_.stop(core::StopLevel::immediate);
  try {
    context_.await(finish());
  } catch (const core::EnvironmentError& error) {
    context_.note(std::string("note: ") + error.what());
  }
}

async::Task<> HeldLease::keep() {
  std::string why = "another process has it, or may have it from now on";
  try {
    const bool kept = co_await lease_.keep(stop_);
    if (kept) co_return;
  } catch (const core::EnvironmentError& error) {
    why = error.what();
  }
  exit_without_lease(why);
}

void HeldLease::exit_without_lease(const std::string& why) const {
  context_.note("the run's Lease " + name_ + " is lost (" + why +
                "): running steps are left to the next driver of the run");
  ::_exit(static_cast<int>(core::ExitCode::environment));
}

void HeldLease::check() const {
  if (!lease_.is_fresh())
    exit_without_lease("it was not renewed in time, and another process may have it");
}

async::Task<> HeldLease::finish() {
  co_await keeping_->join();
  if (has_run_ended_)
    co_await lease_.remove();
  else
    co_await lease_.release();
}

void HeldLease::hand_on() {
  try {
    asio::io_context loop;
    kubernetes_api::Client client(loop, client_.access(), {.max_tries = 1});
    kubernetes_api::Lease lease(client, name_, holder_);
    async::await(loop, lease.release());
  } catch (const std::exception& error) {
    context_.note(std::string("note: ") + error.what() +
                  "; the next driver waits until the Lease has run out");
  }
  ::_exit(static_cast<int>(core::ExitCode::interrupted));
}

}  // namespace pipeline::remote_driver
