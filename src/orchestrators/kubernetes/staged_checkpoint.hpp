/// @file
/// A step's checkpoint in the remote store: `checkpoints/KEY/head.json` names the slot that is
/// complete, `checkpoints/KEY/FAMILY/SLOT.PART` are the parts of its tar. Each attempt writes to a
/// family of its own (stager/checkpoint.hpp), so that no other attempt damages what it reads.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "blobs/blob_store.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline::orchestrators::kubernetes {

/// The parts of the stager's documents that concern the checkpoint.
struct CheckpointDocuments {
  nlohmann::json restore, save;
};

/// Signs what the attempt's pod needs to restore the checkpoint and to send its own, and removes
/// the slots that are of no use any more.
async::Task<CheckpointDocuments> offer_checkpoint(blobs::BlobStore& store, const Attempt& attempt);

/// Removes the checkpoint of a step that has succeeded.
async::Task<> remove_checkpoint(blobs::BlobStore& store, std::string key);

}  // namespace pipeline::orchestrators::kubernetes
