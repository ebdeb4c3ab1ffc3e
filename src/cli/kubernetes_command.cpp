// `pipe kubernetes rbac`: prints the permissions that runs need on a cluster.
#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "kubernetes_api/permissions.hpp"
#include "orchestrators/catalog/catalog.hpp"

namespace pipeline::cli {

core::ExitCode kubernetes_command(Context& context) {
  const auto& options = context.options();
  const auto name_space = orchestrators::connection_field(options.connection, "namespace");
  const auto items = kubernetes_api::role_manifests(name_space.empty() ? "default" : name_space,
                                                    options.kubernetes.subject);
  context.print_json({{"apiVersion", "v1"}, {"kind", "List"}, {"items", items}});
  return core::ExitCode::ok;
}

}  // namespace pipeline::cli
