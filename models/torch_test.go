package models

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/graph"
)

// Every parameter and running statistic of the networks that have a table is in it, under a name of its own or as a
// part.
func TestTorchNames(t *testing.T) {
	for _, name := range []string{"resnet18", "resnet50", "resnet101", "resnet152", "resnet:1,2,1,1", "vgg11", "vgg13",
		"vgg16", "vgg19", "bert", "bert:1,8,2", "gpt2", "gpt:1,8,2"} {
		g, err := Build(name, Config{Batch: 2})
		if err != nil {
			t.Fatal(err)
		}
		var ours []string
		for _, s := range g.Storages {
			if s.Role.Persistent() {
				ours = append(ours, s.Name)
			}
		}
		torch := TorchOf(name, ours)
		seen := make(map[Foreign]string)
		for _, s := range g.Storages {
			f, known := torch.Names[s.Name]
			if wanted := s.Role == graph.Parameter || strings.Contains(s.Name, ".running_"); s.Role.Persistent() &&
				known != wanted {
				t.Errorf("%s: %s is %q, known %v", name, s.Name, f.Name, known)
			}
			if known && seen[f] != "" {
				t.Errorf("%s: %s and %s are both %v", name, s.Name, seen[f], f)
			}
			seen[f] = s.Name
			if strings.ContainsAny(f.Name, "$#") || strings.Contains(f.Name, "..") {
				t.Errorf("%s: %s is %q", name, s.Name, f.Name)
			}
		}
	}
	for _, name := range []string{"lenet", "resnet110-cifar", "vgg11-cifar", "gnmt"} {
		if TorchOf(name, nil) != nil {
			t.Errorf("%s has a table", name)
		}
	}
}

// The convolutions of a vgg are counted together with ReLUs and pools, as in torchvision's features.
func TestTorchVGG(t *testing.T) {
	for name, want := range map[string]string{
		"vgg11": "0 3 6 8 11 13 16 18",
		"vgg16": "0 2 5 7 10 12 14 17 19 21 24 26 28",
	} {
		g, err := Build(name, Config{Batch: 1})
		if err != nil {
			t.Fatal(err)
		}
		var ours, got []string
		for _, s := range g.Storages {
			if s.Role == graph.Parameter {
				ours = append(ours, s.Name)
			}
		}
		torch := TorchOf(name, ours)
		for _, s := range ours {
			number, is := strings.CutPrefix(torch.Names[s].Name, "features.")
			if number, weight := strings.CutSuffix(number, ".weight"); is && weight {
				got = append(got, number)
			}
		}
		if diff := cmp.Diff(strings.Fields(want), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if f := torch.Names["fc8.b"]; f.Name != "classifier.6.bias" || !f.Head {
			t.Errorf("%s: fc8.b is %+v", name, f)
		}
	}
}
