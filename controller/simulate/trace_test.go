package simulate

import (
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

// What is written is read again, in the order of submission.
func TestReadWhatWasWritten(t *testing.T) {
	want := Generator{Jobs: 300, Seed: 7, Gap: time.Second, Fewest: 100, Most: 100_000, Tail: 0.5, Tenants: 3,
		Mix: Mix}.Trace()
	var file bytes.Buffer
	if err := Write(&file, want); err != nil {
		t.Fatal(err)
	}
	got, err := Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Error("another trace is read than was written")
	}
}

func TestRead(t *testing.T) {
	got, err := Read(strings.NewReader("\ufeffbatch,model,submit_s,iterations\r\n16,lenet,2.5,10\n8, vgg16 ,0,3\n"))
	want := []Arrival{{Model: "vgg16", Batch: 8, Iterations: 3},
		{Submit: 2500 * time.Millisecond, Model: "lenet", Batch: 16, Iterations: 10}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestReadErrors(t *testing.T) {
	const header = "submit_s,model,batch,iterations\n"
	for text, want := range map[string]string{
		"":                               "the trace is empty: want a line submit_s,model,batch,iterations,tenant",
		"submit_s,model,batch\n":         "line 1: there is no column iterations",
		header + "x,lenet,1,1\n":         `line 2: submit_s: "x": give seconds from 0 on`,
		header + "0,lenet,1,1\n-1,a,1,1": `line 3: submit_s: "-1"`,
		header + "NaN,lenet,1,1\n":       `submit_s: "NaN"`,
		header + "1e300,lenet,1,1\n":     `submit_s: "1e300"`,
		header + "0,,1,1\n":              "line 2: model: there is none",
		header + "0,lenet,0,1\n":         `batch: "0": give a whole number from 1 to 2147483647`,
		"batch," + header:                "line 1: there are two columns batch",
		header + "0,lenet,1,99999999999": `iterations: "99999999999"`,
		header + "0,lenet,1\n":           "wrong number of fields",
		header + "0,\"lenet,1,1\n":       "quote",
	} {
		if _, err := Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

// Rows in the form of each public trace, made by us.
func TestReadPublic(t *testing.T) {
	mix := []Kind{{"lenet", 16}}
	for _, test := range []struct {
		format, text string
		want         []Arrival
		skipped      Skipped
	}{
		{"alibaba", `a1,tensorflow,1.0,Terminated,1000.0,1600.0,600.0,29.3,50.0,MISC
a2,worker,4.0,Terminated,1010.0,1700.0,600.0,29.3,100.0,V100
a3,tensorflow,1.0,Failed,1020.0,1700.0,600.0,29.3,100.0,P100
a4,ps,1.0,Terminated,1030.0,1700.0,600.0,29.3,,
a5,tensorflow,1.0,Terminated,1040.0,,600.0,29.3,100.0,T4
a6,tensorflow,2.0,Terminated,900.5,1000.0,600.0,29.3,25.0,T4
`,
			[]Arrival{{Model: "lenet", Batch: 16, Alone: 99500 * time.Millisecond},
				{Submit: 99500 * time.Millisecond, Model: "lenet", Batch: 16, Alone: 600 * time.Second}},
			Skipped{severalDevices: 1, unfinished: 1, noGPU: 1, noLength: 1}},
		{"philly",
			`[{"status":"Pass","vc":"v1","jobid":"p1","user":"u","submitted_time":"2017-10-07 01:11:39","attempts":[
{"start_time":"2017-10-07 01:12:09","end_time":"2017-10-07 01:13:09","detail":[{"ip":"m1","gpus":["gpu0"]}]},
{"start_time":"2017-10-07 01:14:00","end_time":"2017-10-07 01:14:30","detail":[{"ip":"m2","gpus":["gpu3"]}]}]},
{"status":"Killed","vc":"v1","jobid":"p2","user":"u","submitted_time":"2017-10-07 01:11:39","attempts":[]},
{"status":"Pass","vc":"v1","jobid":"p3","user":"u","submitted_time":"2017-10-07 01:11:40","attempts":[]},
{"status":"Pass","vc":"v1","jobid":"p4","user":"u","submitted_time":"2017-10-07 01:11:41","attempts":[
{"start_time":"2017-10-07 01:12:09","end_time":null,"detail":[{"ip":"m1","gpus":["gpu0"]}]}]},
{"status":"Pass","vc":"v2","jobid":"p5","user":"u","submitted_time":"2017-10-07 01:10:39","attempts":[
{"start_time":"2017-10-07 01:12:09","end_time":"2017-10-07 01:13:09","detail":[{"ip":"m1","gpus":["gpu0","gpu1"]}]}]}]`,
			[]Arrival{{Model: "lenet", Batch: 16, Tenant: "v1", Alone: 90 * time.Second}},
			Skipped{unfinished: 1, noGPU: 1, noLength: 1, severalDevices: 1}},
		{"gavel", "ResNet-18 (batch size 64)\tpython3 main.py\t--num_steps\t1\t500\t30.5\t1\n" +
			"A3C\tpython3 main.py\t--max-steps\t0\t500\t31\t1\n" +
			"ResNet-50 (batch size 32)\tpython3 main.py\tdir\t--num_minibatches\t1\t900\t1\t1.0\t-1.0\t40.25\n" +
			"LM (batch size 5)\tpython main.py\t--steps\t1\t500\t50\t2\n",
			[]Arrival{{Model: "resnet18", Batch: 64, Iterations: 500},
				{Submit: 9750 * time.Millisecond, Model: "resnet50", Batch: 32, Iterations: 900}},
			Skipped{unknownNetwork: 1, severalDevices: 1}},
	} {
		got, skipped, err := ReadPublic(test.format, strings.NewReader(test.text), mix)
		if err != nil || !reflect.DeepEqual(got, test.want) || !reflect.DeepEqual(skipped, test.skipped) {
			t.Errorf("%s: %+v, skipped %v, %v", test.format, got, skipped, err)
		}
	}
}

func TestReadPublicErrors(t *testing.T) {
	for _, test := range []struct{ format, text, want string }{
		{"slurm", "", `there is no format "slurm": give one of alibaba, gavel, philly`},
		{"alibaba", "", "no row becomes a job"},
		{"alibaba", "a,b\n", "wrong number of fields"},
		{"alibaba", "a,t,x,Terminated,1,2,3,4,50,M\n", `line 1: inst_num: "x" is no number`},
		{"alibaba", "a,t,1,Terminated,soon,2,3,4,50,M\n", `line 1: start_time: "soon"`},
		{"philly", "{}", "it is no list of jobs"},
		{"philly", `[{"status":"Pass","jobid":"p1"}]`, "job 1, p1: submitted_time: there is none"},
		{"philly", `[{"status":1}]`, "job 1: json"},
		{"gavel", "a\tb\n", "line 1: it has 2 fields between tabs, want 7 or 10"},
		{"gavel", "LM (batch size 5)\tc\ts\t1\t500\t0\tx\n", `line 1: scale_factor: "x" is no number`},
		{"gavel", "LM (batch size x)\tc\ts\t1\t500\t0\t1\n", `line 1: batch size: "x"`},
	} {
		_, _, err := ReadPublic(test.format, strings.NewReader(test.text), Mix)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s %q: error %v, want %q", test.format, test.text, err, test.want)
		}
	}
}

// Whatever a trace holds is read, or there is an error; what is read makes sense.
func FuzzRead(f *testing.F) {
	f.Add("", "submit_s,model,batch,iterations,tenant\n0,lenet,16,10,t\n")
	f.Add("alibaba", "a1,tensorflow,1.0,Terminated,1000.0,1600.0,600.0,29.3,50.0,MISC\n")
	f.Add("philly", `[{"status":"Pass","jobid":"p","submitted_time":"2017-10-07 01:11:39","attempts":[{"start_time":`+
		`"2017-10-07 01:12:09","end_time":"2017-10-07 01:13:09","detail":[{"gpus":["gpu0"]}]}]}]`)
	f.Add("gavel", "ResNet-18 (batch size 64)\tpython3 main.py\t--num_steps\t1\t500\t30.5\t1\n")
	f.Fuzz(func(t *testing.T, format, text string) {
		all, _, err := ReadPublic(format, strings.NewReader(text), Mix)
		if format == "" {
			all, err = Read(strings.NewReader(text))
		}
		if err != nil {
			return
		}
		for i, a := range all {
			if a.Submit < 0 || i > 0 && a.Submit < all[i-1].Submit || a.Model == "" || a.Batch < 1 ||
				(a.Iterations < 1) == (a.Alone <= 0) {
				t.Fatalf("arrival %d is %+v", i, a)
			}
		}
	})
}

// A generator makes the lengths and gaps that it was asked for.
func TestGenerator(t *testing.T) {
	g := Generator{Jobs: 20_000, Seed: 1, Gap: time.Second, Fewest: 100, Most: 100_000, Tail: 0.5, Tenants: 4, Mix: Mix}
	if err := g.Check(); err != nil {
		t.Fatal(err)
	}
	all := g.Trace()
	mean := all[len(all)-1].Submit / time.Duration(len(all)-1)
	if mean < 970*time.Millisecond || mean > 1030*time.Millisecond {
		t.Errorf("a job comes every %v in the mean, want one a second", mean)
	}
	short := 0
	for _, a := range all {
		if a.Iterations < g.Fewest || a.Iterations > g.Most {
			t.Fatalf("a job has %d iterations, want %d to %d", a.Iterations, g.Fewest, g.Most)
		}
		if a.Iterations <= 400 { // of a Pareto distribution with exponent 0.5 from 100 on, cut off at 100,000: .5164
			short++
		}
	}
	if part := float64(short) / float64(len(all)); part < 0.50 || part > 0.54 {
		t.Errorf("%.3f of the jobs have at most 400 iterations, want .516", part)
	}
}

func TestGeneratorErrors(t *testing.T) {
	good := Generator{Jobs: 1, Fewest: 1, Most: 1, Tail: 1, Tenants: 1, Mix: Mix}
	for want, change := range map[string]func(*Generator){
		"--jobs 0":       func(g *Generator) { g.Jobs = 0 },
		"--gap 2562047h": func(g *Generator) { g.Gap = math.MaxInt64 },
		"--gap -1s":      func(g *Generator) { g.Gap = -time.Second },
		"--iterations 2": func(g *Generator) { g.Fewest = 2 },
		"--tail 0":       func(g *Generator) { g.Tail = 0 },
		"--tenants 2":    func(g *Generator) { g.Tenants = 2 },
		"--mix is empty": func(g *Generator) { g.Mix = nil },
	} {
		g := good
		change(&g)
		if err := g.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
