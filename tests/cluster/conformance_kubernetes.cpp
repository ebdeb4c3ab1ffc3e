// The suite that every orchestrator passes, on the cluster that KUBECONFIG names.
#include "orchestrators/kubernetes/kubernetes_orchestrator.hpp"
#include "support/cluster.hpp"
#include "support/conformance.hpp"

namespace pipeline::test {
INSTANTIATE_TEST_SUITE_P(Kubernetes, Conformance,
                         testing::Values(Place{
                             .name = "kubernetes",
                             .make =
                                 [](asio::io_context& loop, const fs::path& root) {
                                   return orchestrators::make_kubernetes_orchestrator(
                                       loop, {.root = root,
                                              .state = root / ".pipe",
                                              .run_id = "conformance"});
                                 },
                             .settings = slim()}),
                         [](auto& place) { return place.param.name; });

}  // namespace pipeline::test
