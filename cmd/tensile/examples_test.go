//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tensile/executor/sidecar"
	"tensile/internal/long"
	"tensile/internal/needs"
)

// Each script of examples, as people write them for PyTorch 2 and its frameworks, trains in 60 % of what it needs to
// the losses, parameters, buffers and optimizer state that it has alone. The optimizer that joins is one of torch, with
// all of the model, and it has a plan.
func TestExamples(t *testing.T) {
	long.Only(t)
	python := needs.Torch(t)
	joins := map[string]string{ // class of the optimizer, which of those that step it is, tensors of its model
		"accelerate_accumulation": "AdamW 0 41",
		"diffusion_unet":          "AdamW 0 182",
		"hf_gpt2":                 "AdamW 0 52",
		"lightning_cnn":           "Adam 0 22",
		"peft_lora":               "AdamW 0 76",
		"timm_resnet":             "SGD 0 44",
		"torchvision_reference":   "SGD 0 62",
		"trl_sft":                 "AdamW 0 39",
	}
	scripts, err := filepath.Glob("../../examples/*.py")
	if err != nil || len(scripts) != len(joins) {
		t.Fatalf("%d scripts in examples (%v), want %d", len(scripts), err, len(joins))
	}
	absolute := func(path string) string {
		path, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	imported := regexp.MustCompile(`(?m)^(?:from|import) (\w+)`)
	for _, script := range scripts {
		name := strings.TrimSuffix(filepath.Base(script), ".py")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(script)
			if err != nil {
				t.Fatal(err)
			}
			for _, found := range imported.FindAllStringSubmatch(string(text), -1) {
				needs.Package(t, python, found[1], "-r examples/requirements.txt")
			}
			dir := t.TempDir()
			run := func(words ...string) (kept []string, joined, stderr string) {
				t.Helper()
				c := exec.Command(words[0], words[1:]...)
				c.Dir = dir
				c.Env = append(os.Environ(), "PYTHONPATH="+absolute("testdata/torch/digest"), "TMPDIR="+dir,
					"XDG_CACHE_HOME="+filepath.Join(dir, "cache"), "HF_HOME="+filepath.Join(dir, "hf"),
					"HF_HUB_OFFLINE=1", "PYTHONDONTWRITEBYTECODE=1", "OMP_NUM_THREADS=1")
				var out, errs strings.Builder
				c.Stdout, c.Stderr = &out, &errs
				if err := c.Run(); err != nil {
					t.Fatalf("%q: %v, stderr:\n%s", words, err, &errs)
				}
				for line := range strings.Lines(out.String()) {
					if strings.HasPrefix(line, "step ") || strings.HasPrefix(line, "digest ") {
						kept = append(kept, line)
					} else if told, ok := strings.CutPrefix(line, "joined "); ok {
						joined = strings.TrimSpace(told)
					}
				}
				return kept, joined, errs.String()
			}
			script, report := absolute(script), filepath.Join(dir, "report.json")
			want, _, _ := run(python, script)
			if len(want) < 20 || !strings.HasPrefix(want[len(want)-1], "digest ") {
				t.Fatalf("alone it printed\n%s", strings.Join(want, ""))
			}
			got, joined, stderr := run("tensile", "join", "--memory", "60%", "--report", report, "--", python, script)
			if difference := firstDifference(got, want); difference != "" {
				t.Errorf("%s; stderr:\n%s", difference, stderr)
			}
			if joined != joins[name] {
				t.Errorf("joined: %s, want %s", joined, joins[name])
			}
			if text, err = os.ReadFile(report); err != nil {
				t.Fatal(err)
			}
			var s sidecar.Summary
			document(t, text, &s)
			if s.Planned == 0 || s.Over > 0 || s.Touched == 0 || s.Passive != "" || s.Error != "" || !s.Ended {
				t.Errorf("report %s\nstderr:\n%s", text, stderr)
			}
			t.Logf("%d of %d iterations by a plan of %v of %v", s.Planned, s.Iterations, s.Plan, s.Limit)
		})
	}
}

// firstDifference returns the first line in which two outputs differ, or "".
func firstDifference(got, want []string) string {
	for i := range max(len(got), len(want)) {
		line := func(of []string) string {
			if i < len(of) {
				return strings.TrimSpace(of[i])
			}
			return "nothing"
		}
		if line(got) != line(want) {
			return fmt.Sprintf("line %d: %q, alone %q", i+1, line(got), line(want))
		}
	}
	return ""
}
