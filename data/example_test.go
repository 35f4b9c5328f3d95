package data_test

import (
	"fmt"
	"os"
	"path/filepath"

	"tensile/data"
)

func ExampleSynthetic() {
	d := data.Synthetic(3, 32, 32, 10, 1)
	const batch = 4
	images, labels := make([]float32, batch*3*32*32), make([]float32, batch)
	d.Fill(0, images, labels)
	fmt.Println(d.Examples(), "examples, the first of class", labels)
	// Output: 4096 examples, the first of class [0 0 4 8]
}

func ExampleOpen() {
	// Two images of 2x3 pixels and their labels, in the format of MNIST.
	dir, err := os.MkdirTemp("", "data")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	images := []byte{0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 3, 9, 9, 9, 9, 9, 9, 1, 1, 1, 1, 1, 1}
	labels := []byte{0, 0, 8, 1, 0, 0, 0, 2, 7, 7}
	for name, content := range map[string][]byte{"train-images-idx3-ubyte": images, "train-labels-idx1-ubyte": labels} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			panic(err)
		}
	}

	d, err := data.Open(nil, dir, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	c, h, w := d.Shape()
	batch := make([]float32, 2)
	d.Fill(0, make([]float32, 2*c*h*w), batch)
	fmt.Printf("%s: %d examples of %dx%dx%d in %d classes, labels %v\n", d.Name(), d.Examples(), c, h, w, d.Classes(),
		batch)
	// Output: MNIST-format: 2 examples of 1x2x3 in 10 classes, labels [7 7]
}

func ExampleDataset_CheckImage() {
	fmt.Println(data.Synthetic(3, 32, 32, 10, 1).CheckImage(224, 224))
	// Output: synthetic images are 32x32, not 224x224, and are not resized: leave --image out or set --image 32
}
