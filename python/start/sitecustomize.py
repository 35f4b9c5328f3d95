"""Python runs this at its start in a script that tensile has started: once torch is imported, the first optimizer whose model
is trained joins. Nothing else happens, and the sitecustomize that this one hides runs as well."""

import importlib.machinery
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def hidden():
    """Runs the sitecustomize that is found behind this one."""
    path = [p for p in sys.path if os.path.abspath(p) != HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if spec is not None and spec.loader is not None:
        sys.modules["sitecustomize"] = module = type(sys)("sitecustomize")
        module.__spec__, module.__loader__, module.__file__ = spec, spec.loader, spec.origin
        spec.loader.exec_module(module)


class Torch:
    """Finds torch as Python does, and has the package told when it was imported. Some only ask whether torch is there."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        others = (f.find_spec(name, path, target) for f in list(sys.meta_path) if f is not self)
        spec = next((s for s in others if s is not None), None)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def exec_module(module):
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
                run(module)
                wait()

            spec.loader.exec_module = exec_module
        return spec


def wait():
    """Has the package wait for training. Its faults are not the script's."""
    try:
        import tensile
        if "TENSILE_OBSERVE" in os.environ:
            from tensile import observe
            observe.begin()
        if "TENSILE_SOCKET" in os.environ:
            tensile.wait_for_training()
    except Exception as e:
        print(f"tensile: it cannot wait for training ({type(e).__name__}: {e}): the script trains without a plan; say "
              "tensile.join(model, optimizer) in it", file=sys.stderr)


if "TENSILE_SOCKET" in os.environ or "TENSILE_OBSERVE" in os.environ:
    sys.meta_path.insert(0, Torch())
hidden()
