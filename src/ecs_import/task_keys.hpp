/// @file
/// The keys of an ECS task definition (API reference, RegisterTaskDefinition and
/// DescribeTaskDefinition, 2014-11-13), and the reasons why some are not supported.
#pragma once

#include <array>

namespace pipeline::ecs_import {

struct TaskKey {
  const char* name;
  const char* notice = nullptr;  ///< Reason why the key is not supported; null for a supported key
                                 ///< or one without effect.
};

inline constexpr std::array task_keys{
    TaskKey{"family"}, TaskKey{"containerDefinitions"}, TaskKey{"volumes"},
    TaskKey{"placementConstraints"}, TaskKey{"cpu"}, TaskKey{"memory"}, TaskKey{"networkMode"},
    TaskKey{"ipcMode"}, TaskKey{"pidMode"}, TaskKey{"runtimePlatform"}, TaskKey{"tags"},
    TaskKey{"taskRoleArn", "steps get no credentials of AWS roles"},
    TaskKey{"executionRoleArn", "images are pulled with the credentials of `docker login`"},
    TaskKey{"proxyConfiguration", "there is no App Mesh proxy"},
    TaskKey{"inferenceAccelerators", "inference accelerators are not supported"},
    TaskKey{"ephemeralStorage", "containers share the engine's disk"},
    TaskKey{"enableFaultInjection", "no faults are injected"}, TaskKey{"requiresCompatibilities"},
    // Keys that only DescribeTaskDefinition returns:
    TaskKey{"taskDefinitionArn"}, TaskKey{"revision"}, TaskKey{"status"},
    TaskKey{"requiresAttributes"}, TaskKey{"compatibilities"}, TaskKey{"registeredAt"},
    TaskKey{"deregisteredAt"}, TaskKey{"registeredBy"}, TaskKey{"deleteRequestedAt"}};

inline constexpr std::array container_keys{
    TaskKey{"name"},
    TaskKey{"image"},
    TaskKey{"command"},
    TaskKey{"entryPoint"},
    TaskKey{"workingDirectory"},
    TaskKey{"environment"},
    TaskKey{"secrets"},
    TaskKey{"cpu"},
    TaskKey{"memory"},
    TaskKey{"memoryReservation"},
    TaskKey{"essential"},
    TaskKey{"dependsOn"},
    TaskKey{"resourceRequirements"},
    TaskKey{"linuxParameters"},
    TaskKey{"ulimits"},
    TaskKey{"user"},
    TaskKey{"mountPoints"},
    TaskKey{"privileged"},
    TaskKey{"readonlyRootFilesystem"},
    TaskKey{"hostname"},
    TaskKey{"dnsServers"},
    TaskKey{"dnsSearchDomains"},
    TaskKey{"dockerSecurityOptions"},
    TaskKey{"dockerLabels"},
    TaskKey{"disableNetworking"},
    TaskKey{"extraHosts"},
    TaskKey{"systemControls"},
    TaskKey{"versionConsistency"},
    TaskKey{"environmentFiles", "write the variables under 'environment'"},
    TaskKey{"portMappings", "no ports are published: steps are not services"},
    TaskKey{"links", "containers do not know each other by name"},
    TaskKey{"volumesFrom", "name the volumes under 'mountPoints'"},
    TaskKey{"repositoryCredentials", "images are pulled with the credentials of `docker login`"},
    TaskKey{"restartPolicy", "`retry` in a pipeline file does that"},
    TaskKey{"startTimeout", "`timeout` in a pipeline file limits a whole step"},
    TaskKey{"stopTimeout", "a step has 10 seconds to stop"},
    TaskKey{"healthCheck", "no step waits for another's health"},
    TaskKey{"logConfiguration", "pipe keeps what a step prints: `pipe logs`"},
    TaskKey{"firelensConfiguration", "pipe keeps what a step prints: `pipe logs`"},
    TaskKey{"interactive", "a step's standard input is empty"},
    TaskKey{"pseudoTerminal", "steps have no terminal"},
    TaskKey{"credentialSpecs", "there is no Active Directory"}};

inline constexpr std::array volume_keys{
    TaskKey{"name"},
    TaskKey{"host"},
    TaskKey{"dockerVolumeConfiguration",
            "the volume has docker's default driver, scope and labels"},
    TaskKey{"configuredAtLaunch", "the configuration at launch is not known"},
    TaskKey{"efsVolumeConfiguration", "Amazon EFS cannot be mounted here"},
    TaskKey{"fsxWindowsFileServerVolumeConfiguration", "Amazon FSx cannot be mounted here"},
    TaskKey{"s3filesVolumeConfiguration", "Amazon S3 cannot be mounted here"}};

inline constexpr std::array linux_keys{
    TaskKey{"sharedMemorySize"},   TaskKey{"capabilities"}, TaskKey{"devices"},
    TaskKey{"initProcessEnabled"}, TaskKey{"tmpfs"},        TaskKey{"maxSwap"},
    TaskKey{"swappiness"}};

inline constexpr std::array platform_keys{TaskKey{"cpuArchitecture"},
                                          TaskKey{"operatingSystemFamily"}};
inline constexpr std::array constraint_keys{TaskKey{"type"}, TaskKey{"expression"}};
inline constexpr std::array host_keys{TaskKey{"sourcePath"}};
inline constexpr std::array tag_keys{TaskKey{"key"}, TaskKey{"value"}};
inline constexpr std::array pair_keys{TaskKey{"name"}, TaskKey{"value"}};
inline constexpr std::array secret_keys{TaskKey{"name"}, TaskKey{"valueFrom"}};
inline constexpr std::array dependency_keys{TaskKey{"containerName"}, TaskKey{"condition"}};
inline constexpr std::array requirement_keys{TaskKey{"type"}, TaskKey{"value"}};
inline constexpr std::array mount_keys{TaskKey{"sourceVolume"}, TaskKey{"containerPath"},
                                       TaskKey{"readOnly"}};
inline constexpr std::array capability_keys{TaskKey{"add"}, TaskKey{"drop"}};
inline constexpr std::array device_keys{TaskKey{"hostPath"}, TaskKey{"containerPath"},
                                        TaskKey{"permissions"}};
inline constexpr std::array extra_host_keys{TaskKey{"hostname"}, TaskKey{"ipAddress"}};
inline constexpr std::array tmpfs_keys{TaskKey{"containerPath"}, TaskKey{"size"},
                                       TaskKey{"mountOptions"}};
inline constexpr std::array control_keys{TaskKey{"namespace"}, TaskKey{"value"}};
inline constexpr std::array ulimit_keys{TaskKey{"name"}, TaskKey{"softLimit"},
                                        TaskKey{"hardLimit"}};

}  // namespace pipeline::ecs_import
