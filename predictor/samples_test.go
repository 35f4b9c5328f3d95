package predictor

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// boards are devices of three chips.
func boards() []Device {
	return []Device{
		{Name: "NVIDIA X1-40GB", FLOPs: 10e12, Bandwidth: 1000e9, Units: 80, Clock: 1.3e9, Cache: 6e6,
			Launch: 10 * time.Microsecond},
		{Name: "NVIDIA Y2", FLOPs: 8e12, Bandwidth: 320e9, Units: 40, Clock: 1.5e9, Cache: 4e6,
			Launch: 10 * time.Microsecond},
		{Name: "Tesla Z3", FLOPs: 20e12, Bandwidth: 1500e9, Units: 100, Clock: 1.4e9, Cache: 40e6,
			Launch: 10 * time.Microsecond},
	}
}

// law is how long ops take on the boards: what a model should find.
func law(d *Device, c *Call) float64 {
	arithmetic, traffic := d.bounds(c)
	return math.Hypot(arithmetic/0.7, traffic/0.8)*(1+c.Load) + 25e-6
}

// measured are samples of all forms that follow the law.
func measured(n int, seed uint64, devices []Device) []Sample {
	rng := rand.New(rand.NewPCG(seed, 0))
	size := func(low, high float64) int { return int(low * math.Pow(high/low, rng.Float64())) }
	samples := make([]Sample, n)
	for i := range samples {
		s := &samples[i]
		s.Device, s.Load = rng.IntN(len(devices)), float64(rng.IntN(3))/2
		switch i % 3 {
		case 0:
			s.Kind, s.Form = "linear", Gemm
			s.Dims = Dims{B: 1, M: size(16, 8192), N: size(16, 8192), K: size(16, 8192)}
		case 1:
			h := size(4, 128)
			s.Kind, s.Form = "conv", Conv
			s.Dims = Dims{B: size(1, 64), C: size(8, 512), K: size(8, 512), H: h, W: h, P: h, Q: h, R: 3, S: 3,
				Stride: 1}
		default:
			s.Kind, s.Form = []string{"add", "relu"}[rng.IntN(2)], Stream
			s.Dims = stream(size(16, 16384), size(16, 4096), map[string]int{"add": 2, "relu": 1}[s.Kind], 1)
		}
		s.Seconds = law(&devices[s.Device], &s.Call)
	}
	return samples
}

// write makes a file in a new folder and returns its path.
func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadSamples(t *testing.T) {
	path := write(t, "ops.csv", `op,device,B,M,N,K,latency_ms,kernels
linear,NVIDIA Y2,2,100,30,40,0.5,1
bmm,NVIDIA X1-40GB,2,100,30,40,0.25,1
`)
	got, err := ReadSamples(path, boards())
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].Dims != (Dims{B: 1, M: 200, N: 30, K: 40}) || got[0].Device != 1 ||
		got[0].Seconds != 0.5e-3 ||
		got[1].Dims != (Dims{B: 2, M: 100, N: 30, K: 40}) || got[1].Device != 0 {
		t.Errorf("got %+v", got)
	}
	conv := write(t, "conv.csv",
		`op,device,B,Input_Channel,Output_Channel,Kernel_Szie,Input_Size,Stride,Padding,latency_ms
conv,Tesla Z3,38,893,326,3,5,2,1,0.9
`)
	got, err = ReadSamples(conv, boards())
	if want := (Dims{B: 38, C: 893, K: 326, R: 3, S: 3, H: 5, W: 5, P: 3, Q: 3, Stride: 2}); err != nil ||
		got[0].Dims != want {
		t.Errorf("got %+v, %v, want dims %+v", got, err, want)
	}
	vec := write(t, "vec.csv", "op,device,B,H,latency_ms\ndivu,Tesla Z3,7,5,0.9\n")
	got, err = ReadSamples(vec, boards())
	if want := (Dims{M: 7, K: 5, Read: 35, Write: 35, Ops: 70}); err != nil || got[0].Dims != want {
		t.Errorf("got %+v, %v, want dims %+v", got, err, want)
	}
}

// What cannot be read is told in one line with file, row and column.
func TestReadSamplesRefuses(t *testing.T) {
	const head = "op,device,B,M,N,K,latency_ms\n"
	const good = "linear,NVIDIA Y2,1,2,3,4,0.5\n"
	for _, test := range []struct{ name, content, want string }{
		{"empty", "", "row 1: no header"},
		{"no rows", head, "no rows"},
		{"text", head + good + "linear,NVIDIA Y2,1,two,3,4,0.5\n", `row 3: column M: "two" is not a whole number`},
		{"zero", head + "linear,NVIDIA Y2,1,2,0,4,0.5\n", `row 2: column N: "0" is not a whole number`},
		{"huge", head + "linear,NVIDIA Y2,1,2,99999999999999999999,4,0.5\n", "row 2: column N:"},
		{"short", head + good + good + "linear,NVIDIA Y2,1,2,3\n", "row 4: column K: the row ends before it"},
		{"latency", head + "linear,NVIDIA Y2,1,2,3,4,-1\n", `row 2: column latency_ms: "-1" is not a positive number`},
		{"not a number", head + "linear,NVIDIA Y2,1,2,3,4,NaN\n", `row 2: column latency_ms: "NaN"`},
		{"device", head + "linear,NVIDIA Q9,1,2,3,4,1\n", `row 2: column device: no device file describes "NVIDIA Q9"`},
		{"op", head + "fft,NVIDIA Y2,1,2,3,4,1\n", `row 2: column op: unknown op "fft"`},
		{"column", "op,device,B,M,N,latency_ms\nlinear,NVIDIA Y2,1,2,3,1\n",
			"row 1: column K: the header does not have it"},
		{"NeuSight's header", "OpName,Device,B,M,N,K,Latency\nlinear,NVIDIA Y2,1,2,3,4,1\n",
			"row 1: column op: the header has NeuSight's own names: rename OpName, Device and Latency"},
		{"quote", head + "\"linear,NVIDIA Y2,1,2,3,4,1\n", "line 2"},
		{"window",
			"op,device,B,Input_Channel,Output_Channel,Kernel_Size,Input_Size,Stride,Padding,latency_ms\nconv,NVIDIA " +
				"Y2,1,1,1,9,5,1,1,1\n",
			"row 2: column Kernel_Szie: a window of 9"},
	} {
		path := write(t, "bad.csv", test.content)
		_, err := ReadSamples(path, boards())
		if err == nil || !strings.HasPrefix(err.Error(), path+": ") || !strings.Contains(err.Error(), test.want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want one line with the file and %q", test.name, err, test.want)
		}
	}
}

func TestReadDevices(t *testing.T) {
	dir := t.TempDir()
	put := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ReadDevices(dir); err == nil {
		t.Error("an empty folder is taken")
	}
	put("b.json",
		`{"Device":"NVIDIA B200-PCIE","Dev_Mem":40,"Mem_Bw":1555,"Num_Sm":108,"Core_Per_SM":64,"Freq":1410,`+
			`"SingleFLOPs":19492,"L2Cache":40}`)
	put("b_TP.json",
		`{"Device":"NVIDIA B200-PCIE","Dev_Mem":40,"Mem_Bw":1555,"Num_Sm":108,"Core_Per_SM":64,"Freq":1410,`+
			`"SingleFLOPs":1979000,"L2Cache":40}`)
	put("a.json",
		`{"Device":"AMD Instinct MI9","Dev_Mem":32,"Mem_Bw":1230,"Num_Sm":120,"Core_Per_SM":4,"Freq":1502,`+
			`"SingleFLOPsMM":46100,"SingleFLOPsVEC":23100,"L2Cache":8}`)
	got, err := ReadDevices(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].Name != "AMD Instinct MI9" || got[0].FLOPs != 46100e9 || got[0].Vector != 23100e9 ||
		got[0].Family() != "MI9" ||
		got[1].FLOPs != 19492e9 || got[1].Family() != "B200" || got[1].Bandwidth != 1555e9 || got[1].Cache != 40e6 {
		t.Errorf("got %+v", got)
	}
	put("c.json",
		`{"Device":"NVIDIA B200-PCIE","Mem_Bw":1555,"Num_Sm":108,"Freq":1410,"SingleFLOPs":19492,"L2Cache":40}`)
	if _, err := ReadDevices(dir); err == nil || !strings.Contains(err.Error(), "two files describe") {
		t.Errorf("a device in two files: %v", err)
	}
	put("c.json", `{"Device":"C","Mem_Bw":0,"Num_Sm":108,"Freq":1410,"SingleFLOPs":19492,"L2Cache":40}`)
	if _, err := ReadDevices(dir); err == nil || !strings.Contains(err.Error(), "c.json") ||
		!strings.Contains(err.Error(), "bandwidth") {
		t.Errorf("a device without bandwidth: %v", err)
	}
}
