#include "orchestrators/kubernetes/refused_fields.hpp"

#include <array>

namespace pipeline::orchestrators::kubernetes {
namespace {

struct Origin {
  /// Field of the pod (its first container as `container.`) or of the Job.
  std::string_view field;
  const char* setting;
};
constexpr std::array origins{
    Origin{"pod.affinity", "`kubernetes.affinity`"},
    Origin{"pod.nodeSelector", "`kubernetes.node_selectors`"},
    Origin{"pod.tolerations", "`kubernetes.tolerations`"},
    Origin{"pod.volumes", "`kubernetes.volumes`"},
    Origin{"pod.imagePullSecrets", "`kubernetes.image_pull_secrets`"},
    Origin{"pod.serviceAccountName", "`kubernetes.service_account_name`"},
    Origin{"pod.priorityClassName", "`kubernetes.priority_class_name`"},
    Origin{"pod.runtimeClassName", "`kubernetes.runtime_class_name`"},
    Origin{"pod.schedulerName", "`kubernetes.scheduler_name`"},
    Origin{"pod.securityContext", "`kubernetes.pod_security_context`"},
    Origin{"pod.hostIPC", "`kubernetes.host_ipc`"},
    Origin{"pod.", "`kubernetes.additional_pod_spec_args` or `kubernetes.job_patch`"},
    Origin{"container.resources", "`resources` or `kubernetes.resources`"},
    Origin{"container.envFrom", "`kubernetes.env_from`"},
    Origin{"container.env", "`environment` or `kubernetes.env`"},
    Origin{"container.volumeMounts", "`kubernetes.volume_mounts` or `kubernetes.volumes`"},
    Origin{"container.securityContext", "`docker.user` or `kubernetes.container_security_context`"},
    Origin{"container.image", "`docker.parent_image`"},
    Origin{"template.metadata.labels", "`kubernetes.labels`"},
    Origin{"template.metadata.annotations", "`kubernetes.annotations`"},
    Origin{"metadata.labels", "`kubernetes.labels`"},
    Origin{"metadata.annotations", "`kubernetes.annotations`"},
    Origin{"spec.activeDeadlineSeconds", "`timeout` or `kubernetes.active_deadline_seconds`"},
    Origin{"spec.ttlSecondsAfterFinished", "`kubernetes.ttl_seconds_after_finished`"},
    Origin{"spec.", "`kubernetes.job_patch`"},
};

}  // namespace

std::string setting_of_field(std::string_view field) {
  std::string place(field);
  for (const auto& [long_form, short_form] :
       {std::pair("spec.template.spec.containers[0].", "container."),
        std::pair("spec.template.spec.", "pod."), std::pair("spec.template.", "template.")})
    if (const std::string_view prefix = long_form; place.starts_with(prefix)) {
      place = short_form + place.substr(prefix.size());
      break;
    }
  for (const auto& origin : origins)
    if (place.starts_with(origin.field)) return origin.setting;
  return {};
}

}  // namespace pipeline::orchestrators::kubernetes
