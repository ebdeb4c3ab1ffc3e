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

/// Returns documents with signed URLs, by which the attempt's pod restores the checkpoint and sends
/// its own. Removes slots that are not used any more.
async::Task<CheckpointDocuments> offer_checkpoint(blobs::BlobStore& store, const Attempt& attempt);

/// Removes the checkpoint of a step that has succeeded.
async::Task<> remove_checkpoint(blobs::BlobStore& store, std::string key);

}  // namespace pipeline::orchestrators::kubernetes
