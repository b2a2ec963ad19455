#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""manifests.py PAGE: the Kubernetes manifests of a page against the schemas of Kubernetes, and against what cohort reads.

The schemas come from PyPI into a virtual environment of the build tree; where that cannot be reached, exit code 77.
"""
import copy
import os
import re
import shlex
import subprocess
import sys

PACKAGE = "kubernetes-validate==1.37.0"


def skip(why):
    print("SKIPPED: " + why)
    sys.exit(77)


def enter_environment():
    home = os.path.abspath("manifests-venv")
    python = os.path.join(home, "bin", "python")
    if sys.prefix == home:
        return
    if not os.path.exists(os.path.join(home, "ready")):
        made = subprocess.run([sys.executable, "-m", "venv", "--clear", home], capture_output=True, text=True)
        if made.returncode != 0:
            skip("no virtual environment can be made; Debian 12: apt-get install python3-venv")
        got = subprocess.run([python, "-m", "pip", "install", "-q", PACKAGE], capture_output=True, text=True)
        if got.returncode != 0:
            skip(f"{PACKAGE} cannot be installed from PyPI: {got.stderr.strip().splitlines()[-1:]}")
        open(os.path.join(home, "ready"), "w").close()
    os.execv(python, [python] + sys.argv)


def refused(validate, document):
    try:
        validate.validate(document, validate.latest_version(), strict=True)
        return None
    except validate.ValidationError as error:
        return str(error.message)


def parts_with_a_schema(document):
    """Kubernetes does not know the kinds of operators, but what these start: the templates of pods."""
    if not document["apiVersion"].startswith("kubeflow.org/"):
        return [document]
    replicas = document["spec"]["pytorchReplicaSpecs"].values()
    return [
        {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "pods"}, "template": each["template"]}
        for each in replicas
    ]


def check_pytorch_job(job):
    """What the training operator reads: the names of replicas, and of the container that it gives its variables."""
    spec = job["spec"]
    expect(set(job) == {"apiVersion", "kind", "metadata", "spec"}, "a PyTorchJob to have these fields alone")
    expect(set(spec) == {"pytorchReplicaSpecs"}, "nothing but replicas, found " + str(set(spec)))
    expect(set(spec["pytorchReplicaSpecs"]) == {"Master", "Worker"}, "a master and workers")
    expect(spec["pytorchReplicaSpecs"]["Master"]["replicas"] == 1, "one master: it is rank 0")
    for name, replica in spec["pytorchReplicaSpecs"].items():
        expect(set(replica) == {"replicas", "restartPolicy", "template"}, name + " to have these fields alone")
        expect(replica["restartPolicy"] == "Never", "a pod that fails to fail the job, not to come back alone")
        container = replica["template"]["spec"]["containers"][0]
        expect(container["name"] == "pytorch", "the container that the operator looks for")
        words = shlex.split(container["args"][0])
        expect(words[:3] == ["exec", "cohort", "run"], "cohort run to count on from the pods")
        for option, variable in {"--nnodes": "WORLD_SIZE", "--node-rank": "RANK", "--master-addr": "MASTER_ADDR",
                                 "--master-port": "MASTER_PORT"}.items():
            expect(words[words.index(option) + 1] == "$" + variable, f"{option} to be the operator's {variable}")
        env = {e["name"]: e for e in container["env"]}
        expect("secretKeyRef" in env["COHORT_SECRET"]["valueFrom"], "the secret to come from a Secret")


def expect(condition, what):
    if not condition:
        sys.exit("FAILED: expected " + what)


def main():
    enter_environment()
    import kubernetes_validate as validate
    import yaml

    text = open(sys.argv[1], encoding="utf-8").read()
    documents = [d for block in re.findall(r"```yaml\n(.*?)```", text, re.S) for d in yaml.safe_load_all(block)]
    expect(len(documents) >= 3, "three manifests at least, found " + str(len(documents)))
    for d in documents:
        for part in parts_with_a_schema(d):
            why = refused(validate, part)
            expect(why is None, f"{part['kind']} of {d['metadata']['name']} to fit its schema: {why}")

    # A check that lets everything through is none.
    broken = copy.deepcopy(documents[0])
    broken["spec"]["noSuchField"] = 1
    expect(refused(validate, broken) is not None, "an unknown field to be refused")

    kinds = {}
    for d in documents:
        kinds.setdefault(d["kind"], []).append(d)
    service = kinds["Service"][0]
    expect(service["spec"]["clusterIP"] == "None", "a headless service")
    expect(service["spec"]["publishNotReadyAddresses"], "names of pods that are not ready yet")
    for job in kinds["Job"]:
        spec = job["spec"]
        pod = spec["template"]["spec"]
        expect(spec["completionMode"] == "Indexed", "an indexed job: it alone numbers its pods")
        expect(spec["parallelism"] == spec["completions"], "all pods to run at once")
        expect(pod["subdomain"] == service["metadata"]["name"], "the pods to be in the service")
        expect(pod["restartPolicy"] == "Never", "a pod that fails to fail the job, not to come back alone")
        env = {e["name"]: e for e in pod["containers"][0]["env"]}
        expect(env["COHORT_WORLD_SIZE"]["value"] == str(spec["completions"]), "the world to be all pods")
        expect(env["COHORT_SERVICE"]["value"] == service["metadata"]["name"], "the service to be named to cohort")
        expect("secretKeyRef" in env["COHORT_SECRET"]["valueFrom"], "the secret to come from a Secret")
    for job in kinds["PyTorchJob"]:
        check_pytorch_job(job)
        broken = copy.deepcopy(parts_with_a_schema(job)[0])
        broken["template"]["spec"]["containers"][0]["command"] = "sh"
        expect(refused(validate, broken) is not None, "a pod template with a wrong type to be refused")
    print(f"{len(documents)} manifests fit the schemas of Kubernetes {validate.latest_version()}")


main()
