/// @file
/// One Job from its making to its removal.
#pragma once

#include "kubernetes/client.hpp"
#include "orchestrators/kubernetes/bucket_files.hpp"
#include "orchestrators/kubernetes/job_informer.hpp"
#include "orchestrators/kubernetes/manifest.hpp"
#include "orchestrators/removals.hpp"

namespace pipeline::orchestrators {

/// Its pod goes, too. What is gone already is fine.
/// @param uid of the very Job; empty: of whichever has the name
async::Task<> delete_job(kubernetes::Client& client, std::string name, std::string uid);

/// Runs the attempt in a Job of its own, or joins the one that an earlier driver of the same
/// attempt has left. Whatever happens, nothing of it runs any more, and its removal has begun.
/// Throws what the log throws, and EnvironmentError when the cluster is lost.
/// @param files through which the pod gets its files and gives them back; null: it sees those of
/// this machine
async::Task<AttemptResult> run_job(kubernetes::Client& client, JobInformer& informer,
                                   const Attempt& attempt, const JobOptions& place,
                                   BucketFiles* files, Removals& removals);

}  // namespace pipeline::orchestrators
