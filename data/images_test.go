package data

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// painted is an image of two colours, one in each half of its width, and of a third in what is cut off.
func painted(t *testing.T, path string, r image.Rectangle, left, right color.Color) {
	t.Helper()
	m := image.NewNRGBA(r)
	side := min(r.Dx(), r.Dy())
	middle := r.Min.X + r.Dx()/2
	for x := r.Min.X; x < r.Max.X; x++ {
		for y := r.Min.Y; y < r.Max.Y; y++ {
			switch {
			case x < middle-side/2 || x >= middle+side/2:
				m.Set(x, y, color.NRGBA{G: 255, A: 255})
			case x < middle:
				m.Set(x, y, left)
			default:
				m.Set(x, y, right)
			}
		}
	}
	var out bytes.Buffer
	err := png.Encode(&out, m)
	if filepath.Ext(path) != ".png" {
		out.Reset()
		err = jpeg.Encode(&out, m, &jpeg.Options{Quality: 100})
	}
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, out.Bytes())
}

// photos is a folder of two classes with a test set.
func photos(t *testing.T, train string) string {
	dir := t.TempDir()
	black, white := color.NRGBA{A: 255}, color.NRGBA{255, 255, 255, 255}
	painted(t, filepath.Join(dir, train, "cat", "a.png"), image.Rect(0, 0, 40, 20), white, black)
	painted(t, filepath.Join(dir, train, "cat", "more", "b.PNG"), image.Rect(0, 0, 8, 8), white, black)
	painted(t, filepath.Join(dir, train, "dog", "c.jpeg"), image.Rect(3, 7, 35, 23), black, white)
	writeFile(t, filepath.Join(dir, train, "dog", "notes.txt"), []byte("no image"))
	writeFile(t, filepath.Join(dir, train, ".cache", "x.png"), []byte("no class"))
	return dir
}

// Each image is of the class of its folder; the middle of it is scaled to the size that is asked for and normalised.
func TestImages(t *testing.T) {
	for _, train := range []string{"train", "."} {
		d, err := Open(nil, photos(t, train), 1)
		if err != nil {
			t.Fatal(err)
		}
		if d.Examples() != 3 || d.Classes() != 2 || !d.AnySize() {
			t.Fatalf("%d examples of %d classes", d.Examples(), d.Classes())
		}
		for _, channels := range []int{1, 3} {
			sized := d.Sized(channels, 4, 4)
			if c, h, w := sized.Shape(); c != channels || h != 4 || w != 4 {
				t.Fatalf("sized to %dx%dx%d", c, h, w)
			}
			out := make([]float32, channels*16)
			for i, left := range []byte{255, 255, 0} {
				class, err := sized.Example(i, out)
				if want := i / 2; err != nil || class != want {
					t.Errorf("image %d is of class %d, want %d: %v", i, class, want, err)
				}
				for c, by := range normal[channels] {
					for _, at := range []struct {
						pixel int
						value byte
					}{{0, left}, {12, left}, {3, 255 - left}, {15, 255 - left}} {
						want := (float64(at.value)/255 - by.mean) / by.deviation
						if got := float64(out[16*c+at.pixel]); got < want-0.2 || got > want+0.2 {
							t.Errorf("image %d, channel %d, pixel %d is %v, want %v", i, c, at.pixel, got, want)
						}
					}
				}
			}
		}
		if sized := d.Sized(2, 4, 4); sized != d {
			t.Error("images have two channels")
		}
	}
}

// An iteration is a function of its number, and the test set has the classes of the training set.
func TestImagesAreDrawn(t *testing.T) {
	dir := photos(t, "train")
	painted(t, filepath.Join(dir, "val", "dog", "d.png"), image.Rect(0, 0, 9, 9), color.Black, color.White)
	d, err := Open(nil, dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	d = d.Sized(3, 5, 5)
	images, labels := make([]float32, 6*75), make([]float32, 6)
	if err := d.Fill(3, images, labels); err != nil {
		t.Fatal(err)
	}
	if sum := labels[0] + labels[1] + labels[2]; sum != 1 {
		t.Errorf("an epoch has the labels %v", labels[:3])
	}
	again, same := make([]float32, 6*75), make([]float32, 6)
	if err := d.Fill(3, again, same); err != nil || !slices.Equal(images, again) || !slices.Equal(labels, same) {
		t.Errorf("the iteration is another one when it is asked for again: %v", err)
	}
	test, err := d.Test()
	if err != nil || test == nil || test.Examples() != 1 || test.Classes() != 2 {
		t.Fatalf("the test set is %+v: %v", test, err)
	}
	if class, err := test.Example(0, make([]float32, 75)); class != 1 || err != nil {
		t.Errorf("the test image is of class %d, want 1: %v", class, err)
	}
	painted(t, filepath.Join(dir, "val", "eel", "e.png"), image.Rect(0, 0, 9, 9), color.Black, color.White)
	if _, err := d.Test(); !errorLike(err, "val has images of class eel, of which there are none") {
		t.Errorf("a test set of another class: %v", err)
	}
}

func TestImagesErrors(t *testing.T) {
	dir := photos(t, ".")
	path := filepath.Join(dir, "cat", "a.png")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, whole[:len(whole)/2])
	if _, err := Open(nil, dir, 1); !errorLike(err,
		"a.png: is no image that can be read .*: replace or remove") {
		t.Errorf("half an image: %v", err)
	}
	huge := slices.Clone(whole[:33])
	copy(huge[16:], []byte{0, 1, 0, 0, 0, 1, 0, 0}) // its width and height; the sum of the header is wrong, too
	writeFile(t, path, huge)
	if _, err := Open(nil, dir, 1); !errorLike(err, "a.png: is ") {
		t.Errorf("a huge image: %v", err)
	}
	if err := checkImage(image.Config{Width: 1 << 16, Height: 1 << 16}, nil); !errorLike(err, "make it smaller") {
		t.Errorf("a huge image: %v", err)
	}
	writeFile(t, path, []byte("GIF89a"))
	if _, err := Open(nil, dir, 1); !errorLike(err, "a.png: is no image that can be read .*: replace or remove it") {
		t.Errorf("no image: %v", err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "cat")); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(nil, dir, 1); !errorLike(err, "has images of one class, dog, alone: put") {
		t.Errorf("one class: %v", err)
	}
}

// A class may be a link to a folder, and an image one to a file. A link to a folder within a class, which may lead
// anywhere, and one to nothing, are errors that name it.
func TestLinkedImages(t *testing.T) {
	dir, elsewhere := photos(t, "train"), t.TempDir()
	painted(t, filepath.Join(elsewhere, "d.png"), image.Rect(0, 0, 8, 8), color.White, color.Black)
	link := func(from string, to ...string) string {
		path := filepath.Join(append([]string{dir, "train"}, to...)...)
		if err := os.Symlink(from, path); err != nil {
			t.Skipf("needs symbolic links: test on a file system that has them: %v", err)
		}
		return path
	}
	link(elsewhere, "bird")
	link(filepath.Join(elsewhere, "d.png"), "dog", "e.png")
	d, err := Open(nil, dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	if d.Classes() != 3 || d.Examples() != 5 {
		t.Errorf("%d images of %d classes, want 5 of 3", d.Examples(), d.Classes())
	}
	for _, path := range []string{link(elsewhere, "dog", "more"), link(filepath.Join(elsewhere, "none"), "fish")} {
		if _, err := Open(nil, dir, 1); err == nil || !strings.Contains(err.Error(), path+" is a link") {
			t.Errorf("error %v, want one that names the link %s", err, path)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// An image whose file is cut off is refused; one with something behind its end is whole. One that is broken in the
// middle is passed over each time that it is drawn: the next one takes its place.
func TestBrokenImages(t *testing.T) {
	for _, broken := range []string{"cat/a.png", "dog/c.jpeg"} {
		dir := photos(t, ".")
		path := filepath.Join(dir, broken)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for cut := 60; cut < len(whole); cut += 7 {
			writeFile(t, path, whole[:cut])
			if _, err := Open(nil, dir, 1); !errorLike(err, broken+": is no image that can be read") {
				t.Fatalf("%s, of which %d of %d bytes are left: %v", broken, cut, len(whole), err)
			}
		}
		writeFile(t, path, append(slices.Clone(whole), make([]byte, 10_000)...))
		if _, err := Open(nil, dir, 1); err != nil {
			t.Errorf("%s with something behind it: %v", broken, err)
		}
		torn := slices.Clone(whole)
		clear(torn[len(torn)/2 : 3*len(torn)/4])
		writeFile(t, path, torn)
		d, err := Open(nil, dir, 1)
		if err != nil {
			t.Fatalf("%s, torn in the middle: %v", broken, err)
		}
		images, labels := make([]float32, 3*48), make([]float32, 3)
		err = d.Sized(3, 4, 4).Fill(0, images, labels)
		over, ok := errors.AsType[*PassedOverError](err)
		if !ok || !errorLike(over, broken+
			": is no image .* it is passed over, and .*(b.PNG|a.png) taken in its place") {
			t.Errorf("%s, torn in the middle: %v", broken, err)
		}
		want := map[string][]float32{"cat/a.png": {0, 0, 1}, "dog/c.jpeg": {0, 0, 0}}[broken]
		if slices.Sort(labels); !slices.Equal(labels, want) {
			t.Errorf("without %s an epoch has the labels %v, want %v", broken, labels, want)
		}
	}
	dir := photos(t, ".")
	d, err := Open(nil, dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"cat/a.png", "cat/more/b.PNG", "dog/c.jpeg"} {
		writeFile(t, filepath.Join(dir, path), []byte("no image"))
	}
	if err := d.Sized(3, 4, 4).Fill(0, make([]float32, 48), make([]float32, 1)); !errorLike(err,
		": is no image") || strings.Contains(err.Error(), "passed over") {
		t.Errorf("no image is left: %v", err)
	}
}

// Folders that are called after the parts of a data set are these, and no classes.
func TestPartsOfASet(t *testing.T) {
	for _, test := range []struct {
		files, root, classes, test string // all below the folder; test: "": there is none
		err                        string
	}{
		{files: "training/oak/a training/elm/a validation/oak/a validation/elm/a", root: "training",
			classes: "elm oak", test: "validation"},
		{files: "Train_set/oak/a Train_set/elm/a Test_set/oak/a", root: "Train_set", classes: "elm oak",
			test: "Test_set"},
		{files: "train2017/oak/a train2017/elm/a val2017/oak/a test2017/a", root: "train2017", classes: "elm oak",
			test: "val2017"},
		{files: "train/oak/a train/elm/a test/oak/a validation/elm/a", root: "train", classes: "elm oak",
			test: "validation"},
		{files: "train/oak/a train/elm/a", root: "train", classes: "elm oak"},
		{files: "train/a car/a", root: ".", classes: "car train"},
		{files: "steam_train/a night_train/a", root: ".", classes: "night_train steam_train"},
		{files: "steam_train/a night_train/a diesel_train/a", root: ".",
			classes: "diesel_train night_train steam_train"},
		{files: "blood_test/a blood_eval/a", root: ".", classes: "blood_eval blood_test"},
		{files: "steam_train/a steam_engine/a", root: ".", classes: "steam_engine steam_train"},
		{files: "tree_train/oak/a tree_train/elm/a tree_test/oak/a", root: "tree_train", classes: "elm oak",
			test: "tree_test"},
		{files: "tree_train/tree_train/oak/a tree_train/tree_train/elm/a tree_test/tree_test/oak/a",
			err: "DIR/tree_train has images of one class, tree_train, alone: put those of each class into a folder " +
				"of its own, or name the folder in which they are"},
		{files: "tree_train/oak/a tree_train/elm/a tree_test/oak/a car_test/a", root: ".",
			classes: "car_test tree_test tree_train"},
		{files: "train/oak/a train/elm/a tree_test/oak/a", root: "train", classes: "elm oak"},
		{files: "oak/day/a oak/night/a elm/a", root: ".", classes: "elm oak"},
		{files: "oak/images/a elm/images/a", root: ".", classes: "elm oak"},
		{files: "oak/day/a oak/night/a elm/day/a", root: ".", classes: "elm oak"},
		{files: "2023/oak/a 2023/elm/a 2024/oak/a 2024/elm/a",
			err: "DIR has 2023, 2024, and each of these elm, oak: name the one whose folders are the classes, such " +
				"as DIR/2023, or put the images of each class right into its folder"},
		{files: "train/a val/b", err: "DIR/train has no folder of images for each class: put"},
		{files: "val/oak/a test/oak/a",
			err: "DIR has test, val, which are parts of a data set, and 0 of them to learn from: call one train"},
		{files: "training/oak/a Training_set/elm/a", err: "2 of them to learn from: call one train"},
		{files: "a b", err: "DIR has images, such as a.png, but no folder for each class: put "},
		{files: "training/oak/a validation/oak/a", err: "DIR/training has images of one class, oak, alone"},
	} {
		dir := t.TempDir()
		for file := range strings.FieldsSeq(test.files) {
			painted(t, filepath.Join(dir, file+".png"), image.Rect(0, 0, 2, 2), color.Black, color.White)
		}
		d, err := Open(nil, dir, 1)
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), strings.ReplaceAll(test.err, "DIR", dir)) {
				t.Errorf("%s: error %v, want %s", test.files, err, test.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", test.files, err)
			continue
		}
		if got := strings.Join(d.ClassNames(), " "); got != test.classes ||
			d.Name() != filepath.Join(filepath.Base(dir), test.root) {
			t.Errorf("%s: %s has the classes %s, want %s of %s", test.files, d.Name(), got, test.classes, test.root)
		}
		held, err := d.Test()
		if err != nil || (held != nil) != (test.test != "") || held != nil && held.Name() != test.test {
			t.Errorf("%s: the test set is %+v, want %q: %v", test.files, held, test.test, err)
		}
	}
}
