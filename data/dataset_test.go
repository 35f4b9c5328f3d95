package data

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// numbered is a set whose images show their own number and whose class is the number modulo 10.
type numbered struct{}

func (numbered) example(index int, image []float32) (int, error) {
	for i := range image {
		image[i] = float32(index)
	}
	return index % 10, nil
}

func newNumbered(examples int, seed uint64) *Dataset {
	return &Dataset{name: "numbered", channels: 1, height: 1, width: 2, classes: 10, examples: examples,
		order: derive(seed, tagOrder), contents: numbered{}}
}

// stream returns the numbers of the examples in the first iterations of a batch size.
func stream(t *testing.T, d *Dataset, batch, iterations int) []int {
	t.Helper()
	var numbers []int
	images, labels := make([]float32, 2*batch), make([]float32, batch)
	for i := range iterations {
		d.Fill(i, images, labels)
		for k, label := range labels {
			n := int(images[2*k])
			if images[2*k+1] != images[2*k] || int(label) != n%10 {
				t.Fatalf("iteration %d, example %d: image %v and label %v do not belong together", i, k,
					images[2*k:2*k+2], label)
			}
			numbers = append(numbers, n)
		}
	}
	return numbers
}

func TestEveryEpochHasEveryExampleOnce(t *testing.T) {
	const examples, epochs = 37, 5
	numbers := stream(t, newNumbered(examples, 3), 1, examples*epochs)
	orders := map[string]int{}
	for e := range epochs {
		epoch := slices.Clone(numbers[e*examples : (e+1)*examples])
		text := fmt.Sprint(epoch)
		if before, ok := orders[text]; ok {
			t.Errorf("epochs %d and %d have the same order", before, e)
		}
		orders[text] = e
		slices.Sort(epoch)
		for i, n := range epoch {
			if n != i {
				t.Fatalf("epoch %d, sorted, has %d in place %d", e, n, i)
			}
		}
	}
}

// The stream of examples does not depend on how it is cut into batches, batches larger than an epoch included.
func TestBatchesAreCutFromOneStream(t *testing.T) {
	d := newNumbered(37, 3)
	want := stream(t, d, 1, 400)
	for _, batch := range []int{2, 7, 36, 37, 38, 100} {
		got := stream(t, d, batch, 400/batch)
		if diff := cmp.Diff(want[:len(got)], got); diff != "" {
			t.Errorf("batch %d (-want +got):\n%s", batch, diff)
		}
	}
}

func TestSeedDecidesTheOrder(t *testing.T) {
	a, b, c := stream(t, newNumbered(37, 3), 37, 2), stream(t, newNumbered(37, 3), 37, 2), stream(t, newNumbered(37, 4),
		37, 2)
	if !slices.Equal(a, b) {
		t.Errorf("one seed gives two orders: %v, %v", a, b)
	}
	if slices.Equal(a, c) {
		t.Errorf("seeds 3 and 4 give the same order %v", a)
	}
}

// Iterations asked for backwards, from several goroutines, are those asked for one after another.
func TestFillHasNoState(t *testing.T) {
	for _, d := range []*Dataset{newNumbered(37, 3), Synthetic(2, 5, 7, 3, 1)} {
		c, h, w := d.Shape()
		const batch, iterations = 6, 30
		size := batch * c * h * w
		want := make([]float32, iterations*size)
		labels := make([]float32, iterations*batch)
		for i := range iterations {
			d.Fill(i, want[i*size:(i+1)*size], labels[i*batch:(i+1)*batch])
		}
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				images, l := make([]float32, size), make([]float32, batch)
				for i := iterations - 1; i >= 0; i-- {
					d.Fill(i, images, l)
					if !slices.Equal(images, want[i*size:(i+1)*size]) || !slices.Equal(l, labels[i*batch:(i+1)*batch]) {
						t.Errorf("%s: iteration %d is another one when asked for out of order", d.Name(), i)
					}
				}
			})
		}
		group.Wait()
	}
}

func TestFillAllocatesNothing(t *testing.T) {
	pixels := make([]byte, 5*2*3*3)
	files := &Dataset{channels: 2, height: 3, width: 3, classes: 10, examples: 5, contents: newStored(pixels,
		make([]byte, 5), 2)}
	for _, d := range []*Dataset{files, Synthetic(2, 3, 3, 4, 1)} {
		images, labels := make([]float32, 8*18), make([]float32, 8)
		if n := testing.AllocsPerRun(20, func() { d.Fill(11, images, labels) }); n != 0 {
			t.Errorf("%q: Fill allocates %v times", d.Name(), n)
		}
	}
}

func TestFillPanicsOnMisuse(t *testing.T) {
	d := newNumbered(5, 0)
	for name, misuse := range map[string]func(){
		"short images":       func() { d.Fill(0, make([]float32, 3), make([]float32, 2)) },
		"long images":        func() { d.Fill(0, make([]float32, 5), make([]float32, 2)) },
		"negative iteration": func() { d.Fill(-1, make([]float32, 4), make([]float32, 2)) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if text, _ := recover().(string); !strings.HasPrefix(text, "data: Fill") {
					t.Errorf("panic %q, want one that names data and Fill", text)
				}
			}()
			misuse()
		})
	}
}

func TestCheckImage(t *testing.T) {
	square := &Dataset{name: "CIFAR-10", height: 32, width: 32}
	oblong := &Dataset{name: "MNIST-format", height: 10, width: 20}
	for _, c := range []struct {
		d             *Dataset
		height, width int
		want          string
	}{
		{square, 32, 32, ""},
		{square, 224, 224, "CIFAR-10 images are 32x32, not 224x224, and are not resized: leave --image out or set " +
			"--image 32"},
		{square, 32, 28, "CIFAR-10 images are 32x32, not 32x28, and are not resized: leave --image out or set " +
			"--image 32"},
		{oblong, 10, 20, ""},
		{oblong, 20, 20, "MNIST-format images are 10x20, not 20x20, and are not resized: leave --image out"},
	} {
		got := ""
		if err := c.d.CheckImage(c.height, c.width); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("CheckImage(%d, %d) of %s = %q, want %q", c.height, c.width, c.d.name, got, c.want)
		}
	}
}
