package weights_test

import (
	"fmt"
	"os"
	"path/filepath"

	"tensile/data/weights"
	"tensile/graph"
)

func ExampleWrite() {
	dir, err := os.MkdirTemp("", "weights")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "model.safetensors")

	err = weights.Write(nil, path, weights.File{
		Metadata: map[string]string{"iteration": "100"},
		Tensors: []weights.Tensor{
			{Name: "fc.weight", Shape: graph.Shape{2, 3}, Data: []float32{1, 2, 3, 4, 5, 6}},
			{Name: "fc.bias", Shape: graph.Shape{2}, Data: []float32{0.5, -0.5}},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	f, err := weights.Read(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("iteration", f.Metadata["iteration"])
	for _, t := range f.Tensors {
		fmt.Println(t.Name, t.Shape, t.Data)
	}
	// Output:
	// iteration 100
	// fc.bias [2] [0.5 -0.5]
	// fc.weight [2 3] [1 2 3 4 5 6]
}
