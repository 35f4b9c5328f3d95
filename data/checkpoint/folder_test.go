package checkpoint

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/data/weights"
	"tensile/graph"
	_ "tensile/internal/long" // the flag -long
	"tensile/internal/needs"
)

// stateOf makes up a checkpoint.
func stateOf(seed uint64, incarnation int64, iteration int) *State {
	r := rand.New(rand.NewPCG(seed, uint64(iteration)))
	floats := func(n int) []float32 {
		list := make([]float32, n)
		for i := range list {
			list[i] = math.Float32frombits(r.Uint32() &^ 0x00400000) // all kinds of NaN too, but for their quiet bit
		}
		return list
	}
	s := &State{Job: "a job", ID: 7, Incarnation: incarnation, Iteration: iteration, Seed: r.Uint64(),
		Graph: "9f", Device: "cpu/x", Model: "net", Optimizer: "adam",
		Settings: "--batch 4", Losses: floats(iteration)}
	for _, name := range []string{"conv.w", "conv.w.m", "fc.b"} {
		n := 1 + r.IntN(5)
		s.Tensors = append(s.Tensors, weights.Tensor{Name: name, Shape: graph.Shape{n, 2}, Data: floats(2 * n)})
	}
	return s
}

// bits is a state in which NaNs can be compared.
func bits(s *State) string {
	if s == nil {
		return "none"
	}
	var b bytes.Buffer
	if err := s.encode(&b); err != nil {
		return err.Error()
	}
	return b.String()
}

func write(t *testing.T, f Folder, s *State, keep int) Written {
	t.Helper()
	w, err := f.Write(s, keep, math.MaxInt)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func newest(t *testing.T, f Folder, incarnation int64) Found {
	t.Helper()
	found, err := f.Newest("a job", 7, incarnation, nil)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// names are the files of the job.
func names(t *testing.T, f Folder) []string {
	t.Helper()
	list, err := files{}.List(filepath.Join(f.Dir, "a job-7"))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range list {
		all = append(all, e.Name)
	}
	return all
}

// The newest checkpoint is that of the newest incarnation which counts, and comes back as it was written. Old ones go,
// those of newer incarnations stay.
func TestFolder(t *testing.T) {
	f := Folder{Dir: filepath.Join(t.TempDir(), "not", "there")}
	if got := newest(t, f, 5); got.State != nil || len(got.Passed) > 0 {
		t.Errorf("in no folder there is %+v", got)
	}
	if _, err := f.Write(stateOf(1, 1, 90), 2, math.MaxInt); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("into no folder: %v", err)
	}
	if _, err := f.Identity(); err != nil { // which makes it
		t.Fatal(err)
	}
	for _, s := range []*State{stateOf(1, 1, 90), stateOf(1, 1, 100), stateOf(1, 1, 120)} {
		w := write(t, f, s, 2)
		if info, err := os.Stat(filepath.Join(f.Dir, w.File)); err != nil || graph.Bytes(info.Size()) != w.Bytes {
			t.Errorf("%+v was written: %v", w, err)
		}
	}
	write(t, f, stateOf(1, 2, 110), 2) // it had begun before the other went on to 120
	want := []string{"1-120.safetensors", "2-110.safetensors"}
	if diff := cmp.Diff(want, names(t, f)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	for incarnation, want := range map[int64]*State{0: nil, 1: stateOf(1, 1, 120), 2: stateOf(1, 2, 110),
		9: stateOf(1, 2, 110)} {
		if got := newest(t, f, incarnation); bits(got.State) != bits(want) || len(got.Passed) > 0 {
			t.Errorf("for incarnation %d the newest is %+v, want %+v", incarnation, got, want)
		}
	}
	write(t, f, stateOf(1, 1, 130), 1) // of a process that was given up
	want = []string{"1-130.safetensors", "2-110.safetensors"}
	if diff := cmp.Diff(want, names(t, f)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// What is over goes, unless a newer incarnation has begun. Other jobs stay.
func TestRemove(t *testing.T) {
	f := Folder{Dir: t.TempDir()}
	other := stateOf(1, 1, 3)
	other.ID = 8
	write(t, f, other, 2)
	write(t, f, stateOf(1, 1, 3), 2)
	for range 2 {
		if err := f.Begin("a job", 7, 2); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Remove("a job", 7, 1); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"1-3.safetensors", "2.begun"}, names(t, f)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	for range 2 {
		if err := f.Remove("a job", 7, 2); err != nil {
			t.Fatal(err)
		}
	}
	if list, _ := os.ReadDir(f.Dir); len(list) != 1 || list[0].Name() != "a job-8" {
		t.Errorf("the folder holds %v", list)
	}
}

// A file under another name, in another job's folder, of another format or without a name is none of the job's.
func TestStrangers(t *testing.T) {
	f := Folder{Dir: t.TempDir()}
	write(t, f, stateOf(1, 1, 3), 9)
	dir := filepath.Join(f.Dir, "a job-7")
	text, err := os.ReadFile(filepath.Join(dir, "1-3.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	later, foreign := filepath.Join(dir, "1-4.safetensors"), filepath.Join(dir, "1-5.safetensors")
	if err := os.WriteFile(later, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := weights.Write(nil, foreign, weights.File{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"1-9", "x-1.safetensors", "1.safetensors", "1-2-3.safetensors", "1--3.safetensors",
		"1-99999999999999999999.safetensors", "-1-3.safetensors", ".safetensors", "1-2.begun"} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "1-7.safetensors"), 0o700); err != nil {
		t.Fatal(err)
	}
	got := newest(t, f, 1)
	var passed []string
	for _, p := range got.Passed {
		passed = append(passed, fmt.Sprintf("%s: %v", p.File, p.Err))
	}
	want := []string{"a job-7/1-5.safetensors: it is no checkpoint",
		"a job-7/1-4.safetensors: it is checkpoint a job-7/1-3.safetensors under another name"}
	if diff := cmp.Diff(want, passed); diff != "" || bits(got.State) != bits(stateOf(1, 1, 3)) {
		t.Errorf("passed over (-want +got):\n%s; the newest is %+v", diff, got.Is)
	}
}

// Any prefix of a file, any flipped bit in it and a missing rename lead to the checkpoint before.
func TestDamage(t *testing.T) {
	f := Folder{Dir: t.TempDir()}
	before := stateOf(2, 1, 2)
	write(t, f, before, 2)
	w := write(t, f, stateOf(2, 1, 4), 2)
	path := filepath.Join(f.Dir, w.File)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, content []byte) {
		t.Helper()
		if s, err := decode(bytes.NewReader(content), int64(len(content))); err == nil {
			t.Fatalf("%s is read as %+v", what, s)
		} else if strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %q is more than a line", what, err)
		}
	}
	for n := range whole {
		check(fmt.Sprintf("a prefix of %d bytes", n), whole[:n])
	}
	for bit := range 8 * len(whole) {
		damaged := slices.Clone(whole)
		damaged[bit/8] ^= 1 << (bit % 8)
		check(fmt.Sprintf("a file with bit %d flipped", bit), damaged)
	}
	r := rand.New(rand.NewPCG(2, 2))
	for range 20 {
		damaged := slices.Clone(whole[:r.IntN(len(whole)+1)])
		if len(damaged) == len(whole) || r.IntN(2) == 0 && len(damaged) > 0 {
			damaged[r.IntN(len(damaged))] ^= 1 << r.IntN(8)
		}
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		got := newest(t, f, 1)
		if bits(got.State) != bits(before) || len(got.Passed) != 1 || got.Passed[0].File != w.File {
			t.Fatalf("with a damaged file of %d bytes the newest is %+v, passed over is %v", len(damaged), got.Is,
				got.Passed)
		}
	}
	if err := os.Rename(path, path+unfinished); err != nil {
		t.Fatal(err)
	}
	if got := newest(t, f, 1); bits(got.State) != bits(before) || len(got.Passed) != 0 {
		t.Errorf("without its rename the newest is %+v", got)
	}
	write(t, f, stateOf(2, 2, 6), 1)
	if diff := cmp.Diff([]string{"2-6.safetensors"}, names(t, f)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// faulty is a disk that fails from an operation on: at that alone, or, as if the process was killed, at all later ones.
type faulty struct {
	files
	left   int
	killed bool
	err    error
}

func (d *faulty) fail() error {
	d.left--
	if d.left == 0 || d.left < 0 && d.killed {
		return d.err
	}
	return nil
}

func (d *faulty) List(dir string) ([]Entry, error) {
	if err := d.fail(); err != nil {
		return nil, err
	}
	return d.files.List(dir)
}

func (d *faulty) Create(path string) (File, error) {
	if err := d.fail(); err != nil {
		return nil, err
	}
	f, err := d.files.Create(path)
	return &faultyFile{f, d}, err
}

func (d *faulty) Rename(from, to string) error {
	return unless(d.fail(), func() error { return d.files.Rename(from, to) })
}

func (d *faulty) Remove(path string) error {
	return unless(d.fail(), func() error { return d.files.Remove(path) })
}

type faultyFile struct {
	File
	d *faulty
}

// Write writes half of what does not fit.
func (f *faultyFile) Write(b []byte) (int, error) {
	if err := f.d.fail(); err != nil {
		n, _ := f.File.Write(b[:len(b)/2])
		return n, err
	}
	return f.File.Write(b)
}

func (f *faultyFile) Sync() error  { return unless(f.d.fail(), f.File.Sync) }
func (f *faultyFile) Close() error { return errors.Join(f.d.fail(), f.File.Close()) }

// unless does something if there is no error yet.
func unless(err error, do func() error) error {
	if err != nil {
		return err
	}
	return do()
}

// Wherever writing fails or the process is killed, the one before or the new one is there, whole, and the next write
// tidies up.
func TestFailures(t *testing.T) {
	for _, killed := range []bool{false, true} {
		for at := 1; ; at++ {
			sound := Folder{Dir: t.TempDir()}
			before, next := stateOf(3, 1, 2), stateOf(3, 1, 4)
			write(t, sound, stateOf(3, 1, 1), 2)
			write(t, sound, before, 2)
			d := &faulty{left: at, killed: killed, err: syscall.ENOSPC}
			w, err := Folder{Dir: sound.Dir, Disk: d}.Write(next, 2, math.MaxInt)
			got := newest(t, sound, 1)
			if len(got.Passed) > 0 {
				t.Errorf("killed %t, operation %d: %v", killed, at, got.Passed)
			}
			if bits(got.State) != bits(next) && (err == nil || bits(got.State) != bits(before)) {
				t.Errorf("killed %t, operation %d: written %+v, %v; the newest is %+v", killed, at, w, err, got.Is)
			}
			if err != nil && (!errors.Is(err, syscall.ENOSPC) || !strings.HasPrefix(err.Error(), "checkpoint "+
				sound.Dir+"/a job-7/1-4.safetensors: ") && !killed) {
				t.Errorf("operation %d: error %v", at, err)
			}
			write(t, sound, stateOf(3, 1, 6), 1)
			if diff := cmp.Diff([]string{"1-6.safetensors"}, names(t, sound)); diff != "" {
				t.Errorf("killed %t, operation %d: files (-want +got):\n%s", killed, at, diff)
			}
			if d.left > 0 {
				if at < 8 {
					t.Errorf("there were %d operations only", at)
				}
				break
			}
		}
	}
}

// A disk that is full takes no checkpoint, and loses none.
func TestFullDisk(t *testing.T) {
	f := Folder{Dir: needs.SmallDisk(t, 64<<10)}
	large := stateOf(4, 1, 5)
	large.Tensors[0] = weights.Tensor{Name: "large", Shape: graph.Shape{10_000}, Data: make([]float32, 10_000)}
	write(t, f, large, 2)
	next := *large
	next.Iteration, next.Losses = 6, nil
	if _, err := f.Write(&next, 2, math.MaxInt); !errors.Is(err, syscall.ENOSPC) || !strings.HasSuffix(err.Error(),
		"1-6.safetensors: no space left on device") {
		t.Errorf("error %v", err)
	}
	if got := newest(t, f, 1); bits(got.State) != bits(large) {
		t.Errorf("the newest is %+v", got)
	}
	if diff := cmp.Diff([]string{"1-5.safetensors"}, names(t, f)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// A quota is kept by removing older checkpoints of the job, down to the newest whole one, and no other's.
func TestQuota(t *testing.T) {
	f := Folder{Dir: t.TempDir()}
	size := write(t, f, stateOf(5, 1, 20), 3).Bytes
	write(t, f, stateOf(5, 1, 21), 3)
	write(t, f, stateOf(5, 1, 22), 3)
	f.Quota = 3 * size
	write(t, f, stateOf(5, 1, 23), 9)
	want := []string{"1-21.safetensors", "1-22.safetensors", "1-23.safetensors"} // without the oldest there is room
	if diff := cmp.Diff(want, names(t, f)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	torn := filepath.Join(f.Dir, "a job-7", "1-23.safetensors")
	if err := os.Truncate(torn, 100); err != nil { // the one before is the newest whole one
		t.Fatal(err)
	}
	f.Quota = size * 5 / 4
	_, err := f.Write(stateOf(5, 1, 24), 3, math.MaxInt)
	if err == nil || !strings.Contains(err.Error(),
		"raise --checkpoint-quota, or remove folders of jobs that are over") {
		t.Errorf("error %v", err)
	}
	if diff := cmp.Diff([]string{"1-22.safetensors", "1-23.safetensors"}, names(t, f)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if got := newest(t, f, 1); got.State == nil || got.State.Iteration != 22 {
		t.Errorf("the newest is %+v", got)
	}
}

// Other tools find names, shapes and numbers where the format has them. This reader shares nothing with ours.
func TestOthersRead(t *testing.T) {
	f := Folder{Dir: t.TempDir()}
	s := stateOf(6, 3, 4)
	s.Losses = []float32{4, 3, 2, 1}
	text, err := os.ReadFile(filepath.Join(f.Dir, write(t, f, s, 1).File))
	if err != nil {
		t.Fatal(err)
	}
	n := binary.LittleEndian.Uint64(text)
	var header map[string]json.RawMessage
	if err := json.Unmarshal(text[8:8+n], &header); err != nil {
		t.Fatal(err)
	}
	var meta map[string]string
	if err := json.Unmarshal(header["__metadata__"], &meta); err != nil {
		t.Fatal(err)
	}
	delete(meta, "digest")
	want := map[string]string{"format": "tensile checkpoint 1", "job": "a job", "id": "7", "incarnation": "3",
		"iteration": "4", "seed": fmt.Sprint(s.Seed), "graph": "9f", "device": "cpu/x", "model": "net",
		"optimizer": "adam", "settings": "--batch 4", "data": "", "weights": "", "from": ""}
	if diff := cmp.Diff(want, meta); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	var losses struct {
		DType   string `json:"dtype"`
		Shape   []int  `json:"shape"`
		Offsets []int  `json:"data_offsets"`
	}
	if err := json.Unmarshal(header["tensile.losses"], &losses); err != nil {
		t.Fatal(err)
	}
	var got []float32
	for at := losses.Offsets[0]; at < losses.Offsets[1]; at += 4 {
		got = append(got, math.Float32frombits(binary.LittleEndian.Uint32(text[8+int(n)+at:])))
	}
	if diff := cmp.Diff(s.Losses, got); diff != "" || losses.DType != "F32" || !slices.Equal(losses.Shape, []int{4}) {
		t.Errorf("losses are %+v (-want +got):\n%s", losses, diff)
	}
	for _, x := range s.Tensors {
		if header[x.Name] == nil {
			t.Errorf("there is no tensor %s", x.Name)
		}
	}
}

// What cannot be a checkpoint is not written.
func TestImpossible(t *testing.T) {
	f := Folder{Dir: t.TempDir()}
	few, twice := stateOf(7, 1, 4), stateOf(7, 1, 4)
	few.Losses = few.Losses[1:]
	twice.Tensors[0].Name = lossesName
	for _, s := range []*State{few, twice} {
		if w, err := f.Write(s, 2, math.MaxInt); err == nil {
			t.Errorf("%+v was written", w)
		}
	}
	if got := names(t, f); len(got) > 0 {
		t.Errorf("%q are left", got)
	}
	other := filepath.Join(f.Dir, "w.safetensors")
	if err := weights.Write(nil, other, weights.File{}); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(nil, other); err == nil || err.Error() != "checkpoint "+other+
		": it is no checkpoint: take the tensors of such a file by --weights" {
		t.Errorf("another safetensors file: %v", err)
	}
	if _, err := Read(nil, filepath.Join(f.Dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

// FuzzDecode refuses any bytes, or reads what is written the same.
func FuzzDecode(f *testing.F) {
	var b bytes.Buffer
	if err := stateOf(8, 1, 2).encode(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add(b.Bytes()[:20])
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := decode(bytes.NewReader(text), int64(len(text)))
		if err != nil {
			return
		}
		var again bytes.Buffer
		if err := s.encode(&again); err != nil {
			t.Fatalf("%+v cannot be written: %v", s, err)
		}
		second, err := decode(bytes.NewReader(again.Bytes()), int64(again.Len()))
		if err != nil || bits(second) != bits(s) {
			t.Fatalf("%+v is read again as %+v: %v", s, second, err)
		}
	})
}
