// The parts of PodStaging for inputs that pods fetch from addresses by themselves.
#include "async/sleep.hpp"
#include "core/bounded_json.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "orchestrators/kubernetes/pod_staging.hpp"
#include "orchestrators/kubernetes/staging_keys.hpp"

namespace pipeline::orchestrators::kubernetes {

using nlohmann::json;
using Method = blobs::PodAccess::Method;

namespace {

constexpr std::chrono::seconds between_looks{2};
// The list of a larger folder is longer than what a pod reads.
constexpr std::size_t max_files = 100'000;

}  // namespace

std::vector<std::string> addresses_of(const Attempt& attempt) {
  std::vector<std::string> names;
  for (const auto& input : attempt.inputs)
    if (input.remote) names.push_back(input.name);
  return names;
}

/// Describes content that the pod fetches from its address, or from the store if that has it.
async::Task<json> PodStaging::address_item(const Attempt& attempt, std::string to,
                                           const AttemptInput& input) {
  const auto& remote = *input.remote;
  const auto key = blobs::RemoteArtifacts::key_of(input.digest, remote.is_folder);
  json made;
  made["to"] = std::move(to);
  made["kind"] = remote.is_folder ? "tree" : "file";
  made["digest"] = input.digest;
  made["url"] = co_await pods_.presigned(Method::read, key);
  const bool is_there = co_await artifacts_.has(key);
  if (is_there) co_return made;
  if (auto from = co_await source(attempt, input, key); !from.is_null())
    made["source"] = std::move(from);
  else
    co_await upload_address(input, attempt.io.cancel);
  co_return made;
}

/// Returns what the stager needs to fetch from the address; null if it cannot fetch from there.
async::Task<json> PodStaging::source(const Attempt& attempt, const AttemptInput& input,
                                     const std::string& key) {
  const auto& remote = *input.remote;
  if (unreached_.contains(remote.server)) co_return json();
  std::vector<RemoteFile> files;
  try {
    files = co_await remote.files();
  } catch (const core::EnvironmentError& error) {  // This machine may have the content.
    core::log::info(error.what());
  }
  if (files.empty() || files.size() > max_files) co_return json();
  json made;
  made["shown"] = remote.shown;
  made["size"] = remote.size;
  if (remote.is_folder) {
    json list = json::array();
    for (auto& file : files) {
      json entry;
      entry["path"] = std::move(file.path);
      entry["url"] = std::move(file.url);
      list.push_back(std::move(entry));
    }
    const auto name = list_key(folder_of(attempt), input.name);
    co_await store_.put(name, blobs::body_of(list.dump()), &attempt.io.cancel);
    made["files"] = co_await pods_.presigned(Method::read, name);
    co_return made;
  }
  made["url"] = std::move(files.front().url);
  if (remote.is_public && kept_.insert(key).second)
    made["keep"] = co_await pods_.presigned(Method::write, key);
  co_return made;
}

async::Task<> PodStaging::upload_address(const AttemptInput& input, core::CancelSource& stop) {
  co_await input.remote->fetch(stop);
  co_await artifacts_.send(input.digest, input.path, &stop);
}

async::Task<> PodStaging::upload_wanted(const Attempt& attempt, core::CancelSource& enough) {
  const auto key = wanted_key(folder_of(attempt));
  std::optional<std::string> text;
  while (!text) {
    co_await async::sleep(between_looks, &enough);
    if (enough.level() != core::StopLevel::none) co_return;
    try {
      text = co_await store_.find_text(key, &enough, blobs::Lookup::optional);
    } catch (const core::EnvironmentError& error) {
      core::log::info(error.what());
    }
  }
  const auto wanted = core::parse_json(*text);
  for (const auto& input : attempt.inputs) {
    if (!input.remote || !wanted.is_object() || !wanted.contains(input.digest)) continue;
    unreached_.insert(input.remote->server);
    const auto& why = wanted[input.digest];
    attempt.io.log.write(Stream::err, "[kubernetes] the pod cannot fetch " + input.remote->shown +
                                          ", so this driver uploads it: " +
                                          (why.is_string() ? why.get<std::string>() : "") + "\n");
    co_await upload_address(input, enough);
  }
}

}  // namespace pipeline::orchestrators::kubernetes
