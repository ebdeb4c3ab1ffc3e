#include "remote_cache/remote_names.hpp"

#include <chrono>
#include <exception>
#include <map>
#include <optional>
#include <random>
#include <utility>

#include <nlohmann/json.hpp>

#include "async/sleep.hpp"
#include "core/bounded_json.hpp"
#include "core/error.hpp"
#include "core/random_name.hpp"

namespace pipeline::remote_cache {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;

constexpr int names_format = 1;
constexpr std::string_view names_folder = "published/", record_suffix = ".json";
/// A process begins no write once its claim is older. A write that has begun ends within a minute.
constexpr SteadyClock::duration max_turn = 10s;
/// A claim that is seen for longer belongs to a process that was killed: a living process withdraws
/// its claim after `max_turn` and a minute at most.
constexpr SteadyClock::duration claim_lifetime = 90s;
constexpr std::chrono::milliseconds look_interval = 50ms;

std::string record_of(const std::string& name) {
  return std::string(names_folder) + name + std::string(record_suffix);
}
std::string claims_of(const std::string& name) {
  return std::string(names_folder) + name + ".claims/";
}

/// The turn to change a record. Most servers know conditional writes, which `put_if` uses, but not
/// all. So a process first writes a claim, and then looks for other claims. Of two processes at
/// least one sees the other's claim, because servers list at once what was written. The process
/// whose claim comes first in the alphabet waits until the other one has withdrawn its claim.
class NameTurn {
 public:
  NameTurn(blobs::BlobStore& store, const std::string& name, SteadyClock::time_point latest)
      : store_(store), name_(name), latest_(latest) {}

  async::Task<> begin() {
    for (;;) {
      if (SteadyClock::now() > latest_)
        throw core::EnvironmentError(
            "the artifact '" + name_ +
            "' in the remote store could not be changed for minutes, because other processes "
            "claimed its record: " +
            claims_of(name_));
      // Each claim has a new name, so that a claim that stays belongs to a killed process.
      claim_ = claims_of(name_) + core::random_name();
      began_ = SteadyClock::now();
      auto body = blobs::body_of("a process changes the record of this name\n");
      co_await store_.put(claim_, std::move(body));
      bool is_mine = false;
      std::exception_ptr failed;
      try {
        is_mine = co_await is_alone();
      } catch (...) {
        failed = std::current_exception();
      }
      if (is_mine) co_return;
      co_await end();
      if (failed) std::rethrow_exception(failed);
      co_await async::sleep(look_interval * std::uniform_int_distribution<int>(1, 10)(random_),
                            nullptr);
    }
  }
  bool has_time() const { return SteadyClock::now() - began_ < max_turn; }
  async::Task<> end() { co_await store_.remove(claim_); }

 private:
  async::Task<bool> is_alone() {
    while (has_time()) {
      const auto claims = co_await store_.list(claims_of(name_));
      bool has_others = false, has_earlier = false;
      for (const auto& other : claims) {
        if (other == claim_) continue;
        has_others = true;
        has_earlier |= other < claim_;
        const auto first = seen_.try_emplace(other, SteadyClock::now()).first->second;
        if (SteadyClock::now() - first > claim_lifetime) co_await store_.remove(other);
      }
      if (!has_others) co_return has_time();
      if (has_earlier) co_return false;
      co_await async::sleep(look_interval, nullptr);
    }
    co_return false;
  }

  blobs::BlobStore& store_;
  const std::string name_;
  const SteadyClock::time_point latest_;
  std::string claim_;
  SteadyClock::time_point began_;
  std::map<std::string, SteadyClock::time_point> seen_;  ///< Others' claims.
  std::minstd_rand random_{std::random_device{}()};
};

}  // namespace

struct RemoteNames::Found {
  explicit Found(const std::string& artifact) { name.name = artifact; }
  store::PublishedName name;
  std::string tag;     ///< Tag of the record; empty if there is no record.
  std::string change;  ///< The random name of the change that wrote the record.
};

async::Task<RemoteNames::Found> RemoteNames::read(std::string name) {
  Found found(name);
  auto text = co_await remote_.store().find_tagged(record_of(name));
  if (!text) co_return found;
  const auto record = core::parse_json(text->text);
  if (!record.is_object() || !record.contains("name") || !record.contains("change"))
    throw core::EnvironmentError("the record of the artifact '" + name + "' in " + remote_.url() +
                                 " is damaged");
  if (record.value("format", nlohmann::json()) != names_format)
    throw core::EnvironmentError("the record of the artifact '" + name + "' in " + remote_.url() +
                                     " was written by another version of pipe",
                                 {"use that version here, too"});
  found.name = store::read_published(name, record["name"].dump());
  found.tag = std::move(text->tag);
  if (record["change"].is_string()) found.change = record["change"].get<std::string>();
  co_return found;
}

async::Task<store::PublishedName> RemoteNames::find(std::string name) {
  auto found = co_await read(std::move(name));
  co_return std::move(found.name);
}

async::Task<std::vector<std::string>> RemoteNames::names() {
  std::vector<std::string> names;
  const auto objects = co_await remote_.store().list(std::string(names_folder));
  for (const auto& object : objects) {
    auto name = object.substr(names_folder.size());
    if (name.find('/') != name.npos || !name.ends_with(record_suffix)) continue;
    name.resize(name.size() - record_suffix.size());
    names.push_back(std::move(name));
  }
  co_return names;
}

async::Task<unsigned> RemoteNames::publish(std::string name, store::PublishedVersion made) {
  const auto present = co_await read(name);
  if (const auto* same = present.name.find_content(made.output.digest)) co_return same->version;
  co_await send(made);
  const Edit edit = [&](store::PublishedName& all) { return all.publish(made); };
  co_return co_await change(std::move(name), edit);
}

async::Task<> RemoteNames::send(store::PublishedVersion& made) {
  const auto path = artifacts_.path(made.output.digest);
  made.is_executable = !made.output.is_directory && blobs::is_executable_file(path);
  co_await remote_.send(made.output.digest.hex(), path, nullptr);
}

async::Task<unsigned> RemoteNames::change(std::string name, Edit edit) {
  auto& store = remote_.store();
  const auto id = core::random_name();
  NameTurn turn(store, name, SteadyClock::now() + max_wait_);
  std::optional<unsigned> result;
  for (bool is_done = false; !is_done;) {
    co_await turn.begin();
    std::exception_ptr failed;
    try {
      auto found = co_await read(name);
      // If the record has this change already, the answer to its write was lost.
      is_done = found.change == id && result;
      if (!is_done && turn.has_time()) {
        result = edit(found.name);
        json record;
        record["format"] = names_format;
        record["change"] = id;
        record["name"] = core::parse_json(store::text_of(found.name));
        const auto written =
            co_await store.put_if(record_of(name), record.dump() + "\n", found.tag);
        is_done = written.has_value();
      }
    } catch (...) {
      failed = std::current_exception();
    }
    co_await turn.end();
    if (failed) std::rethrow_exception(failed);
    if (!is_done) co_await async::sleep(look_interval, nullptr);
  }
  co_return *result;
}

}  // namespace pipeline::remote_cache
