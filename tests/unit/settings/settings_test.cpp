#include "settings/settings.hpp"

#include <regex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/quantity.hpp"
#include "settings/decode.hpp"

namespace pipeline::settings {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;

/// A document from JSON, which settles what the author wrote without a YAML parser.
core::Value value_of(const json& document) {
  core::Value value;
  if (document.is_null()) return value;
  value.kind = document.is_object()  ? core::Value::Kind::map
               : document.is_array() ? core::Value::Kind::list
                                     : core::Value::Kind::scalar;
  if (document.is_string()) {
    value.scalar = document.get<std::string>();
    value.quoted = true;
  } else if (value.kind == core::Value::Kind::scalar) {
    value.scalar = document.dump();
  }
  if (document.is_array())
    for (const auto& item : document) value.items.push_back(value_of(item));
  if (document.is_object())
    for (const auto& [key, member] : document.items()) {
      core::Value name;
      name.kind = core::Value::Kind::scalar;
      name.scalar = key;
      value.members.push_back({std::move(name), value_of(member)});
    }
  return value;
}

json decoded(const json& document) {
  Diagnostics diagnostics;
  const Settings settings = decode_settings(value_of(document), diagnostics);
  EXPECT_THAT(diagnostics, IsEmpty()) << (diagnostics.empty() ? "" : diagnostics[0].message);
  return to_json(settings);
}

std::string first_error(const json& document) {
  Diagnostics diagnostics;
  decode_settings(value_of(document), diagnostics);
  return diagnostics.empty() ? "" : diagnostics[0].message + " | " + diagnostics[0].suggestion;
}

json docker(const json& keys) { return {{"docker", keys}}; }

TEST(Settings, every_key_is_written_as_it_was_read) {
  const json all{
      {"docker",
       {{"parent_image", "ghcr.io/a/b:1"},
        {"build_context_root", "."},
        {"parent_image_build_config", {{"dockerignore", "x"}}},
        {"build_config",
         {{"dockerignore", ".dockerignore"},
          {"build_options",
           {{"pull", true},
            {"rm", false},
            {"no_cache", true},
            {"shm_size", 1024},
            {"labels", {{"a", "b"}}},
            {"build_args", {{"A", "1"}}},
            {"cache_from", {"a:b"}},
            {"target", "base"},
            {"network", "host"},
            {"extra_hosts", {"a:1.2.3.4"}}}}}},
        {"skip_build", false},
        {"prevent_build_reuse", true},
        {"target_repository", "localhost:5000/pipe"},
        {"image_tag", "v1.2"},
        {"python_package_installer", "pip"},
        {"python_package_installer_args",
         {{"index-url", "https://example.org"}, {"no-deps", true}, {"find-links", {"a", "b"}}}},
        {"replicate_local_python_environment", false},
        {"requirements", {"numpy==1.26.4", "pkg @ git+https://example.org/x"}},
        {"pyproject_path", "pyproject.toml"},
        {"pyproject_export_command", {"uv", "export"}},
        {"local_project_install_command", "pip install ."},
        {"apt_packages", {"git", "libgomp1:amd64", "curl=7.88.1-10+deb12u5"}},
        {"apt_snapshot", "2026-01-31T12:00:00Z"},
        {"environment", {{"A", "1"}}},
        {"runtime_environment", {{"B", "two\nlines"}}},
        {"user", "1000:1000"},
        {"volumes", {"/a:/b:ro", "cache:/c", "./x:/y:rw"}},
        {"network", "container:x"},
        {"platform", "linux/arm64/v8"},
        {"labels", {{"org.example/a-b", "x y"}}},
        {"run_args", {{"cap_add", {"SYS_PTRACE"}}, {"init", true}, {"pids_limit", 100}}}}},
      {"resources",
       {{"cpu_count", 1.5},
        {"memory", 1073741824},
        {"shm_size", 67108864},
        {"gpu_count", 2},
        {"accelerator", "gpu"},
        {"auto_select_gpus", true},
        {"gpu_class", "A100"},
        {"gpu_memory", 1073741824},
        {"compute_capability", "8.0"},
        {"instance_type", "g5.xlarge"},
        {"placement_constraints", {"attribute:a == b"}},
        {"gpu_ids", "index"},
        {"preflight", "off"}}},
      {"kubernetes",
       {{"node_selectors", {{"example.org/pool", "gpu"}}},
        {"affinity",
         {{"nodeAffinity",
           {{"requiredDuringSchedulingIgnoredDuringExecution",
             {{"nodeSelectorTerms", json::array()}}}}}}},
        {"tolerations", {"a=b:NoSchedule", {{"operator", "Exists"}, {"tolerationSeconds", 30}}}},
        {"resources",
         {{"requests", {{"cpu", "500m"}}}, {"limits", {{"nvidia.com/mig-1g.5gb", "1"}}}}},
        {"gpu_resource", "amd.com/gpu"},
        {"env", {"A=secret/s/k", {{"name", "B"}, {"value", "x"}}}},
        {"env_from", {"configmap/c", {{"secretRef", {{"name", "s"}}}}}},
        {"volumes", {"pvc/claim:/data:ro", {{"name", "v"}, {"emptyDir", {{"sizeLimit", "1Gi"}}}}}},
        {"volume_mounts", {{{"name", "v"}, {"mountPath", "/v"}, {"readOnly", true}}}},
        {"image_pull_secrets", {"registry"}},
        {"service_account_name", "trainer"},
        {"labels", {{"team", "ml"}}},
        {"annotations", {{"example.org/note", "a b"}}},
        {"priority_class_name", "high"},
        {"runtime_class_name", "nvidia"},
        {"scheduler_name", "volcano"},
        {"queue_name", "q"},
        {"topology", {{"required", "example.org/rack"}}},
        {"container_security_context",
         {{"privileged", true}, {"capabilities", {{"add", {"SYS_PTRACE"}}}}}},
        {"pod_security_context", {{"fsGroup", 2000}}},
        {"host_ipc", true},
        {"autoscaling", true},
        {"pod_startup_timeout", "1800000ms"},
        {"active_deadline_seconds", 3600},
        {"ttl_seconds_after_finished", 0},
        {"additional_pod_spec_args",
         {{"dnsPolicy", "Default"}, {"hostAliases", {{{"ip", "10.0.0.1"}}}}}},
        {"job_patch", {{"spec", {{"suspend", nullptr}}}}}}},
      {"slurm",
       {{"partition", "gpu,main"},
        {"account", "lab7"},
        {"qos", "high"},
        {"constraint", "a100&nvlink"},
        {"reservation", "course"},
        {"exclude", "node[1-3]"},
        {"nice", "-5"},
        {"time", "3600000ms"},
        {"extra_args", {"--exclusive", "--licenses=matlab:1"}}}}};
  EXPECT_EQ(decoded(all), all);
  EXPECT_EQ(all["kubernetes"].size(),
            settings_schema()["properties"]["kubernetes"]["properties"].size())
      << "the test sets every key";
  EXPECT_EQ(all["slurm"].size(), settings_schema()["properties"]["slurm"]["properties"].size())
      << "the test sets every key";
  EXPECT_EQ(all["docker"].size() + 1,
            settings_schema()["properties"]["docker"]["properties"].size())
      << "the test sets every key but dockerfile, which excludes parent_image";
  EXPECT_EQ(all["resources"].size() + 2,
            settings_schema()["properties"]["resources"]["properties"].size())
      << "the test sets every key but devices and gpus, which gpu_count excludes";
}

TEST(Schema, sizes_and_durations_are_texts_that_are_read) {
  const auto matches = [](const json& schema, const std::string& text) {
    return std::regex_search(text, std::regex(schema.at("pattern").get<std::string>()));
  };
  for (const char* text : {"512MB", "8GiB", "8Gi", "1.5GB", "10 MB", "100k", "7", "5 bananas",
                           "GiB", "", "8 GiB ", "1.GB", "3M"})
    EXPECT_EQ(matches(bytes_schema(), text), core::parse_bytes(text).has_value()) << text;
  for (const char* text :
       {"90s", "10m", "1h30m", "1.5h", "100ms", "2d12h", "30", "abc", "1h-", "5 m", "", "m", "1y"})
    EXPECT_EQ(matches(duration_schema(), text), core::parse_duration(text).has_value()) << text;
}

TEST(Settings, equal_settings_have_equal_json_however_they_were_written) {
  const json a = decoded({{"resources", {{"memory", "1GiB"}, {"cpu_count", 1}}}}),
             b = decoded({{"resources", {{"cpu_count", 1.0}, {"memory", "1024MiB"}}}});
  EXPECT_EQ(a.dump(), b.dump());
  EXPECT_EQ(decoded(json::object()), json::object());
}

TEST(Settings, run_args_take_one_form) {
  const json given{{"extra_hosts", {{"a", "1.2.3.4"}}},
                   {"shm_size", "64MiB"},
                   {"memswap_limit", -1},
                   {"ulimits", {{"nofile", 1024}, {"core", {{"soft", 0}, {"hard", -1}}}}},
                   {"tmpfs", {{"/scratch", "size=1g"}}}};
  const json expected{
      {"extra_hosts", {"a:1.2.3.4"}},
      {"shm_size", 67108864},
      {"memswap_limit", -1},
      {"ulimits",
       {{"nofile", {{"soft", 1024}, {"hard", 1024}}}, {"core", {{"soft", 0}, {"hard", -1}}}}},
      {"tmpfs", {{"/scratch", "size=1g"}}}};
  EXPECT_EQ(decoded(docker({{"run_args", given}}))["docker"]["run_args"], expected);
}

TEST(Settings, run_args_refuse_a_number_that_would_wrap_to_a_negative_one) {
  constexpr auto all_bits = std::numeric_limits<std::uint64_t>::max();
  Diagnostics diagnostics;
  decode_settings(
      value_of(
          docker({{"run_args", {{"pids_limit", all_bits}, {"ulimits", {{"nofile", all_bits}}}}}})),
      diagnostics);
  EXPECT_EQ(diagnostics.size(), 2u);
}

TEST(Settings, a_steps_scalars_and_lists_replace_and_its_maps_are_merged_in) {
  Diagnostics diagnostics;
  const auto settings = [&](const json& keys) {
    return decode_settings(value_of(keys), diagnostics);
  };
  const Settings merged =
      merge(settings({{"docker",
                       {{"parent_image", "a"},
                        {"requirements", {"x", "y"}},
                        {"environment", {{"A", "1"}, {"B", "2"}}},
                        {"build_config", {{"build_options", {{"pull", true}}}}}}},
                      {"resources", {{"memory", 5}}}}),
            settings({{"docker",
                       {{"requirements", json::array()},
                        {"environment", {{"B", "3"}}},
                        {"build_config", {{"build_options", {{"no_cache", true}}}}}}}}));
  EXPECT_EQ(to_json(merged),
            (json{{"docker",
                   {{"parent_image", "a"},
                    {"requirements", json::array()},
                    {"environment", {{"A", "1"}, {"B", "3"}}},
                    {"build_config", {{"build_options", {{"pull", true}, {"no_cache", true}}}}}}},
                  {"resources", {{"memory", 5}}}}));
}

TEST(Settings, a_steps_parent_replaces_the_pipelines_other_kind_of_parent) {
  Settings pipeline, step;
  pipeline.docker.parent_image = "a";
  step.docker.dockerfile = "Dockerfile";
  EXPECT_FALSE(merge(pipeline, step).docker.parent_image);
  EXPECT_EQ(merge(step, pipeline).docker.parent_image, "a");
  EXPECT_FALSE(merge(step, pipeline).docker.dockerfile);
}

TEST(Settings, a_steps_size_of_shared_memory_replaces_the_pipelines_under_its_other_name) {
  Settings pipeline, step;
  pipeline.docker.run_args["shm_size"] = 1024;
  step.resources.shm_size = 2048;
  EXPECT_FALSE(merge(pipeline, step).docker.run_args.contains("shm_size"));
  EXPECT_EQ(merge(pipeline, step).resources.shm_size, Bytes{2048});
  EXPECT_FALSE(merge(step, pipeline).resources.shm_size);
  EXPECT_EQ(merge(pipeline, Settings{}).docker.run_args.at("shm_size"), 1024);
}

TEST(Settings, options_of_docker_are_named_where_they_belong) {
  EXPECT_THAT(first_error(docker({{"ulimits", {{"memlock", -1}}}})), HasSubstr("`run_args: "));
  EXPECT_THAT(first_error(docker({{"runtime", "nvidia"}})), HasSubstr("leave it out"));
  EXPECT_THAT(first_error(docker({{"run_args", {{"gpus", "all"}}}})),
              HasSubstr("'gpus' is not allowed in 'run_args'"));
}

TEST(Settings, a_limit_that_linux_does_not_have_is_an_error) {
  const auto limits = [](const char* name) {
    return first_error(docker({{"run_args", {{"ulimits", {{name, -1}}}}}}));
  };
  EXPECT_EQ(limits("memlock"), "");
  EXPECT_THAT(limits("memlok"), HasSubstr("unknown key 'memlok' in 'run_args.ulimits' | did you "
                                          "mean 'memlock'?"));
}

TEST(Settings, contradictions_are_refused) {
  EXPECT_THAT(first_error({{"docker", {{"run_args", {{"shm_size", "1g"}}}}},
                           {"resources", {{"shm_size", "1g"}}}}),
              HasSubstr("both say how large /dev/shm is"));
  EXPECT_THAT(first_error(docker({{"skip_build", true}, {"requirements", {"numpy"}}})),
              HasSubstr("needs a build"));
  EXPECT_THAT(first_error(docker({{"dockerfile", "D"}, {"parent_image", "a"}})), HasSubstr("both"));
  EXPECT_EQ(first_error(docker(
                {{"skip_build", true}, {"requirements", json::array()}, {"parent_image", "a"}})),
            "");
}

TEST(Settings, kubernetes_objects_are_checked_as_far_as_their_tables_go) {
  const auto error = [](const char* key, const json& value) {
    return first_error({{"kubernetes", {{key, value}}}});
  };
  EXPECT_THAT(
      error("tolerations", {{{"key", "a"}, {"efect", "NoExecute"}}}),
      HasSubstr("unknown key 'efect' in a toleration ('tolerations[0]') | did you mean 'effect'?"));
  EXPECT_THAT(
      error("tolerations", {{{"key", "a"}, {"effect", "NoSchedul"}}}),
      HasSubstr("'tolerations[0].effect' must be `NoSchedule`, `PreferNoSchedule` or `NoExecute`"));
  EXPECT_THAT(error("tolerations", "pool=gpu:NoSchedule"),
              HasSubstr("did you mean `tolerations: [\"pool=gpu:NoSchedule\"]`?"));
  EXPECT_THAT(error("tolerations", {"pool=gpu:Never"}),
              HasSubstr("'tolerations[0]' must be a taint such as"));
  EXPECT_THAT(error("env", {"TOKEN=hush"}), HasSubstr("'env[0]' must be `NAME=secret/OBJECT/KEY`"));
  EXPECT_THAT(error("env", {{{"name", "A"}, {"valueFrom", {{"secretKeyRef", {{"name", "s"}}}}}}}),
              HasSubstr("lacks 'key'"));
  EXPECT_THAT(error("env_from", {"secrets/x"}), HasSubstr("`secret/OBJECT`"));
  EXPECT_THAT(error("volumes", {"datasets:/data"}), HasSubstr("`pvc/CLAIM:TARGET[:ro|rw]`"));
  EXPECT_THAT(error("volumes", {{{"name", "v"}, {"persistentVolumeClaims", {{"claimName", "c"}}}}}),
              HasSubstr("did you mean 'persistentVolumeClaim'?"));
  EXPECT_THAT(error("volume_mounts", {"x:/y"}),
              HasSubstr("'volume_mounts[0]' must be a volume mount, a map"));
  EXPECT_THAT(error("affinity", {{"nodeAfinity", json::object()}}),
              HasSubstr("did you mean 'nodeAffinity'?"));
  EXPECT_THAT(error("container_security_context", {{"runAsUser", "root"}}),
              HasSubstr("'container_security_context.runAsUser' must be a whole number"));
  EXPECT_THAT(error("resources", {{"limits", {{"memory", "8GiB"}}}}),
              HasSubstr("did you mean `8Gi`?"));
  EXPECT_THAT(error("service_account_name", "My_Account"), HasSubstr("did you mean `my-account`?"));
  EXPECT_THAT(error("labels", {{"pipe.run", "x"}}), HasSubstr("which is reserved"));
  EXPECT_THAT(error("job_patch", {{"status", json::object()}}),
              HasSubstr("unknown key 'status' in a Job"));
  EXPECT_THAT(error("node_selector", json::object()), HasSubstr("did you mean 'node_selectors'?"));
}

TEST(Settings, kubernetes_maps_are_merged_and_lists_replaced) {
  Settings pipeline, step;
  pipeline.kubernetes.tolerations = json::array({"a"});
  pipeline.kubernetes.pod_security_context = {{"fsGroup", 1}, {"runAsUser", 2}};
  pipeline.kubernetes.resources.limits = {{"cpu", "1"}};
  step.kubernetes.tolerations = json::array();
  step.kubernetes.pod_security_context = {{"fsGroup", 3}};
  step.kubernetes.resources.limits = {{"memory", "1Gi"}};
  EXPECT_EQ(to_json(merge(pipeline, step))["kubernetes"],
            (json{{"tolerations", json::array()},
                  {"pod_security_context", {{"fsGroup", 3}, {"runAsUser", 2}}},
                  {"resources", {{"limits", {{"cpu", "1"}, {"memory", "1Gi"}}}}}}));
}

TEST(Settings, unknown_keys_come_with_a_suggestion) {
  EXPECT_THAT(first_error(docker({{"parent_imge", "x"}})),
              HasSubstr("did you mean 'parent_image'?"));
  EXPECT_THAT(first_error({{"dokcer", json::object()}}), HasSubstr("did you mean 'docker'?"));
}

struct Case {
  const char* key;
  json good, bad;
};

TEST(Settings, values_for_a_dockerfile_an_engine_or_a_shell_are_checked) {
  const std::string digest(64, 'a');
  const std::vector<Case> cases{
      {"parent_image",
       {"python", "python:3.11", "a/b/c:T_1.x-y", "localhost:5000/x",
        "Host.example:443/a/b@sha256:" + digest, "a__b/c--d", "sha256:" + digest},
       {"", "Python", "a:b:c", "a b", "a\nRUN x", "-x", "a//b", "a@sha256:xyz", "a:", "a..b", "$A",
        "http://a/b", "a/B"}},
      {"target_repository", {"pipe", "ghcr.io/a/b", "localhost:5000/x"}, {"pipe:tag", "Pipe", ""}},
      {"image_tag", {"v1", "_x", "1.2-3"}, {"", "-x", "a b", "a/b", std::string(129, 'a')}},
      {"platform",
       {"linux/amd64", "linux/arm/v7"},
       {"linux", "linux/", "a/b/c/d", "linux/amd64 ", "linux/x86_64", "linux/aarch64",
        "Linux/amd64", "linux/AMD64"}},
      {"user",
       {"me", "1000", "1000:100", "a-b_c"},
       {"", "a b", "a:b", "1:2:3", "-x", "a;b", "99999999999"}},
      {"network", {"bridge", "my_net-1", "container:x"}, {"", "a b", "container:", "--x"}},
      {"local_project_install_command", {"pip install ."}, {"", "a\nRUN b", "a\rb"}},
      {"dockerfile", {"Dockerfile"}, {"", "a\nb"}},
      {"apt_snapshot",
       {"2024-02-29", "2024-02-29T23:59:59Z", "20240229T235959Z"},
       {"", "2023-02-29", "2024-13-01", "2024-01-01T24:00:00Z", "20240101", "2024-1-1",
        "2999-01-01", "yesterday", "2024-01-01; rm", "2024-01-01\n"}},
  };
  for (const Case& each : cases) {
    for (const auto& good : each.good)
      EXPECT_EQ(first_error(docker({{each.key, good}})), "") << each.key << " " << good;
    for (const auto& bad : each.bad)
      EXPECT_NE(first_error(docker({{each.key, bad}})), "") << each.key << " " << bad;
  }
}

TEST(Settings, items_and_keys_are_checked) {
  const std::vector<Case> lists{
      {"apt_packages",
       {"git", "libstdc++6", "a0:arm64", "x1=1:2.3~rc1-4", "g++/bookworm-backports"},
       {"", "-x", "a b", "a;b", "Git", "a=", "a\n", "$(x)", "--allow-downgrades"}},
      {"requirements",
       {"numpy", "numpy>=1,<2", "a[b,c]~=1.0 ; python_version < '3.9'",
        "x @ https://example.org/x.whl", "--pre", "--extra-index-url https://example.org",
        "git+https://example.org/a", "./x", "./w/x-1-py3-none-any.whl", "-e ./x", "-r x.txt",
        "-c x.txt", "--constraint numpy<2", "a[b]", "a [b] ==1", "a (>=1)", "a;extra=='x'"},
       {"", "-e .", "-e ../x", "./../x", "./a b.whl", "./a/..", "/x", "a\nb", "x @ file:///y", " a",
        "-i x", "--requirement x", "numpy = 1", "numpy=1.26", "scikit learn"}},
      {"volumes",
       {"/a:/b", "a:/b:ro", "./a:/b:rw", "~/x:/y", ".:/x"},
       {"/a", "a:b", "/a:/b:z", "/a:/", "/a:/b/../c", ":/b", "a b:/c", "/a:/b:ro:x"}},
      {"cache_from", {}, {}},
  };
  for (const Case& each : lists) {
    for (const auto& good : each.good)
      EXPECT_EQ(first_error(docker({{each.key, json::array({good})}})), "")
          << each.key << " " << good;
    for (const auto& bad : each.bad)
      EXPECT_NE(first_error(docker({{each.key, json::array({bad})}})), "")
          << each.key << " " << bad;
  }
  for (const char* key : {"environment", "runtime_environment"})
    for (const char* name : {"", "1A", "A-B", "A=B", "A B", "A\nB"})
      EXPECT_NE(first_error(docker({{key, {{name, "x"}}}})), "") << name;
  for (const char* name : {"", "a b", "a=b", "a\"b", "a\nb"})
    EXPECT_NE(first_error(docker({{"labels", {{name, "x"}}}})), "") << name;
  for (const char* name : {"", "--x", "-x", "x y", "X", "x=y", "x\n"})
    EXPECT_NE(first_error(docker({{"python_package_installer_args", {{name, "x"}}}})), "") << name;
  EXPECT_NE(first_error(docker({{"python_package_installer_args", {{"x", "a\nb"}}}})), "");
  const auto newer = [](const json& value) {
    return first_error(docker({{"python_package_installer_args", {{"exclude-newer", value}}}}));
  };
  for (const auto& age : json::array({"7d", "1d12h", "2026-11-20", "2026-11-20T08:15:00Z"}))
    EXPECT_EQ(newer(age), "") << age;
  for (const auto& bad : json::array({"soon", 7, "7", "2026-13-40", "-3d", "", true, {"7d"}}))
    EXPECT_NE(newer(bad), "") << bad;
  EXPECT_NE(first_error(docker({{"environment", {{"A", "x\ny"}}}})), "");
  EXPECT_NE(first_error(docker({{"environment", {{"A", nullptr}}}})), "");
}

TEST(Settings, resources_are_checked) {
  for (const auto& bad : json::array({0, -1, "x", nullptr, json::array(), 1e300}))
    EXPECT_NE(first_error({{"resources", {{"cpu_count", bad}}}}), "") << bad;
  for (const auto& bad : json::array({0, "8GiBs", "-1", "", nullptr, "1e400GB"}))
    EXPECT_NE(first_error({{"resources", {{"memory", bad}}}}), "") << bad;
  for (const auto& bad : json::array({-1, 1.5, "1", true}))
    EXPECT_NE(first_error({{"resources", {{"gpu_count", bad}}}}), "") << bad;
}

TEST(Settings, retry_is_decoded_and_merged) {
  Diagnostics diagnostics;
  const auto pipeline = decode_retry(value_of({{"max_retries", 3}, {"delay", "2s"}}), diagnostics),
             step = decode_retry(value_of({{"max_retries", 0}, {"backoff", 2}}), diagnostics);
  EXPECT_THAT(diagnostics, IsEmpty());
  const auto merged = merge(pipeline, step);
  EXPECT_EQ(merged.max_retries, 0u);
  EXPECT_EQ(merged.delay, std::chrono::seconds(2));
  EXPECT_EQ(merged.backoff, 2.0);
}

TEST(Settings, retry_is_written_as_it_was_read) {
  Diagnostics diagnostics;
  const json all{{"max_retries", 3},
                 {"on", {"exit 75", "CUDA error"}},
                 {"never", {"signal 9"}},
                 {"avoid_failed", true},
                 {"delay", "2000ms"},
                 {"backoff", 2.0},
                 {"max_infrastructure_retries", 1},
                 {"on_oom", {{"memory", "x1.5"}, {"max", 1024}}},
                 {"stalled", true}};
  EXPECT_EQ(to_json(decode_retry(value_of(all), diagnostics)), all);
  EXPECT_EQ(to_json(RetrySettings{}), json::object());
  EXPECT_THAT(diagnostics, IsEmpty());
}

}  // namespace
}  // namespace pipeline::settings
