"""Writes rows in the form of three public cluster traces, made up: 40 jobs each, Poisson arrivals, long tails."""
import datetime, json, math, random

def arrivals(seed, n=40, gap=8.0):
    r = random.Random(seed)
    t = 0.0
    for i in range(n):
        t += r.expovariate(1 / gap)
        yield r, i, t, min(600.0, 10.0 * r.paretovariate(1.1))

with open("alibaba.csv", "w") as f:
    for r, i, t, long in arrivals(1):
        gpu = r.choice([25, 50, 100])
        f.write(f"job{i},tensorflow,1.0,Terminated,{1000 + t:.1f},{1000 + t + long:.1f},600.0,29.3,{gpu:.1f},T4\n")
jobs = []
begin = datetime.datetime(2017, 10, 7, 1, 0, 0)
for r, i, t, long in arrivals(2):
    s = begin + datetime.timedelta(seconds=math.floor(t))
    jobs.append({"status": "Pass", "vc": f"vc{i % 3}", "jobid": f"application_{i}", "user": f"u{i % 7}",
                 "submitted_time": str(s), "attempts": [{"start_time": str(s), "end_time": str(
                     s + datetime.timedelta(seconds=math.ceil(long))), "detail": [{"ip": "m1", "gpus": ["gpu0"]}]}]})
json.dump(jobs, open("philly.json", "w"), indent=0)
with open("gavel.trace", "w") as f:
    for r, i, t, long in arrivals(3):
        model, speed = r.choice([("ResNet-18 (batch size 64)", 20), ("ResNet-50 (batch size 32)", 8), ("Transformer (batch size 32)", 8), ("LM (batch size 20)", 8)])
        f.write(f"{model}\tpython3 main.py\t--num_steps\t1\t{int(speed * long)}\t{t:.2f}\t1\n")
