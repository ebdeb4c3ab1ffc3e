#include "kubernetes_api/lease.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "async/sleep.hpp"
#include "core/log.hpp"
#include "kubernetes_api/json.hpp"
#include "kubernetes_api/time.hpp"

namespace pipeline::kubernetes_api {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr const char* group = "coordination.k8s.io/v1";
constexpr const char* message_annotation = "pipe.word";  ///< Earlier drivers read this name.
constexpr std::chrono::seconds poll_interval{1};         ///< Time between reads while waiting.
constexpr std::chrono::milliseconds renewal_timeout{3'000};

/// Returns the time as a MicroTime, which has exactly six fractional digits.
std::string micro_now() {
  const auto now = std::chrono::system_clock::now();
  const auto micros =
      std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch()).count() %
      1'000'000;
  char digits[16];
  std::snprintf(digits, sizeof digits, ".%06lldZ", static_cast<long long>(micros));
  auto text = format_time(now);
  return text.substr(0, text.size() - 1) + digits;
}

json manifest(const std::string& name, const json& owners) {
  json lease{
      {"apiVersion", group},
      {"kind", "Lease"},
      {"metadata", {{"name", name}, {"labels", {{"app.kubernetes.io/managed-by", "pipe"}}}}}};
  if (!owners.is_null()) lease["metadata"]["ownerReferences"] = owners;
  return lease;
}

/// Returns the Lease; null if it does not exist.
async::Task<json> read(Client& client, std::string name) {
  try {
    co_return co_await client.get("read the Lease " + name, client.path(group, "leases", name));
  } catch (const ApiError& error) {
    if (error.status() != 404) throw;
  }
  co_return json();
}

/// Creates a Lease; returns false if another process created it first.
async::Task<bool> make(Client& client, json lease) {
  try {
    co_await client.create("create the Lease " + text_at(lease, "/metadata/name"),
                           client.path(group, "leases"), lease);
  } catch (const ApiError& error) {
    if (error.status() != 409) throw;
    co_return false;
  }
  co_return true;
}

}  // namespace

Lease::Lease(Client& client, std::string name, std::string holder, LeaseTerms terms)
    : client_(client), name_(std::move(name)), holder_(std::move(holder)), terms_(terms) {}

void Lease::take_message(const json& lease) {
  const auto& annotations = at(lease, "/metadata/annotations");
  auto message = annotations.is_object() ? annotations.value(message_annotation, std::string())
                                         : std::string();
  if (message.empty() || message == last_message_) return;
  last_message_ = std::move(message);
  if (on_message) on_message(last_message_);
}

async::Task<bool> Lease::create() {
  auto lease = manifest(name_, owners);
  const auto now = micro_now();
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(terms_.duration).count();
  lease["spec"] = {{"holderIdentity", holder_},
                   {"leaseDurationSeconds", seconds},
                   {"acquireTime", now},
                   {"renewTime", now}};
  co_return co_await make(client_, std::move(lease));
}

/// Takes the Lease if it still has this version: the server accepts only one of several concurrent
/// patches. Returns false if another process was faster.
async::Task<bool> Lease::take(json lease) {
  const auto now = micro_now();
  json change;
  change["metadata"]["resourceVersion"] = text_at(lease, "/metadata/resourceVersion");
  change["spec"] = {
      {"holderIdentity", holder_},
      {"leaseDurationSeconds", std::chrono::ceil<std::chrono::seconds>(terms_.duration).count()},
      {"acquireTime", now},
      {"renewTime", now},
      {"leaseTransitions", number_at(lease, "/spec/leaseTransitions") + 1}};
  json taken;
  try {
    taken = co_await client_.patch("take the Lease " + name_, path(), std::move(change));
  } catch (const ApiError& error) {
    if (error.status() != 409 && error.status() != 404) throw;
    co_return false;
  }
  take_message(taken);
  co_return true;
}

async::Task<> Lease::acquire(std::function<void(const std::string&)> on_wait) {
  std::string seen;
  auto since = Clock::now();
  for (;;) {
    const auto began = Clock::now();
    auto lease = co_await read(client_, name_);
    const auto holder = text_at(lease, "/spec/holderIdentity");
    bool is_ours = false;
    if (lease.is_null()) {
      is_ours = co_await create();
    } else {
      auto sign = holder + " " + text_at(lease, "/spec/renewTime");
      if (sign != seen) {
        seen = std::move(sign);
        since = Clock::now();
      }
      const bool is_free =
          holder.empty() || holder == holder_ || Clock::now() - since >= terms_.duration;
      if (is_free) is_ours = co_await take(std::move(lease));
    }
    if (is_ours) {
      renewed_ = began;
      co_return;
    }
    if (on_wait && !holder.empty()) std::exchange(on_wait, {})(holder);
    co_await async::sleep(std::min<std::chrono::milliseconds>(poll_interval, terms_.pause));
  }
}

async::Task<bool> Lease::keep(core::CancelSource& stop) {
  for (;;) {
    co_await async::sleep(terms_.pause, &stop);
    if (stop.level() != core::StopLevel::none) co_return true;
    const auto began = Clock::now();
    ApiCall call("renew the Lease " + name_, "PATCH", path());
    call.body = json{{"spec", {{"renewTime", micro_now()}}}};
    call.body_type = "application/merge-patch+json";
    call.timeout = std::min(renewal_timeout, terms_.deadline / 2);
    call.max_tries = 1;
    bool is_gone = false;
    try {
      const auto lease = co_await client_.call(std::move(call));
      if (text_at(lease, "/spec/holderIdentity") != holder_) co_return false;
      renewed_ = began;
      take_message(lease);
    } catch (const ApiError& error) {
      is_gone = error.status() == 404;
      core::log::warn(error.what());
    } catch (const core::EnvironmentError& error) {
      core::log::warn(error.what());
    }
    // The cluster may have garbage-collected the Lease with the Job that owned it.
    if (is_gone) {
      const bool is_ours = co_await create();
      if (!is_ours) co_return false;
      renewed_ = began;
    }
    if (!is_fresh()) co_return false;
  }
}

async::Task<> Lease::release() {
  const auto lease = co_await read(client_, name_);
  if (text_at(lease, "/spec/holderIdentity") != holder_) co_return;
  json change;
  change["metadata"]["resourceVersion"] = text_at(lease, "/metadata/resourceVersion");
  change["spec"]["holderIdentity"] = "";
  try {
    co_await client_.patch("release the Lease " + name_, path(), std::move(change));
  } catch (const ApiError& error) {
    if (error.status() != 409 && error.status() != 404) throw;
  }
}

async::Task<> Lease::remove() {
  return client_.remove("delete the Lease " + name_, path(), {}, std::nullopt);
}

async::Task<> leave_message(Client& client, std::string name, std::string message, json owners) {
  json change;
  change["metadata"]["annotations"][message_annotation] = message;
  for (;;) {
    bool is_there = true;
    try {
      co_await client.patch("leave a message at the Lease " + name,
                            client.path(group, "leases", name), change);
    } catch (const ApiError& error) {
      if (error.status() != 404) throw;
      is_there = false;
    }
    if (is_there) co_return;
    auto lease = manifest(name, owners);
    lease["metadata"]["annotations"] = change["metadata"]["annotations"];
    const bool made = co_await make(client, std::move(lease));
    if (made) co_return;
  }
}

async::Task<LeaseHolder> holder_of(Client& client, std::string name) {
  const auto lease = co_await read(client, std::move(name));
  LeaseHolder holder;
  holder.name = text_at(lease, "/spec/holderIdentity");
  holder.renewed = text_at(lease, "/spec/renewTime");
  co_return holder;
}

}  // namespace pipeline::kubernetes_api
