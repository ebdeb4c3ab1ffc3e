#include "docker/gpu_access.hpp"

#include <gtest/gtest.h>

namespace pipeline::docker {
namespace {

using nlohmann::json;

const std::string one_first = "GPU-00000000-0000-4000-8000-000000000000",
                  one_second = "GPU-00000000-0000-4000-8000-000000000001";

json system(bool runtime, const std::vector<std::string>& devices = {}, bool folders = false) {
  json info = json::parse(R"({"Runtimes": {"runc": {}}})");
  if (runtime) info["Runtimes"]["nvidia"]["path"] = "nvidia-container-runtime";
  if (folders) info["CDISpecDirs"] = {"/etc/cdi", "/var/run/cdi"};
  for (const auto& name : devices)
    info["DiscoveredDevices"].push_back({{"Source", "cdi"}, {"ID", name}});
  return info;
}

GpuAccess access(const json& info, bool podman = false, const std::string& version = "28.3.0",
                 const std::string& api = "1.51") {
  EngineInfo engine;
  engine.podman = podman;
  engine.version = version;
  engine.api_version = api;
  return {engine, info};
}

json given(const GpuAccess& by, const settings::GpuRequest& request = {},
           std::vector<GpuName> gpus = {{one_first, 0}, {one_second, 1}}) {
  json body = json::parse(R"({"Env": ["A=1", "NVIDIA_VISIBLE_DEVICES=all"], "HostConfig": {}})");
  by.give(body, request, gpus);
  return body;
}

using Methods = std::vector<GpuMethod>;

TEST(GpuAccess, tries_first_what_the_engine_is_known_to_have) {
  EXPECT_EQ(access(system(true)).methods(),
            (Methods{GpuMethod::device_request, GpuMethod::runtime}));
  EXPECT_EQ(access(system(true, {"nvidia.com/gpu=0"})).methods(),
            (Methods{GpuMethod::device_request, GpuMethod::cdi, GpuMethod::runtime}));
  EXPECT_EQ(access(system(true, {}, true)).methods(),
            (Methods{GpuMethod::device_request, GpuMethod::runtime}))
      << "an engine with CDI would list its devices";
  EXPECT_EQ(access(system(false, {"nvidia.com/gpu=0"})).methods(),
            (Methods{GpuMethod::cdi, GpuMethod::device_request}));
  EXPECT_EQ(access(system(false, {"vendor.com/nic=0"})).methods(),
            (Methods{GpuMethod::device_request}));
  EXPECT_TRUE(access(system(true)).is_certain());
  EXPECT_FALSE(access(system(false)).is_certain());
}

TEST(GpuAccess, an_engine_that_cannot_list_its_cdi_devices_is_asked_for_them) {
  const auto older = [](bool runtime, bool folders) {
    return access(system(runtime, {}, folders), false, "26.1.5", "1.45");
  };
  EXPECT_EQ(older(false, true).methods(), (Methods{GpuMethod::device_request, GpuMethod::cdi}));
  EXPECT_FALSE(older(false, true).is_certain());
  EXPECT_EQ(older(true, true).methods(),
            (Methods{GpuMethod::device_request, GpuMethod::cdi, GpuMethod::runtime}));
  EXPECT_EQ(older(false, false).methods(), (Methods{GpuMethod::device_request}))
      << "its CDI is off";
}

TEST(GpuAccess, podman_gives_none_before_5_4_and_by_cdi_from_then_on) {
  EXPECT_EQ(access(system(false), true, "5.4.0").methods(), (Methods{GpuMethod::cdi}));
  EXPECT_EQ(access(system(true), true, "6.0.1").methods(), (Methods{GpuMethod::cdi}));
  const auto old = access(system(true), true, "4.3.1");
  EXPECT_TRUE(old.methods().empty());
  EXPECT_NE(old.problem().find("5.4"), std::string::npos);
}

TEST(GpuAccess, a_device_request_has_the_names_of_gpus_and_no_count) {
  const auto body = given(access(system(true)));
  EXPECT_EQ(body["HostConfig"]["DeviceRequests"],
            json::parse(R"([{"Driver": "", "Capabilities": [["gpu"]], "DeviceIDs": [")" +
                        one_first + R"(", ")" + one_second + R"("]}])"));
  EXPECT_EQ(body["Env"], json::parse(R"(["A=1", "NVIDIA_VISIBLE_DEVICES=)" + one_first + "," +
                                     one_second + R"("])"))
      << "not the image's beside it";
  EXPECT_FALSE(body["HostConfig"].contains("Runtime"));
}

TEST(GpuAccess, a_device_request_has_the_users_driver_capabilities_and_options) {
  settings::GpuRequest request;
  request.driver = "nvidia";
  request.capabilities = {"compute", "utility"};
  request.options = {{"key", "value"}};
  const auto wanted = given(access(system(true)), request)["HostConfig"]["DeviceRequests"][0];
  EXPECT_EQ(wanted["Driver"], "nvidia");
  EXPECT_EQ(wanted["Capabilities"], json::parse(R"([["gpu", "compute", "utility"]])"));
  EXPECT_EQ(wanted["Options"]["key"], "value");
}

TEST(GpuAccess, without_names_all_are_given) {
  EXPECT_EQ(given(access(system(true)), {}, {})["HostConfig"]["DeviceRequests"][0]["Count"], -1);
  const auto cdi = given(access(system(false, {"nvidia.com/gpu=all"})), {}, {});
  EXPECT_EQ(cdi["HostConfig"]["DeviceRequests"][0]["DeviceIDs"],
            json::parse(R"(["nvidia.com/gpu=all"])"));
}

TEST(GpuAccess, cdi_takes_the_names_that_the_engine_lists) {
  const auto by_uuid = given(access(system(
      false, {"nvidia.com/gpu=" + one_first, "nvidia.com/gpu=" + one_second, "nvidia.com/gpu=0"})));
  EXPECT_EQ(by_uuid["HostConfig"]["DeviceRequests"],
            json::parse(R"([{"Driver": "cdi", "DeviceIDs": ["nvidia.com/gpu=)" + one_first +
                        R"(", "nvidia.com/gpu=)" + one_second + R"("]}])"));
  EXPECT_EQ(by_uuid["Env"], json::parse(R"(["A=1", "NVIDIA_VISIBLE_DEVICES=void"])"))
      << "a default runtime of NVIDIA's adds none of its own";
  const auto by_index =
      given(access(system(false, {"nvidia.com/gpu=0", "nvidia.com/gpu=1", "nvidia.com/gpu=all"})));
  EXPECT_EQ(by_index["HostConfig"]["DeviceRequests"][0]["DeviceIDs"],
            json::parse(R"(["nvidia.com/gpu=0", "nvidia.com/gpu=1"])"));
  EXPECT_EQ(given(access(system(false), true,
                         "5.4.0"))["HostConfig"]["DeviceRequests"][0]["DeviceIDs"][0],
            "nvidia.com/gpu=" + one_first);
}

TEST(GpuAccess, a_way_that_failed_is_not_tried_again) {
  auto by = access(system(true));
  EXPECT_FALSE(by.try_next(GpuMethod::device_request,
                           "nvidia-container-cli: device error: 9: unknown device"))
      << "it has that method";
  EXPECT_TRUE(by.try_next(GpuMethod::device_request,
                          R"(could not select device driver "" with capabilities: [[gpu]])"));
  EXPECT_EQ(by.methods(), (Methods{GpuMethod::runtime}));
  EXPECT_TRUE(by.try_next(GpuMethod::device_request, R"(could not select device driver "")"))
      << "an attempt beside it, which had begun before";
  EXPECT_EQ(by.methods(), (Methods{GpuMethod::runtime}));
  EXPECT_FALSE(by.try_next(GpuMethod::runtime, "unknown or invalid runtime name: nvidia"))
      << "there is no other";
}

TEST(GpuAccess, a_refused_request_for_cdi_says_nothing_of_the_way_of_other_steps) {
  const auto by = access(system(true));
  settings::GpuRequest request;
  EXPECT_EQ(by.replaceable_method(request), GpuMethod::device_request);
  request.driver = "cdi";
  EXPECT_EQ(by.replaceable_method(request), std::nullopt);
  EXPECT_EQ(given(by, request)["HostConfig"]["DeviceRequests"][0]["Driver"], "cdi");
}

TEST(GpuAccess, the_runtime_gets_its_variables) {
  auto by = access(system(true));
  by.try_next(GpuMethod::device_request, "could not select device driver");
  settings::GpuRequest request;
  auto body = given(by, request);
  EXPECT_EQ(body["HostConfig"]["Runtime"], "nvidia");
  EXPECT_FALSE(body["HostConfig"].contains("DeviceRequests"));
  EXPECT_EQ(body["Env"][1], "NVIDIA_VISIBLE_DEVICES=" + one_first + "," + one_second);
  EXPECT_EQ(body["Env"].size(), 2U) << "NVIDIA_DRIVER_CAPABILITIES stays the image's";
  request.capabilities = {"compute", "utility"};
  body = given(by, request);
  EXPECT_EQ(body["Env"][2], "NVIDIA_DRIVER_CAPABILITIES=compute,utility");
}

TEST(GpuAccess, gpus_are_kept_from_a_container) {
  json body =
      json::parse(R"({"Env": ["NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=all"]})");
  withhold_gpus(body);
  EXPECT_EQ(body["Env"],
            json::parse(R"(["NVIDIA_DRIVER_CAPABILITIES=all", "NVIDIA_VISIBLE_DEVICES=void"])"));
}

}  // namespace
}  // namespace pipeline::docker
