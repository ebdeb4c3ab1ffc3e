/// @file
/// Names that other products give to settings, with what to write here instead.
#pragma once

#include <span>

#include <pipeline/settings.hpp>

#include "settings/decode.hpp"

namespace pipeline::settings {

/// Empty for a struct whose settings have no other names.
template <class Owner>
inline constexpr std::span<const OtherName> other_names{};

inline constexpr OtherName other_docker_names[]{
    {"image", "write `parent_image: IMAGE`"},
    {"base_image", "write `parent_image: IMAGE`"},
    {"python_version", "the parent image contains Python: `parent_image: python:3.12-slim`"},
    {"python", "the parent image contains Python: `parent_image: python:3.12-slim`"},
    {"packages", "write `requirements: [...]` or `apt_packages: [...]`"},
    {"pip", "write `requirements: [...]`"},
    {"pip_packages", "write `requirements: [...]`"},
    {"env", "write `environment: {NAME: VALUE}`"},
    {"mounts", "write `volumes: [...]`"},
    {"privileged", "write `run_args: {privileged: true}`"},
    {"cap_add", "write `run_args: {cap_add: [...]}`"},
    {"devices", "write `run_args: {devices: [...]}`"},
    {"ipc", "write `run_args: {ipc_mode: host}`"},
    {"ipc_mode", "write `run_args: {ipc_mode: host}`"},
    {"ulimits", "write `run_args: {ulimits: {...}}`"},
    {"runtime", "leave it out: a step with GPUs gets NVIDIA's if its engine needs it"},
    {"required_integrations", "write the packages that the step imports: `requirements: [...]`"},
    {"install_stack_requirements", "leave it out: nothing of pipe is installed in the image"},
    {"allow_including_files_in_images",
     "leave it out: code reaches the container beside the image"},
    {"allow_download_from_code_repository",
     "leave it out: code reaches the container beside the image"},
    {"allow_download_from_artifact_store",
     "leave it out: code reaches the container beside the image"},
    {"source_files", "leave it out: code reaches the container beside the image"},
    {"copy_files", "leave it out: code reaches the container beside the image"},
    {"copy_global_config", "leave it out: nothing of pipe is installed in the image"},
    {"disable_automatic_requirements_detection",
     "leave it out: only what the settings name is installed"},
    {"dockerignore", "write `build_config: {dockerignore: FILE}`"},
    {"build_options", "write `build_config: {build_options: {...}}`"},
    {"python_package_installer_cache_mount", "leave it out: builds share the installer's cache"},
    {"command", "it belongs to the step, beside its `settings`"},
    {"gpus", "it belongs to `resources`, beside `docker`"},
    {"shm_size", "it belongs to `resources`, beside `docker`"}};
template <>
inline constexpr std::span<const OtherName> other_names<DockerSettings>{other_docker_names};

inline constexpr OtherName other_resource_names[]{
    {"cpus", "write `cpu_count: 2`"},
    {"gpu", "write `gpu_count: 1`"},
    {"num_gpus", "write `gpu_count: 1`"},
    {"nvidia.com/gpu", "write `gpu_count: 1`"},
    {"vram", "write `gpu_memory: 16GiB`"},
    {"limits", "write `cpu_count`, `memory` and `gpu_count` here"},
    {"requests", "write `cpu_count`, `memory` and `gpu_count` here"},
    {"num_nodes", "write `nodes: 2`, beside the step's `settings`"},
    {"strategy", "it stays an argument of the Trainer"}};
template <>
inline constexpr std::span<const OtherName> other_names<ResourceSettings>{other_resource_names};

inline constexpr OtherName other_retry_names[]{
    {"retries", "write `max_retries: 3`"},
    {"limit", "write `max_retries: 3`"},
    {"count", "write `max_retries: 3`"},
    {"attempts", "write `max_retries: 2` for three attempts"},
    {"max_attempts", "write `max_retries: 2` for three attempts"},
    {"when", "write `on: [FAILURE, ...]`"}};
template <>
inline constexpr std::span<const OtherName> other_names<RetrySettings>{other_retry_names};

inline constexpr OtherName other_slurm_names[]{
    {"cpus_per_task", "write `resources: {cpu_count: 4}`, beside `slurm`"},
    {"mem", "write `resources: {memory: 16GiB}`, beside `slurm`"},
    {"gres", "write `resources: {gpu_count: 1, gpu_class: A100}`, beside `slurm`"},
    {"gpus", "write `resources: {gpu_count: 1}`, beside `slurm`"},
    {"nodelist", "write `extra_args: [--nodelist=NAME]`"},
    {"container", "steps are processes of the cluster's nodes, without images"},
    {"image", "steps are processes of the cluster's nodes, without images"}};
template <>
inline constexpr std::span<const OtherName> other_names<SlurmSettings>{other_slurm_names};

}  // namespace pipeline::settings
