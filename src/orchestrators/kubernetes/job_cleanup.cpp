#include "orchestrators/kubernetes/job_cleanup.hpp"

#include <exception>
#include <utility>

#include "core/error.hpp"
#include "orchestrators/kubernetes/job_requests.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

/// Removes the Job last: while it is there, a later driver knows that the store may have objects of
/// its run (KubernetesOrchestrator::remove_orphans()).
async::Task<> remove_both(CleanupContext context, async::Task<> objects, std::string job,
                          std::string uid) {
  std::exception_ptr failed;
  try {
    co_await std::move(objects);
  } catch (const core::EnvironmentError&) {
    failed = std::current_exception();
  }
  co_await delete_job(context.client, job, uid);
  if (failed) std::rethrow_exception(failed);
}

}  // namespace

void add_cleanup(const CleanupContext& context, const Attempt& attempt, const std::string& job,
                 const std::string& uid, AttemptResult& result) {
  std::vector<std::string> outputs;
  for (const auto& output : attempt.output_names) outputs.push_back(output.name);
  result.cleanup = [context, job, uid, run_id = attempt.run_id, step = attempt.step.name,
                    number = attempt.number, outputs, addresses = addresses_of(attempt)] {
    auto* files = context.files;
    context.removals.begin(
        context.executor,
        files ? remove_both(context, files->forget(run_id, step, number, outputs, addresses), job,
                            uid)
              : delete_job(context.client, job, uid));
  };
  if (context.files && !attempt.checkpoint_key.empty())
    result.remove_checkpoint = [context, key = attempt.checkpoint_key] {
      context.removals.begin(context.executor, context.files->forget_checkpoint(key));
    };
}

}  // namespace pipeline::orchestrators::kubernetes
