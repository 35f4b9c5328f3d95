"""Scripts that run as in an interpreter of their own, which has imported torch already: a fork for each."""

import atexit
import multiprocessing
import os
import runpy
import sys

PACKAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")

_forks = multiprocessing.get_context("forkserver")
_forks.set_forkserver_preload(["torch", "torch._dynamo"])


class Script:
    """A script that has begun, with these variables set and no others of Tensile's; wait returns its status, stdout and
    stderr."""

    def __init__(self, path, **variables):
        self._files = path + ".out", path + ".err"
        self._process = _forks.Process(target=_run, args=(path, self._files, variables))
        self._process.start()

    def wait(self):
        self._process.join()
        texts = []
        for name in self._files:
            with open(name) as f:
                texts.append(f.read())
        return self._process.exitcode, *texts


def _run(path, files, variables):
    for fd, name in enumerate(files, 1):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT), fd)
    os.environ.pop("TENSILE_SOCKET", None)
    os.environ.update(variables)
    sys.path.insert(0, PACKAGE)
    sys.argv = [path]
    try:
        runpy.run_path(path, run_name="__main__")
    finally:
        atexit._run_exitfuncs()
