#include "remote_cache/run_outputs.hpp"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "async/await.hpp"
#include "core/bounded_json.hpp"
#include "core/diagnostic.hpp"
#include "core/file.hpp"
#include "engine/cache/cache_exchange.hpp"
#include "remote_cache/blob_cache.hpp"

namespace pipeline::remote_cache {
namespace {

settings::RemoteStoreSettings store_of(const std::string& text) {
  return settings::remote_store_of(core::parse_json(text));
}

}  // namespace

RunOutputs::RunOutputs(asio::io_context& loop, store::ArtifactStore& artifacts,
                       std::filesystem::path state, const settings::RemoteStoreSettings& remote)
    : loop_(loop), artifacts_(artifacts), state_(std::move(state)) {
  if (remote.is_given()) open(remote);
}

void RunOutputs::open(const settings::RemoteStoreSettings& remote) {
  remote_.emplace(loop_, remote);
  cache_ = make_blob_cache(*remote_, artifacts_);
}

bool RunOutputs::is_here(const store::OutputRecord& output) const {
  return (!remote_ && !artifacts_.elsewhere(output.digest)) ||
         artifacts_.looks_whole(output.digest);
}

std::string RunOutputs::location(const store::OutputRecord& output) const {
  if (is_here(output)) return artifacts_.path(output.digest).string();
  const auto place = artifacts_.elsewhere(output.digest);
  const auto url = remote_ ? remote_->url() : store_of(place->store).url;
  return url + "/" + blobs::RemoteArtifacts::key_of(output.digest.hex(), output.is_directory);
}

void RunOutputs::fetch(const store::StepRecord& step, const store::OutputRecord& output) {
  if (output.temp && !remote_ && !artifacts_.is_known(output.digest))
    throw core::InputError("the output '" + step.name + "." + output.name +
                               "' is temporary: it was removed when no step needed it any more",
                           "leave out its `temp: true`, and run again");
  if (is_here(output)) return;
  if (const auto place = open_noted(output.digest)) return download({output, place->is_executable});
  const core::EnvironmentError lost("the output '" + step.name + "." + output.name +
                                    "' is not on this machine, and " + cache_->name() +
                                    " no longer has it");
  const auto result = async::await(loop_, cache_->find(step.key, nullptr));
  if (!result) throw lost;
  const auto found = std::ranges::find_if(result->outputs, [&](const engine::RemoteOutput& each) {
    return each.record.digest == output.digest;
  });
  if (found == result->outputs.end()) throw lost;
  download(*found);
}

void RunOutputs::fetch(const store::PublishedVersion& version) {
  if (is_here(version.output)) return;
  open_noted(version.output.digest);
  download({version.output, version.is_executable});
}

std::optional<model::Elsewhere> RunOutputs::open_noted(const core::Digest& digest) {
  auto place = artifacts_.elsewhere(digest);
  if (place && !remote_) open(store_of(place->store));
  return place;
}

void RunOutputs::download(const engine::RemoteOutput& output) {
  const core::TemporaryFolder folder(state_);
  asio::thread_pool pool(1);
  core::CancelSource never;
  async::await(
      loop_, engine::download(*cache_, output,
                              {artifacts_, folder.path() / output.record.file_name, pool}, never));
}

}  // namespace pipeline::remote_cache
