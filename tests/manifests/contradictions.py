"""What can contradict in a deployment: its manifests each other, or docmemd's settings.

Each rule yields one sentence for each contradiction."""

from pathlib import PurePosixPath

MIB = 2**20
UNITS = {"Mi": MIB, "Gi": 2**30, "Ti": 2**40}
RESERVE = 512 * MIB  # kMemoryReserveBytes of server/memory_plan.h
# After the drain: calls are cut, three listeners closed, 2 s each at most (server/server.cc).
STOP_SECONDS = 8
FILE_SYSTEM_PART = 0.9  # of a volume that documents may fill: the registry and the file system stay


def quantity(text):
    """Bytes of a Kubernetes quantity."""
    return int(text[:-2]) * UNITS[text[-2:]] if text[-2:] in UNITS else int(text)


def storage(claim):
    return quantity(claim["spec"]["resources"]["requests"]["storage"])


def selectors(d):
    labels = d.pod["metadata"]["labels"].items()
    selecting = [("StatefulSet docmem", d.stateful_set["selector"]["matchLabels"])]
    selecting += [(f"Service {s['metadata']['name']}", s["spec"]["selector"])
                  for s in d.all("Service")]
    selecting += [("NetworkPolicy docmem", policy["spec"]["podSelector"]["matchLabels"])
                  for policy in d.all("NetworkPolicy")]
    for who, selector in selecting:
        if not selector.items() <= labels:
            yield f"{who} selects {selector}, which isn't the pod"


def governing_service(d):
    name = d.stateful_set["serviceName"]
    headless = [s["metadata"]["name"] for s in d.all("Service")
                if s["spec"].get("clusterIP") == "None"]
    if name not in headless:
        yield f"the StatefulSet's service {name} isn't headless"


def port_names(d):
    for service in d.all("Service"):
        for port in service["spec"]["ports"]:
            if port["targetPort"] not in d.ports:
                yield f"Service {service['metadata']['name']} targets no port {port['targetPort']}"
    for rule in d.only("NetworkPolicy")["spec"]["ingress"]:
        for port in rule["ports"]:
            if port["port"] not in d.ports:
                yield f"the NetworkPolicy admits to no port {port['port']}"


def monitor(d):
    spec = d.only("ServiceMonitor")["spec"]
    wanted = spec["selector"]["matchLabels"].items()
    found = [s for s in d.all("Service") if wanted <= s["metadata"]["labels"].items()]
    if len(found) != 1:
        yield f"the ServiceMonitor finds {len(found)} services: each would be scraped once more"
        return
    names = {port["name"] for port in found[0]["spec"]["ports"]}
    for endpoint in spec["endpoints"]:
        if endpoint["port"] not in names:
            yield f"the ServiceMonitor scrapes no port {endpoint['port']}"


def listeners(d):
    for name, setting in [("grpc", "listen"), ("health", "health_listen"),
                          ("metrics", "metrics_listen")]:
        address = f"0.0.0.0:{d.ports[name]}"
        if d.settings[setting] != address:
            yield f"{setting} is {d.settings[setting]}, the port {name} is {address}"


def open_api(d):
    if not d.settings["no_auth"]:
        return
    for rule in d.only("NetworkPolicy")["spec"]["ingress"]:
        admits = "grpc" in [port["port"] for port in rule["ports"]]
        if admits and not rule.get("from"):
            yield "the API asks nobody who they are, and the NetworkPolicy admits everybody"


def way_out(d):
    policy = d.only("NetworkPolicy")["spec"]
    if "Egress" not in policy["policyTypes"] or policy.get("egress"):
        yield "docmemd calls nobody, and the NetworkPolicy lets it"


def probes(d):
    for name, service in [("startupProbe", "docmem.liveness"), ("livenessProbe", "docmem.liveness"),
                          ("readinessProbe", "")]:
        asked = d.container[name]["grpc"]
        if (asked["port"], asked.get("service", "")) != (d.ports["health"], service):
            yield f"the {name} asks {asked}, not the health port for '{service}'"


def grace(d):
    grace = d.pod["spec"]["terminationGracePeriodSeconds"]
    [_, pre_stop] = d.container["lifecycle"]["preStop"]["exec"]["command"]
    needed = int(pre_stop) + d.settings["drain_seconds"] + STOP_SECONDS
    if grace < needed:
        yield f"a grace of {grace} s is less than preStop, drain and stop: {needed} s"


def service_variables(d):
    if d.pod["spec"].get("enableServiceLinks", True):
        yield "the Service docmem sets DOCMEM_PORT, which looks like a setting"


def variables(d):
    for variable in d.container.get("env", []):
        if variable["name"].removeprefix("DOCMEM_").lower() not in d.settings:
            yield f"{variable['name']} is no setting: docmemd would ignore it"


def volumes(d):
    held = {volume["name"] for volume in d.pod["spec"]["volumes"]}
    held |= {claim["metadata"]["name"] for claim in d.stateful_set["volumeClaimTemplates"]}
    for name in sorted(held ^ set(d.mounts)):
        yield f"{name} is only a mount or only a volume"
    [config] = [v["configMap"]["name"] for v in d.pod["spec"]["volumes"] if "configMap" in v]
    if config != d.only("ConfigMap")["metadata"]["name"]:
        yield f"the volume is of ConfigMap {config}, which nobody generates"


def paths(d):
    for setting, writes in [("data", True), ("model", False)]:
        mount = d.mounts[setting]
        if mount["mountPath"] != d.settings[setting]:
            yield f"{setting} is {d.settings[setting]}, its volume is at {mount['mountPath']}"
        if mount.get("readOnly", False) == writes:
            yield f"the volume {setting} has the wrong readOnly"
    config = PurePosixPath(d.container["args"][1])
    if str(config.parent) != d.mounts["config"]["mountPath"]:
        yield f"--config names {config}, its volume is at {d.mounts['config']['mountPath']}"


def rights(d):
    pod, container = d.pod["spec"]["securityContext"], d.container["securityContext"]
    wanted = [
        ("runAsNonRoot", pod.get("runAsNonRoot"), True),
        ("seccompProfile", pod.get("seccompProfile"), {"type": "RuntimeDefault"}),
        ("readOnlyRootFilesystem", container.get("readOnlyRootFilesystem"), True),
        ("allowPrivilegeEscalation", container.get("allowPrivilegeEscalation"), False),
        ("capabilities", container.get("capabilities"), {"drop": ["ALL"]}),
        ("service account token", d.pod["spec"].get("automountServiceAccountToken"), False),
        ("user of the image", f"{pod.get('runAsUser')}:{pod.get('runAsGroup')}", d.image_user),
        ("group of the volumes", pod.get("fsGroup"), pod.get("runAsGroup")),
    ]
    for name, value, right in wanted:
        if value != right:
            yield f"{name} is {value}, not {right}"


def memory(d):
    on_cpu = d.settings["device"] == "cpu"
    fast = (d.model.weights + d.model.prefill + d.model.cache + d.settings["device_budget"]
            + d.settings["kv_budget"] + RESERVE)
    limit = quantity(d.container["resources"]["limits"]["memory"])
    slow = d.model.weights + d.model.cache + d.settings["host_budget"] + RESERVE
    needed = fast if on_cpu else slow
    if needed > limit:
        yield f"{needed // MIB} MiB exceed the memory limit of {limit // MIB} MiB"
    if quantity(d.container["resources"]["requests"]["memory"]) != limit:
        yield "less memory is requested than used: the node may be overcommitted"
    if not on_cpu and fast > gpu_bytes(d):
        yield f"{fast // MIB} MiB exceed the GPU's {gpu_bytes(d) // MIB} MiB"


def gpu_bytes(d):
    """Memory of the smallest GPU that the pod may meet."""
    affinity = d.pod["spec"]["affinity"]["nodeAffinity"]
    [term] = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    [expression] = term["matchExpressions"]
    assert (expression["key"], expression["operator"]) == ("nvidia.com/gpu.memory", "Gt")
    return int(expression["values"][0]) * MIB


def gpu(d):
    asked = int(d.container["resources"]["limits"].get("nvidia.com/gpu", 0))
    if asked != (d.settings["device"] != "cpu"):
        yield f"device is {d.settings['device']}, the pod asks for {asked} GPUs"


def threads(d):
    cores, used = int(d.container["resources"]["requests"]["cpu"]), d.settings["threads"]
    if not 0 < used <= cores:
        yield f"{used} threads (0: all of the node's cores) on {cores} requested cores"


def disk(d):
    [claim] = d.stateful_set["volumeClaimTemplates"]
    budget, held = d.settings["disk_budget"], storage(claim)
    if not 0 < budget <= FILE_SYSTEM_PART * held:
        yield f"a disk budget of {budget} bytes (0: no limit) on a volume of {held}"
    if storage(d.only("PersistentVolumeClaim", "docmem-model")) < d.model.weights:
        yield f"the volume docmem-model doesn't hold {d.model.weights} bytes of weights"


def one_memory(d):
    replicas = d.stateful_set["replicas"]
    scaling = d.all("HorizontalPodAutoscaler") + d.all("PodDisruptionBudget")
    if replicas != 1 or scaling:
        yield f"{replicas} replicas, {len(scaling)} of HPA and PDB: each replica is another memory"


RULES = [selectors, governing_service, port_names, monitor, listeners, open_api, way_out, probes,
         grace, service_variables, variables, volumes, paths, rights, memory, gpu, threads, disk,
         one_memory]


def contradictions(deployment):
    return [sentence for rule in RULES for sentence in rule(deployment)]
