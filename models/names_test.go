package models

import (
	"slices"
	"testing"
)

// TestNames: every network has one name.
func TestNames(t *testing.T) {
	names := Names()
	slices.Sort(names)
	if distinct := slices.Compact(slices.Clone(names)); len(distinct) != len(names) {
		t.Errorf("a name stands twice in %v", names)
	}
}

func TestUnknownNames(t *testing.T) {
	const all = " tensile models lists all"
	const blocks = "want four block counts of at least 1 and 100000 together, as in resnet:3,4,6,3"
	tests := []struct{ name, want string }{
		{"resnet5", `unknown model "resnet5": did you mean resnet50?` + all},
		{"VGG16", `unknown model "VGG16":` + all},
		{"vgg", `unknown model "vgg": did you mean vgg11, vgg13, vgg16, vgg19, vgg11-cifar, vgg13-cifar, ` +
			"vgg16-cifar, vgg19-cifar?" + all},
		{"inception-v4", `unknown model "inception-v4": did you mean inceptionv4?` + all},
		{"ml", `unknown model "ml": did you mean mlp?` + all},
		{"gpt", `unknown model "gpt": did you mean gpt2?` + all},
		{"gpt:2,8", "model gpt:2,8: want the form gpt:layers,width,heads"},
		{"bert:2,9,2", "model bert:2,9,2: width 9 must be a multiple of 2"},
		{"gnmt:1,8", "model gnmt:1,8: layers 1 must be 2 to 65536"},
		{"rhn:0,8", `model rhn:0,8: depth "0" must be a number from 1 to 65536`},
		{"rhn:2,x", `model rhn:2,x: width "x" must be a number from 1 to 65536`},
		{"tacotron:3,24", "model tacotron:3,24: width 24 must be a multiple of 16"},
		{"transformer", `unknown model "transformer":` + all},
		{"", `unknown model "":` + all},
		{"resnet:3,4,6", "model resnet:3,4,6: " + blocks},
		{"resnet:3,4,6,3,1", "model resnet:3,4,6,3,1: " + blocks},
		{"resnet:3,4,0,3", "model resnet:3,4,0,3: " + blocks},
		{"resnet:3,4,x,3", "model resnet:3,4,x,3: " + blocks},
		{"resnet:50000,50000,1,1", "model resnet:50000,50000,1,1: " + blocks},
		{"resnet:9223372036854775807,9223372036854775807,1,1", "model resnet:9223372036854775807," +
			"9223372036854775807,1,1: " + blocks},
	}
	for _, test := range tests {
		_, err := Build(test.name, Config{})
		if err == nil || err.Error() != test.want {
			t.Errorf("Build(%q):\n got %v\nwant %s", test.name, err, test.want)
		}
	}
}
