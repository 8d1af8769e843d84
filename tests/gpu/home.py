"""What a call on a GPU brought home: predictions made here, and recordings kept for the tests."""
import glob
import io
import json
import os
import shutil
import tarfile

from bench import ROOT
from ladder import judge_ladder, predict

KEPT = os.path.join(ROOT, "tests/gpu")
STAGE_BYTES_MAX, STAGES_BYTES_MAX, DUMPS_BYTES_MAX = 3 << 19, 8 << 20, 2 << 20


def stages(folder):
    """(name, bytes of its .tar.gz), the smallest first."""
    with tarfile.open(os.path.join(folder, "golden.tar")) as tar:
        found = [(os.path.basename(member.name), tar.extractfile(member).read()) for member in tar if member.isfile() and member.name.endswith(".tar.gz")]
    return sorted(found, key=lambda stage: len(stage[1]))


def unpack(data, folder):
    """Plain files only, under their own names."""
    os.makedirs(folder, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as tar:
        for member in tar:
            if member.isfile():
                with open(os.path.join(folder, os.path.basename(member.name)), "wb") as file:
                    shutil.copyfileobj(tar.extractfile(member), file)


def results_of(folder):
    with open(os.path.join(folder, "results.json")) as file:
        return json.load(file)


def analyze_at_home(bench, folder):
    """Predictions, where the engine did not run on the GPU's machine."""
    bench.results.update(results_of(folder))
    for name, data in stages(folder):
        unpack(data, os.path.join(bench.golden, name[:-len(".tar.gz")]))
    for name in ("torch", "workload"):
        rows = bench.results.get(name + "_ladder", [])
        for row in rows:
            predict(bench, row, os.path.join(bench.golden, row["folder"]))
        if rows:
            judge_ladder(bench, name, rows)
    bench.results["predicted_at_home"] = bench.summary
    with open(os.path.join(folder, "results.json"), "w") as file:
        json.dump(bench.results, file, indent=1)
        file.write("\n")


def joined(calls):
    """The results of several calls as those of one."""
    whole = {}
    for results in calls:
        for key, value in results.items():
            if isinstance(value, list) and isinstance(whole.get(key), list) and key in ("checks", "summary", "not_run", "left_out"):
                whole[key] += value
            elif isinstance(value, dict) and isinstance(whole.get(key), dict):
                whole[key].update(value)
            else:
                whole[key] = value
    return whole


def keep(folders):
    """results.json, a short recording of each stage and buffers of CUPTI into tests/gpu, instead of those that were there before."""
    golden = os.path.join(KEPT, "golden")
    shutil.rmtree(golden, ignore_errors=True)
    os.makedirs(golden)
    total, dumps = 0, 0
    for name, data in sorted((stage for folder in folders for stage in stages(folder)), key=lambda stage: len(stage[1])):
        if name.startswith("cupti"):
            unpack(data, os.path.join(golden, "cupti"))
        elif len(data) <= STAGE_BYTES_MAX and total + len(data) <= STAGES_BYTES_MAX:
            total += len(data)
            with open(os.path.join(golden, name), "wb") as file:
                file.write(data)
        else:
            print(f"left out: {name}, {len(data)} bytes")
    for path in sorted(glob.glob(os.path.join(golden, "cupti/*.cupti")), key=os.path.getsize):
        dumps += os.path.getsize(path)
        if dumps > DUMPS_BYTES_MAX:
            print(f"left out: {os.path.basename(path)}, {os.path.getsize(path)} bytes")
            os.unlink(path)
    with open(os.path.join(KEPT, "results.json"), "w") as file:
        json.dump(joined(results_of(folder) for folder in folders), file, indent=1)
        file.write("\n")
    print(f"{KEPT}: results.json and golden/ ({total + min(dumps, DUMPS_BYTES_MAX)} bytes); commit both")
