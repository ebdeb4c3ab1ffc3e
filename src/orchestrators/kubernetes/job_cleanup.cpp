#include "orchestrators/kubernetes/job_cleanup.hpp"

#include "orchestrators/kubernetes/job_requests.hpp"

namespace pipeline::orchestrators::kubernetes {

void add_cleanup(const CleanupPlaces& places, const Attempt& attempt, const std::string& job,
                 const std::string& uid, AttemptResult& result) {
  std::vector<std::string> outputs;
  for (const auto& output : attempt.output_names) outputs.push_back(output.name);
  result.cleanup = [places, job, uid, run_id = attempt.run_id, step = attempt.step.name,
                    number = attempt.number, outputs, addresses = addresses_of(attempt)] {
    auto* files = places.files;
    if (files)
      places.removals.begin(places.executor,
                            files->forget(run_id, step, number, outputs, addresses));
    places.removals.begin(places.executor, delete_job(places.client, job, uid));
  };
  if (places.files && !attempt.checkpoint_key.empty())
    result.remove_checkpoint = [places, key = attempt.checkpoint_key] {
      places.removals.begin(places.executor, places.files->forget_checkpoint(key));
    };
}

}  // namespace pipeline::orchestrators::kubernetes
