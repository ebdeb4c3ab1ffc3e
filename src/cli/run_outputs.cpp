#include "cli/run_outputs.hpp"

#include <algorithm>

#include "cli/bucket_cache.hpp"
#include "cli/invocation.hpp"
#include "core/file.hpp"
#include "engine/cache_exchange.hpp"

namespace pipeline::cli {

RunOutputs::RunOutputs(Context& context, store::RunStore& runs, const store::RunRecord& run)
    : context_(context), state_(runs.folder()) {
  const auto options = invocation_of(runs, run.id, {});
  if (!options || !options->artifact_store.is_given()) return;
  bucket_.emplace(context.loop(), options->artifact_store);
  shared_ = make_bucket_cache(*bucket_, context.artifacts());
}

bool RunOutputs::is_here(const store::OutputRecord& output) const {
  return !bucket_ || context_.artifacts().looks_whole(output.digest);
}

std::string RunOutputs::place(const store::OutputRecord& output) const {
  if (is_here(output)) return shown_path(context_.artifacts().path(output.digest));
  return settings::url_of(bucket_->settings()) + "/" +
         s3::Artifacts::key_of(output.digest.hex(), output.is_directory);
}

void RunOutputs::bring(const store::StepRecord& step, const store::OutputRecord& output) {
  if (is_here(output)) return;
  const core::EnvironmentError lost("the output '" + step.name + "." + output.name +
                                    "' is not on this machine, and " + shared_->name() +
                                    " has it no longer");
  const auto result = context_.await(shared_->find(step.key, nullptr));
  if (!result) throw lost;
  const auto found = std::ranges::find_if(result->outputs, [&](const engine::RemoteOutput& each) {
    return each.record.digest == output.digest;
  });
  if (found == result->outputs.end()) throw lost;
  const core::TemporaryFolder folder(state_);
  asio::thread_pool pool(1);
  core::CancelSource nobody_stops;
  context_.await(engine::bring(*shared_, *found, context_.artifacts(),
                               folder.path() / output.file_name, pool, nobody_stops));
}

}  // namespace pipeline::cli
