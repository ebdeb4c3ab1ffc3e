// Objects that a Job refers to, its patch, and the setting of a refused field.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orchestrators/kubernetes/merge.hpp"
#include "orchestrators/kubernetes/references.hpp"
#include "orchestrators/kubernetes/refused_fields.hpp"

namespace pipeline::orchestrators::kubernetes {
namespace {

using nlohmann::json;

TEST(References, are_all_required_objects_but_those_that_pipe_creates) {
  const json container{
      {"name", "step"},
      {"env",
       {{{"name", "OURS"},
         {"valueFrom", {{"secretKeyRef", {{"name", "pipe-train"}, {"key", "k"}}}}}},
        {{"name", "A"}, {"valueFrom", {{"secretKeyRef", {{"name", "s1"}, {"key", "k"}}}}}},
        {{"name", "B"},
         {"valueFrom",
          {{"configMapKeyRef", {{"name", "c1"}, {"key", "k"}, {"optional", true}}}}}}}},
      {"envFrom", {{{"secretRef", {{"name", "s1"}}}}, {{"configMapRef", {{"name", "c2"}}}}}}};
  const json pod{
      {"containers", {container}},
      {"volumes",
       {{{"name", "a"}, {"persistentVolumeClaim", {{"claimName", "p1"}}}},
        {{"name", "b"}, {"projected", {{"sources", {{{"configMap", {{"name", "c3"}}}}}}}}},
        {{"name", "c"}, {"hostPath", {{"path", "/x"}}}}}},
      {"imagePullSecrets", {{{"name", "s2"}}}},
      {"serviceAccountName", "a1"},
      {"priorityClassName", "high"}};
  const json job{
      {"metadata", {{"name", "pipe-train"}, {"labels", {{"kueue.x-k8s.io/queue-name", "q1"}}}}},
      {"spec", {{"template", {{"spec", pod}}}}}};
  std::vector<std::string> found;
  for (const auto& each : references_of(job))
    found.push_back(std::string(each.setting) + ": " + std::string(each.kind) + " " + each.name);
  EXPECT_THAT(found, testing::UnorderedElementsAre(
                         "env: Secret s1", "env_from: Secret s1", "env_from: ConfigMap c2",
                         "volumes: PersistentVolumeClaim p1", "volumes: ConfigMap c3",
                         "image_pull_secrets: Secret s2", "service_account_name: ServiceAccount a1",
                         "priority_class_name: PriorityClass high", "queue_name: LocalQueue q1"));
}

TEST(MergePatch, merges_maps_and_named_items_replaces_the_rest_and_null_removes) {
  json object{{"a", {{"x", 1}, {"y", 2}}},
              {"words", {"p", "q"}},
              {"volumes", {{{"name", "v"}, {"path", "/v"}}, {{"name", "w"}}}}};
  merge_patch(object, {{"a", {{"y", nullptr}, {"z", 3}}},
                       {"words", {"r"}},
                       {"volumes", {{{"name", "w"}, {"size", 1}}, {{"name", "new"}}}}});
  EXPECT_EQ(
      object,
      (json{{"a", {{"x", 1}, {"z", 3}}},
            {"words", {"r"}},
            {"volumes",
             {{{"name", "v"}, {"path", "/v"}}, {{"name", "w"}, {"size", 1}}, {{"name", "new"}}}}}));
  merge_patch(object, {{"volumes", json::array()}, {"a", "text"}});
  EXPECT_EQ(object["volumes"], json::array());
  EXPECT_EQ(object["a"], "text");
}

TEST(RefusedFields, are_reported_as_settings) {
  EXPECT_EQ(setting_of_field("spec.template.spec.tolerations[0].effect"),
            "`kubernetes.tolerations`");
  EXPECT_EQ(setting_of_field("spec.template.spec.containers[0].resources.requests"),
            "`resources` or `kubernetes.resources`");
  EXPECT_EQ(setting_of_field("spec.template.spec.containers[0].envFrom[0].secretRef.name"),
            "`kubernetes.env_from`");
  EXPECT_EQ(setting_of_field("spec.template.spec.dnsPolicy"),
            "`kubernetes.additional_pod_spec_args` or `kubernetes.job_patch`");
  EXPECT_EQ(setting_of_field("metadata.annotations"), "`kubernetes.annotations`");
  EXPECT_EQ(setting_of_field("spec.template.metadata.labels"), "`kubernetes.labels`");
  EXPECT_EQ(setting_of_field("spec.podFailurePolicy.rules"), "`kubernetes.job_patch`");
  EXPECT_EQ(setting_of_field("data"), "");
}

}  // namespace
}  // namespace pipeline::orchestrators::kubernetes
