package models

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"tensile/data/weights"
	"tensile/graph"
)

// Foreign is where a state_dict of torchvision or transformers holds a persistent storage of ours.
type Foreign struct {
	Name string
	Head bool // It belongs to the last layers, which files for other classes or tasks lack.

	// The tensor is the transpose of ours, and ours is one of several equal parts of it, one after the other in its
	// last dimension; false and 0 of 0: it is ours.
	Transposed  bool
	Part, Parts int
}

// Torch are the names by which a state_dict holds a network, and what it has beside that.
type Torch struct {
	Names map[string]Foreign // Foreign names by our names.

	// Base begins the names of all that is no head, and is left out in files of the network without heads. "": nothing
	// does.
	Base string

	Tied    map[string]string // names that repeat what another has, and that one
	ignores *regexp.Regexp    // names of what is not trained
}

// Ignores reports whether a tensor of this name holds nothing that is trained, such as a mask or a count of batches.
func (t *Torch) Ignores(name string) bool { return t.ignores.MatchString(name) }

// torchForm is how the layers of a family of networks are called in a state_dict.
type torchForm struct {
	is     *regexp.Regexp // names of networks
	layers []torchLayer
	tied   map[string]string
	base   string
}

// torchLayer names the layers that match a pattern, in which $1 and $2 are what was matched, and #1 is $1 minus one.
// Layers with a part are one of several equal parts of the other tensor.
type torchLayer struct {
	ours, theirs string
	transposed   bool
	part, parts  int
	head         bool
}

// The names are those of torchvision.models (resnet.py, vgg.py) and of transformers' BertForPreTraining and
// GPT2LMHeadModel (modeling_bert.py, modeling_gpt2.py), whose Conv1D keeps [in,out].
var torchForms = []torchForm{
	{is: regexp.MustCompile(`^resnet(\d+|:.*)$`), layers: []torchLayer{
		{ours: `conv1`, theirs: "conv1"},
		{ours: `conv1\.bn`, theirs: "bn1"},
		{ours: `stage(\d)\.block(\d+)\.(conv\d|bn\d)`, theirs: "layer$1.#2.$3"},
		{ours: `stage(\d)\.block(\d+)\.down`, theirs: "layer$1.#2.downsample.0"},
		{ours: `stage(\d)\.block(\d+)\.down\.bn`, theirs: "layer$1.#2.downsample.1"},
		{ours: `fc`, theirs: "fc", head: true}}},
	{is: regexp.MustCompile(`^vgg\d+$`), layers: []torchLayer{
		{ours: `fc6`, theirs: "classifier.0"},
		{ours: `fc7`, theirs: "classifier.3"},
		{ours: `fc8`, theirs: "classifier.6", head: true}}},
	{is: regexp.MustCompile(`^bert(:.*)?$`), base: "bert.",
		tied: map[string]string{"cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
			"cls.predictions.decoder.bias": "cls.predictions.bias"},
		layers: []torchLayer{
			{ours: `words`, theirs: "bert.embeddings.word_embeddings"},
			{ours: `positions`, theirs: "bert.embeddings.position_embeddings"},
			{ours: `sentences`, theirs: "bert.embeddings.token_type_embeddings"},
			{ours: `embedding\.norm`, theirs: "bert.embeddings.LayerNorm"},
			{ours: `layer(\d+)\.attention\.q`, theirs: "bert.encoder.layer.#1.attention.self.query"},
			{ours: `layer(\d+)\.attention\.k`, theirs: "bert.encoder.layer.#1.attention.self.key"},
			{ours: `layer(\d+)\.attention\.v`, theirs: "bert.encoder.layer.#1.attention.self.value"},
			{ours: `layer(\d+)\.attention\.out`, theirs: "bert.encoder.layer.#1.attention.output.dense"},
			{ours: `layer(\d+)\.norm1`, theirs: "bert.encoder.layer.#1.attention.output.LayerNorm"},
			{ours: `layer(\d+)\.mlp\.in`, theirs: "bert.encoder.layer.#1.intermediate.dense"},
			{ours: `layer(\d+)\.mlp\.out`, theirs: "bert.encoder.layer.#1.output.dense"},
			{ours: `layer(\d+)\.norm2`, theirs: "bert.encoder.layer.#1.output.LayerNorm"},
			{ours: `pooler`, theirs: "bert.pooler.dense"},
			{ours: `head\.pair`, theirs: "cls.seq_relationship", head: true},
			{ours: `head\.transform`, theirs: "cls.predictions.transform.dense", head: true},
			{ours: `head\.norm`, theirs: "cls.predictions.transform.LayerNorm", head: true},
			{ours: `head`, theirs: "cls.predictions", head: true}}},
	{is: regexp.MustCompile(`^gpt(2|:.*)$`), base: "transformer.",
		tied: map[string]string{"lm_head.weight": "transformer.wte.weight"},
		layers: []torchLayer{
			{ours: `words`, theirs: "transformer.wte"},
			{ours: `positions`, theirs: "transformer.wpe"},
			{ours: `layer(\d+)\.norm(\d)`, theirs: "transformer.h.#1.ln_$2"},
			{ours: `layer(\d+)\.attention\.q`, theirs: "transformer.h.#1.attn.c_attn", transposed: true, parts: 3},
			{ours: `layer(\d+)\.attention\.k`, theirs: "transformer.h.#1.attn.c_attn", transposed: true, part: 1,
				parts: 3},
			{ours: `layer(\d+)\.attention\.v`, theirs: "transformer.h.#1.attn.c_attn", transposed: true, part: 2,
				parts: 3},
			{ours: `layer(\d+)\.attention\.out`, theirs: "transformer.h.#1.attn.c_proj", transposed: true},
			{ours: `layer(\d+)\.mlp\.in`, theirs: "transformer.h.#1.mlp.c_fc", transposed: true},
			{ours: `layer(\d+)\.mlp\.out`, theirs: "transformer.h.#1.mlp.c_proj", transposed: true},
			{ours: `norm`, theirs: "transformer.ln_f"}}},
}

// torchKinds are the last words of names, by ours.
var torchKinds = map[string]string{"w": "weight", "b": "bias", "gamma": "weight", "beta": "bias",
	"running_mean": "running_mean", "running_variance": "running_var"}

var (
	torchIgnores = regexp.MustCompile(`(^|\.)(num_batches_tracked|position_ids|attn\.bias|attn\.masked_bias)$`)
	torchNumber  = regexp.MustCompile(`#\d`)
	torchGroup   = regexp.MustCompile(`\$(\d)`)
	vggConv      = regexp.MustCompile(`^conv(\d)_(\d+)$`)
)

// TorchOf returns the names for a network of ours with persistent storages of these names, in its order; nil if it has
// none. States of an optimizer have none.
func TorchOf(network string, ours []string) *Torch {
	i := slices.IndexFunc(torchForms, func(f torchForm) bool { return f.is.MatchString(network) })
	if i < 0 {
		return nil
	}
	form := torchForms[i]
	layers := append(slices.Clone(form.layers), vggLayers(ours)...)
	expressions := make([]*regexp.Regexp, len(layers))
	for i, l := range layers {
		expressions[i] = regexp.MustCompile("^" + l.ours + "$")
	}
	t := &Torch{Names: make(map[string]Foreign), Base: form.base, Tied: form.tied, ignores: torchIgnores}
	for _, name := range ours {
		layer, kind := name, "weight" // of a table, which has one tensor
		if at := strings.LastIndex(name, "."); at >= 0 {
			layer, kind = name[:at], torchKinds[name[at+1:]]
		}
		for i, l := range layers {
			match := expressions[i].FindStringSubmatchIndex(layer)
			if match == nil || kind == "" {
				continue
			}
			theirs := string(expressions[i].ExpandString(nil, bracketed(l.theirs), layer, match))
			theirs = torchNumber.ReplaceAllStringFunc(theirs, func(at string) string {
				group := 2 * int(at[1]-'0')
				n, _ := strconv.Atoi(layer[match[group]:match[group+1]])
				return fmt.Sprint(n - 1)
			})
			t.Names[name] = Foreign{Name: theirs + "." + kind, Head: l.head, Transposed: l.transposed, Part: l.part,
				Parts: l.parts}
			break
		}
	}
	return t
}

// bracketed writes $1 as ${1}, since package regexp takes letters and digits behind it for a part of its name.
func bracketed(template string) string {
	return torchGroup.ReplaceAllString(template, "$${$1}")
}

// vggLayers are the convolutions of a vgg, which torchvision counts together with ReLUs and pools.
func vggLayers(ours []string) (layers []torchLayer) {
	at, stage := 0, "1"
	for _, name := range ours { // in the order of the network
		layer, is := strings.CutSuffix(name, ".w")
		match := vggConv.FindStringSubmatch(layer)
		if !is || match == nil {
			continue
		}
		if match[1] != stage { // a pool
			at, stage = at+1, match[1]
		}
		layers = append(layers, torchLayer{ours: layer, theirs: fmt.Sprintf("features.%d", at)})
		at += 2
	}
	return layers
}

// shapeOf is the shape of the tensor that holds a storage of this shape.
func (f Foreign) shapeOf(shape graph.Shape) graph.Shape {
	theirs := slices.Clone(shape)
	if f.Transposed {
		slices.Reverse(theirs)
	}
	if len(theirs) > 0 {
		theirs[len(theirs)-1] *= max(1, f.Parts)
	}
	return theirs
}

// pairs calls each with the places of every element of a storage of this shape: in the storage and in the tensor.
func (f Foreign) pairs(shape graph.Shape, each func(ours, theirs int)) {
	parts := max(1, f.Parts)
	if len(shape) != 2 || !f.Transposed {
		n := shape.Elements()
		for i := range n {
			each(i, f.Part*n+i)
		}
		return
	}
	rows, columns := shape[0], shape[1]
	for r := range rows {
		for c := range columns {
			each(r*columns+c, (c*parts+f.Part)*rows+r)
		}
	}
}

// Take returns the content of a storage of this shape out of the tensor, or an error if that has another shape.
func (f Foreign) Take(x weights.Tensor, shape graph.Shape) ([]float32, error) {
	if want := f.shapeOf(shape); !slices.Equal(x.Shape, want) {
		return nil, fmt.Errorf("tensor %s has shape %v, want %v", x.Name, x.Shape, want)
	}
	data := make([]float32, shape.Elements())
	f.pairs(shape, func(ours, theirs int) { data[ours] = x.Data[theirs] })
	return data, nil
}

// Put writes the content of a storage of this shape into the tensor, which is made if it has no elements yet.
func (f Foreign) Put(x *weights.Tensor, data []float32, shape graph.Shape) {
	if x.Data == nil {
		*x = weights.Tensor{Name: f.Name, Shape: f.shapeOf(shape)}
		x.Data = make([]float32, x.Shape.Elements())
	}
	f.pairs(shape, func(ours, theirs int) { x.Data[theirs] = data[ours] })
}
