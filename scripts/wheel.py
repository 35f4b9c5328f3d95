"""Has hatchling put the command tensile, built for the machine that GOARCH names, and the licences of what it is made of
into the wheel. Without cgo the command needs no C compiler, and no C library where it runs."""

import os
import shutil
import subprocess

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

MACHINES = {"linux/amd64": "x86_64", "linux/arm64": "aarch64"}


class Hook(BuildHookInterface):
    def initialize(self, version, build_data):
        go = os.environ.get("GO", "go")
        if shutil.which(go) is None:
            self.app.abort(f"tensile-train is built by Go, and there is no {go} in PATH: install Go, or install the wheel "
                           "of this machine, which needs none")
        self.env = dict(os.environ, GO=go, CGO_ENABLED="0")
        machine = "/".join(self.run(go, "env", "GOOS", "GOARCH", output=True).split())
        if machine not in MACHINES:
            self.app.abort(f"tensile-train runs on {' and '.join(MACHINES)}, and this is {machine}: build it there")
        built = os.path.join(self.root, "bin", "wheel", machine)
        shutil.rmtree(built, ignore_errors=True)
        command, licences = os.path.join(built, "tensile"), os.path.join(built, "licenses")
        self.run(go, "build", "-trimpath", "-buildvcs=auto", "-ldflags", "-s -w", "-o", command, "./cmd/tensile")
        self.run("sh", "scripts/licenses.sh", licences)
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-manylinux_2_28_{MACHINES[machine]}"
        build_data["shared_scripts"] = {command: "tensile"}
        build_data["force_include"][licences] = f"{self.build_config.builder.artifact_project_id}.dist-info/licenses"

    def run(self, *words, output=False):
        """Runs a command in the checkout, and ends the build if it fails."""
        done = subprocess.run(words, cwd=self.root, env=self.env, stdout=subprocess.PIPE if output else None, text=True)
        if done.returncode != 0:
            self.app.abort(f"tensile-train is not built: {' '.join(words)} failed")
        return done.stdout
