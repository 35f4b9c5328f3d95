package models

import (
	"fmt"
	"strconv"
	"strings"

	"tensile/graph/text"
)

// models holds the networks that have a name of their own.
var models = []struct {
	name  string
	model model
}{
	{"mlp", mlp},
	{"lenet", lenet},
	{"alexnet", alexnet},
	{"vgg11", vgg([5]int{1, 1, 2, 2, 2})},
	{"vgg13", vgg([5]int{2, 2, 2, 2, 2})},
	{"vgg16", vgg([5]int{2, 2, 3, 3, 3})},
	{"vgg19", vgg([5]int{2, 2, 4, 4, 4})},
	{"vgg11-cifar", vggCIFAR([5]int{1, 1, 2, 2, 2})},
	{"vgg13-cifar", vggCIFAR([5]int{2, 2, 2, 2, 2})},
	{"vgg16-cifar", vggCIFAR([5]int{2, 2, 3, 3, 3})},
	{"vgg19-cifar", vggCIFAR([5]int{2, 2, 4, 4, 4})},
	{"resnet18", plainResnet([4]int{2, 2, 2, 2})},
	{"resnet50", resnet([4]int{3, 4, 6, 3})},
	{"resnet101", resnet([4]int{3, 4, 23, 3})},
	{"resnet152", resnet([4]int{3, 8, 36, 3})},
	{"resnet110-cifar", resnetCIFAR(18)},
	{"inceptionv3", inceptionV3},
	{"inceptionv4", inceptionV4},
	{"densenet121", densenet([4]int{6, 12, 24, 16})},
	{"nasnet-mobile", nasnet(224, 32, 44, 4, false)},
	{"nasnet-large", nasnet(331, 96, 168, 6, true)},
	{"bert", bert(12, 768, 12)},
	{"gpt2", gpt(12, 768, 12)},
	{"gnmt", gnmt(4, 1024)},
	{"rhn", rhn(10, 830)},
	{"tacotron2", tacotron(3, 512)},
}

// anyResNet is the form of the names of residual networks of any depth.
const (
	resnetPrefix = "resnet:"
	anyResNet    = resnetPrefix + "a,b,c,d"
)

// mostBlocks bounds the blocks of all stages of a residual network together.
const mostBlocks = 100_000

// Names returns the names of the networks, without those of the form resnet:a,b,c,d.
func Names() []string {
	var names []string
	for _, m := range models {
		names = append(names, m.name)
	}
	return names
}

// ReadsSequences reports whether the network of this name reads sequences, and takes a sequence's settings, rather than
// images.
func ReadsSequences(name string) (bool, error) {
	m, err := find(name)
	return m.sequence != nil, err
}

func find(name string) (model, error) {
	for _, m := range models {
		if m.name == name {
			return m.model, nil
		}
	}
	if counts, ok := strings.CutPrefix(name, resnetPrefix); ok {
		blocks, err := parseBlocks(counts)
		if err != nil {
			return model{}, fmt.Errorf("model %s: %w", name, err)
		}
		return resnet(blocks), nil
	}
	if m, ok, err := findFamily(name); ok {
		return m, err
	}
	return model{}, unknown(name)
}

// parseBlocks reads the blocks of four stages, separated by commas.
func parseBlocks(counts string) ([4]int, error) {
	var blocks [4]int
	fields := strings.Split(counts, ",")
	total, ok := 0, len(fields) == len(blocks)
	for i := 0; ok && i < len(blocks); i++ {
		n, err := strconv.Atoi(fields[i])
		ok = err == nil && n >= 1 && n <= mostBlocks
		blocks[i] = n
		total += n
	}
	if !ok || total > mostBlocks {
		return blocks, fmt.Errorf("want four block counts of at least 1 and %d together, as in resnet:3,4,6,3",
			mostBlocks)
	}
	return blocks, nil
}

// unknown is the error for a name that is not there.
func unknown(name string) error {
	return fmt.Errorf("unknown model %q:%s tensile models lists all", name, text.Suggest(name, Names()))
}
