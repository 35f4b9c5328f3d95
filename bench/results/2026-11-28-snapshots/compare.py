"""Compares what `tensile pool --trace` says of CUDA memory snapshots with what was alive at once in them.

    python3 compare.py TENSILE FOLDER

FOLDER has pickles of torch.cuda.memory._dump_snapshot. The oracle knows nothing of Tensile: it begins with the blocks that
are allocated at the end of the record and walks the events backwards, in requested bytes. A line per snapshot; the exit
status is 1 if a height is lower than what was alive.
"""
import json
import pathlib
import pickle
import subprocess
import sys
import tempfile


class Plain(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"{module}.{name} is not data")


def alive(snapshot, device):
    """The largest number of bytes that were allocated at once, and the events."""
    events = snapshot["device_traces"][device]
    live = sum(b.get("requested_size", b["size"]) for s in snapshot["segments"] if s.get("device", 0) == device
               for b in s["blocks"] if b["state"] == "active_allocated")
    most = live
    for event in reversed(events):
        if event["action"] == "alloc":
            live -= event["size"]
        elif event["action"] == "free_completed":
            live += event["size"]
        most = max(most, live)
    return most, len(events)


def main(tensile, folder):
    bad = 0
    print(f"{'snapshot':56} {'events':>7} {'alive at once':>14} {'height':>14} {'bound':>14}  iteration")
    for path in sorted(pathlib.Path(folder).glob("*.pickle")):
        with open(path, "rb") as file:
            snapshot = Plain(file).load()
        for device, events in enumerate(snapshot["device_traces"]):
            if not events:
                continue
            most, count = alive(snapshot, device)
            with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
                json.dump(snapshot, file)
                file.flush()
                run = subprocess.run([tensile, "pool", "--trace", "--json", "--device", str(device), file.name],
                                     capture_output=True, text=True)
            if run.returncode:
                print(path.name, run.stderr.strip())
                bad += 1
                continue
            said = json.loads(run.stdout)
            found = said["iteration"]
            what = "the whole record" if found.get("whole") else f"{found['repeats']} of {found['events']} events"
            wrong = "" if said["height"] >= most and said["lower_bound"] >= most else "  TOO LOW"
            bad += bool(wrong)
            print(f"{path.stem:56} {count:7} {most:14} {said['height']:14} {said['lower_bound']:14}  {what}{wrong}")
    return bad


if __name__ == "__main__":
    sys.exit(1 if main(*sys.argv[1:]) else 0)
