package data

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/color"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The pixels of pictures of each kind are those that Pillow's convert("RGB") has; of JPEG they are at most 2 apart, as
// the transforms of Go and libjpeg-turbo round differently.
func TestPicturesLikePillow(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("testdata", "pictures", "*.rgb"))
	if err != nil || len(paths) < 12 {
		t.Fatalf("%d pictures: %v", len(paths), err)
	}
	for _, path := range paths {
		name := strings.TrimSuffix(path, ".rgb")
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		img, err := decodeImage(text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		b := img.Bounds()
		if b.Dx() != 13 || b.Dy() != 11 {
			t.Fatalf("%s has %v pixels", name, b)
		}
		most := 0
		if filepath.Ext(name) == ".jpg" {
			most = 2
		}
		for i := range 13 * 11 {
			c := color.RGBAModel.Convert(img.At(b.Min.X+i%13, b.Min.Y+i/13)).(color.RGBA)
			for k, got := range [3]byte{c.R, c.G, c.B} {
				if d := int(got) - int(want[3*i+k]); d > most || -d > most {
					t.Fatalf("%s: pixel %d, colour %d is %d, want %d", name, i, k, got, want[3*i+k])
				}
			}
		}
	}
}

// Files that are no images are counted in a line; a class without an image, and a folder with pictures of kinds that
// are not read alone, are errors that name it. Pictures of other kinds than PNG and JPEG are examples.
func TestOtherFiles(t *testing.T) {
	dir := photos(t, "train")
	d, err := Open(nil, dir, 1)
	if err != nil || !strings.Contains(d.Note(), "train: files are passed over, 1 of other kinds (.txt 1)") {
		t.Fatalf("%v, note %q", err, d.Note())
	}
	for _, name := range []string{"lossy.webp", "palette.gif", "clear.bmp", "packed.tif"} {
		text, err := os.ReadFile(filepath.Join("testdata", "pictures", name))
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(dir, "train", "fox", name), text)
	}
	if d, err = Open(nil, dir, 1); err != nil || d.Examples() != 7 || d.Classes() != 3 {
		t.Fatalf("%v: %+v", err, d)
	}
	for i := range 7 {
		if _, err := d.Sized(3, 4, 4).Example(i, make([]float32, 48)); err != nil {
			t.Error(err)
		}
	}
	animated := filepath.Join(dir, "train", "fox", "animated.webp")
	writeFile(t, animated, []byte("RIFF\x1e\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x02\x00\x00\x00"+
		"\x03\x00\x00\x03\x00\x00ANIM\x00\x00\x00\x00"))
	if _, err := Open(nil, dir, 1); !errorLike(err, "animated.webp: is no image that can be read") {
		t.Errorf("an animated WebP: %v", err)
	}
	if err := os.Remove(animated); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "train", "owl", "a.avif"), []byte("a picture"))
	if _, err := Open(nil, dir, 1); !errorLike(err, "owl is a folder without an image that is read .*.webp") {
		t.Errorf("a class without an image: %v", err)
	}
	other := t.TempDir()
	writeFile(t, filepath.Join(other, "owl", "a.avif"), []byte("a picture"))
	writeFile(t, filepath.Join(other, "elk", "a.heic"), []byte("a picture"))
	if _, err := Open(nil, other, 1); !errorLike(err, "and 2 of other kinds .*avif 1, .heic 1.*: convert them") {
		t.Errorf("pictures that are not read: %v", err)
	}
	plain := photos(t, "train")
	if err := os.Remove(filepath.Join(plain, "train", "dog", "notes.txt")); err != nil {
		t.Fatal(err)
	}
	if d, err := Open(nil, plain, 1); err != nil || d.Note() != "" {
		t.Errorf("%v, note %q", err, d.Note())
	}
}

// What chroma of half as many rows becomes is three parts of the nearest and one of the next.
func TestChromaRows(t *testing.T) {
	x := image.NewYCbCr(image.Rect(0, 0, 2, 4), image.YCbCrSubsampleRatio440)
	for i := range x.Y {
		x.Y[i] = 128
	}
	copy(x.Cb, []byte{128, 128, 128, 128})
	copy(x.Cr, []byte{128, 128, 168, 168})
	for row, want := range []byte{128, 142, 170, 184} { // 128 + 1.402 times 0, 10, 30, 40
		if got := colours(x, "jpeg").At(0, row).(color.RGBA).R; got != want {
			t.Errorf("row %d has red %d, want %d", row, got, want)
		}
	}
}

// A fax in which ones are white, as Pillow writes it, is the image that libtiff reads: three white pixels and five
// black ones above a white row.
func TestFax(t *testing.T) {
	text, err := base64.StdEncoding.DecodeString("SUkqABAAAAAmtkU1ABABAAkAAAEDAAEAAAAIAAAAAQEDAAEAAAACAAAAAgEDAAEA" +
		"AAABAAAAAwEDAAEAAAAEAAAABgEDAAEAAAABAAAAEQEEAAEAAAAIAAAAFgEDAAEAAAACAAAAFwEEAAEAAAAHAAAAHAEDAAEA" +
		"AAABAAAAAAAAAA==")
	if err != nil {
		t.Fatal(err)
	}
	img, err := decodeImage(text)
	if err != nil {
		t.Fatal(err)
	}
	got := img.(*image.Gray).Pix
	if want := []byte{255, 255, 255, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255}; !bytes.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
