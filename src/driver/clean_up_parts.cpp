#include "driver/clean_up_parts.hpp"

#include "core/diagnostic.hpp"
#include "core/quantity.hpp"

namespace pipeline::driver {

bool cleans_runs(const CleanUp& wanted) {
  return wanted.runs || wanted.keep || wanted.all ||
         (!wanted.keep_storage.empty() && !wanted.images && !wanted.remote);
}

void check_parts(const CleanUp& wanted) {
  if (!wanted.older_than.empty() && !wanted.remote)
    throw core::InputError("--older-than is an age of results in a remote store", "add --remote");
  if (!cleans_runs(wanted) && !wanted.containers && !wanted.images && !wanted.environments &&
      !wanted.remote)
    throw core::InputError("nothing to remove was named",
                           "name --containers, --images, --environments, --runs, --keep-storage, "
                           "--remote or --all; with --dry-run nothing is "
                           "removed yet");
  if (wanted.remote && (cleans_runs(wanted) || wanted.images))
    throw core::InputError("--remote cleans the profile's remote store alone",
                           "call `pipe clean` a second time for what is on this machine");
  if (wanted.keep_storage.empty()) return;
  if (wanted.all)
    throw core::InputError("--keep-storage is a size of artifacts, or with --images of images",
                           "leave out --all");
  if (!core::parse_bytes(wanted.keep_storage))
    throw core::InputError("--keep-storage '" + wanted.keep_storage + "' is not a size",
                           "write a number and a unit: 20GB, 500MiB");
}

}  // namespace pipeline::driver
