package data

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"image"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/image/draw"

	"tensile/data/rooted"
)

// mostPixels bounds an image: a small file can claim a huge one.
const mostPixels = 1 << 26

// Pixels from 0 to 1 become (pixel - mean) / deviation: those of ImageNet's red, green and blue, with which the
// published networks of torchvision were trained, and the means of the three for images of one channel.
var normal = map[int][]struct{ mean, deviation float64 }{
	1: {{0.449, 0.226}},
	3: {{0.485, 0.229}, {0.456, 0.224}, {0.406, 0.225}},
}

// images are files of images that are decoded when they are asked for, each in the folder of its class.
type images struct {
	in            *rooted.Files
	files         []imageFile
	height, width int
	scale         [][256]float32 // per channel: the normalised value of each byte
}

type imageFile struct {
	path  string
	class int
}

// otherPictures are the ends of names of images that are not read.
var otherPictures = []string{".avif", ".heic", ".heif", ".jp2", ".jxl", ".ppm", ".pgm", ".svg"}

// found is what there is in the folders of classes.
type found struct {
	classes []string // folders that have images, sorted
	files   []imageFile
	empty   []string       // folders that have none
	others  map[string]int // files that are no images, by the ends of their names
}

// classFolders returns the names of the folders in a folder that have images, sorted, and all images in them.
func classFolders(in *rooted.Files, dir string) (classes []string, files []imageFile, err error) {
	f, err := findClasses(in, dir)
	return f.classes, f.files, err
}

// findClasses looks into the folders in a folder. A link to a folder is one.
func findClasses(in *rooted.Files, dir string) (f found, err error) {
	f.others = make(map[string]int)
	entries, err := in.ReadDir(dir)
	if err != nil {
		return f, err
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		folder := filepath.Join(dir, entry.Name())
		isFolder, err := leadsToFolder(in, folder, entry)
		if err != nil {
			return f, err
		}
		if !isFolder {
			continue
		}
		before := len(f.files)
		if err := f.look(in, folder); err != nil {
			return f, err
		}
		if len(f.files) > before {
			f.classes = append(f.classes, entry.Name())
		} else {
			f.empty = append(f.empty, entry.Name())
		}
	}
	return f, nil
}

// look adds the images in the folder of the next class, and in those below it.
func (f *found) look(in *rooted.Files, dir string) error {
	entries, err := in.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		switch {
		case entry.IsDir():
			if err := f.look(in, path); err != nil {
				return err
			}
		case isImage(entry.Name()):
			f.files = append(f.files, imageFile{path, len(f.classes)})
		default:
			if more, err := leadsToFolder(in, path, entry); err == nil && more { // which may lead back here
				return fmt.Errorf("%s is a link to a folder within the folder of a class: put its images there", path)
			}
			if !strings.HasPrefix(entry.Name(), ".") {
				f.others[strings.ToLower(filepath.Ext(path))]++
			}
		}
	}
	return nil
}

// counted lists what files are there that are no images, by the ends of their names; "": none.
func (f *found) counted() string {
	all := 0
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(f.others)) {
		all += f.others[kind]
		kinds = append(kinds, fmt.Sprintf("%s %d", cmp.Or(kind, "without an end"), f.others[kind]))
	}
	if all == 0 {
		return ""
	}
	const most = 6
	if len(kinds) > most {
		kinds = append(kinds[:most], "...")
	}
	return fmt.Sprintf("%d of other kinds (%s)", all, strings.Join(kinds, ", "))
}

// leadsToFolder reports whether an entry of a folder is a folder or a link to one. A link to nothing is an error.
func leadsToFolder(in *rooted.Files, path string, entry fs.DirEntry) (bool, error) {
	if entry.Type()&fs.ModeSymlink == 0 {
		return entry.IsDir(), nil
	}
	info, err := in.Stat(path)
	if err != nil {
		return false, fmt.Errorf("%s is a link that leads nowhere: %v", path, err) // dir itself is there
	}
	return info.IsDir(), nil
}

// openImages opens a folder with a folder of images for each class, or with such folders in train, and
// those of the test set in val or test. The set is nil if there are no such folders.
func openImages(in *rooted.Files, dir string) (*Dataset, error) {
	root, err := trainingFolder(in, dir)
	if err != nil {
		return nil, err
	}
	all, err := findClasses(in, root)
	if err != nil {
		return nil, err
	}
	classes, files := all.classes, all.files
	switch others := all.counted(); {
	case len(files) == 0 && slices.ContainsFunc(otherPictures, func(kind string) bool { return all.others[kind] > 0 }):
		return nil, fmt.Errorf("%s has folders without an image that is read (%s), and %s: convert them",
			root, strings.Join(imageKinds, " "), others)
	case len(files) == 0:
		return nil, loose(in, root)
	case len(all.empty) > 0 && len(classes) > 1:
		return nil, fmt.Errorf("%s is a folder without an image that is read (%s): put images of that class there, or "+
			"take the folder away", filepath.Join(root, all.empty[0]), strings.Join(imageKinds, " "))
	}
	if len(classes) < 2 {
		return nil, fmt.Errorf("%s has images of one class, %s, alone: put those of each class into a folder of its "+
			"own, or name the folder in which they are", root, classes[0])
	}
	if err := checkClasses(in, root, classes); err != nil {
		return nil, err
	}
	if err := checkImages(in, files); err != nil {
		return nil, err
	}
	d := &Dataset{name: filepath.Join(filepath.Base(dir), strings.TrimPrefix(root, dir)), classes: len(classes),
		examples: len(files), classNames: classes, contents: &images{in: in, files: files}}
	if others := all.counted(); others != "" {
		d.note = fmt.Sprintf("%s: files are passed over, %s: images are %s", root, others,
			strings.Join(imageKinds, " "))
	}
	d.test = func() (*Dataset, error) {
		if root == dir {
			return nil, nil
		}
		folders, err := testFolders(in, dir, root)
		if err != nil {
			return nil, err
		}
		for _, folder := range folders {
			t, err := testImages(in, folder, classes)
			if t != nil || err != nil {
				return t, err
			}
		}
		return nil, nil
	}
	return d, nil
}

// loose is the error for a folder in which images lie beside each other, and nil for another one.
func loose(in *rooted.Files, dir string) error {
	entries, err := in.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if isImage(entry.Name()) {
			return fmt.Errorf("%s has images, such as %s, but no folder for each class: put those of each class into "+
				"a folder of its own, and name the folder above these", dir, entry.Name())
		}
	}
	return nil
}

// testImages opens the folder of a test set of these classes; nil if it is not there.
func testImages(in *rooted.Files, dir string, classes []string) (*Dataset, error) {
	found, files, err := classFolders(in, dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(files) == 0 {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	for i := range files {
		name := found[files[i].class]
		if files[i].class = slices.Index(classes, name); files[i].class < 0 {
			return nil, fmt.Errorf("%s has images of class %s, of which there are none to learn from: rename or "+
				"remove that folder", dir, name)
		}
	}
	if err := checkImages(in, files); err != nil {
		return nil, err
	}
	return &Dataset{name: filepath.Base(dir), classes: len(classes), examples: len(files),
		contents: &images{in: in, files: files}}, nil
}

// checkImages reads the headers and ends of images, so that what is none, or was cut off, is refused before anything is
// trained.
func checkImages(in *rooted.Files, files []imageFile) error {
	for _, f := range files {
		if err := regular(in, f.path); err != nil {
			return err
		}
		file, err := in.Open(f.path)
		if err != nil {
			return err
		}
		c, kind, err := image.DecodeConfig(file)
		if err = checkImage(c, err); err == nil && !hasEnd(file, kind) {
			if _, err = file.Seek(0, io.SeekStart); err == nil {
				_, _, err = image.Decode(file)
			}
			err = checkImage(c, err)
		}
		file.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", f.path, err)
		}
	}
	return nil
}

// regular returns the error of what is no regular file: opening a pipe would wait for whoever writes to it.
func regular(in *rooted.Files, path string) error {
	info, err := in.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: is no regular file: name a file, or remove it", path)
	}
	return err
}

func checkImage(c image.Config, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("is no image that can be read (%w): replace or remove it", err)
	case c.Width < 1 || c.Height < 1 || c.Width > mostPixels/c.Height:
		return fmt.Errorf("is an image of %dx%d pixels, want 1 to %d in all: make it smaller", c.Width, c.Height,
			mostPixels)
	}
	return nil
}

// AnySize reports whether images are brought to the size that a network takes, of one channel or three.
func (d *Dataset) AnySize() bool {
	_, any := d.contents.(*images)
	return any
}

// Sized returns a set of AnySize whose images have this extent, or, if the set has a size of its own, d. Channels
// other than 1 and 3 are left to the caller to refuse: such a set is d too.
func (d *Dataset) Sized(channels, height, width int) *Dataset {
	from, any := d.contents.(*images)
	if !any || normal[channels] == nil {
		return d
	}
	to := &images{in: from.in, files: from.files, height: height, width: width, scale: make([][256]float32, channels)}
	for c, by := range normal[channels] {
		for value := range to.scale[c] {
			to.scale[c][value] = float32((float64(value)/255 - by.mean) / by.deviation)
		}
	}
	sized := *d
	sized.channels, sized.height, sized.width, sized.contents = channels, height, width, to
	if d.test != nil {
		sized.test = func() (*Dataset, error) {
			t, err := d.test()
			if t != nil {
				t = t.Sized(channels, height, width)
			}
			return t, err
		}
	}
	return &sized
}

// PassedOverError says that an image cannot be decoded, and that another one was taken in its place: the next in the
// order of paths that can.
type PassedOverError struct {
	Err     error // names its file
	Instead string
}

func (e *PassedOverError) Error() string {
	return fmt.Sprintf("%v; it is passed over, and %s taken in its place", e.Err, e.Instead)
}

// brokenError is about the content of an image's file.
type brokenError struct{ error }

func (s *images) example(index int, out []float32) (class int, err error) {
	class, broken := s.decode(index, out)
	if _, ok := errors.AsType[brokenError](broken); !ok {
		return class, broken
	}
	for n := 1; n < len(s.files); n++ {
		instead := (index + n) % len(s.files)
		class, err := s.decode(instead, out)
		if err == nil {
			return class, &PassedOverError{broken, s.files[instead].path}
		} else if _, ok := errors.AsType[brokenError](err); !ok {
			return 0, err
		}
	}
	return 0, broken
}

// decode decodes an image, cuts the largest part of the wanted form out of its middle, and scales that.
func (s *images) decode(index int, out []float32) (int, error) {
	f := s.files[index]
	if err := regular(s.in, f.path); err != nil {
		return 0, err
	}
	text, err := s.in.ReadFile(f.path)
	if err != nil {
		return 0, err
	}
	c, _, err := image.DecodeConfig(bytes.NewReader(text))
	if err = checkImage(c, err); err != nil {
		return 0, brokenError{fmt.Errorf("%s: %w", f.path, err)}
	}
	from, err := decodeImage(text)
	if err = checkImage(c, err); err != nil {
		return 0, brokenError{fmt.Errorf("%s: %w", f.path, err)}
	}
	to := image.NewRGBA(image.Rect(0, 0, s.width, s.height))
	draw.BiLinear.Scale(to, to.Rect, from, middle(from.Bounds(), s.width, s.height), draw.Src, nil)
	plane := s.width * s.height
	for i := range plane {
		red, green, blue := to.Pix[4*i], to.Pix[4*i+1], to.Pix[4*i+2]
		if len(s.scale) == 1 {
			// as package image/color makes gray of colours
			out[i] = s.scale[0][(19595*uint32(red)+38470*uint32(green)+7471*uint32(blue)+1<<15)>>16]
			continue
		}
		out[i], out[plane+i], out[2*plane+i] = s.scale[0][red], s.scale[1][green], s.scale[2][blue]
	}
	return f.class, nil
}

// middle is the largest part in the middle of an image that has the form of width to height.
func middle(b image.Rectangle, width, height int) image.Rectangle {
	w, h := b.Dx(), b.Dy()
	if w*height > h*width {
		w = max(1, h*width/height)
	} else {
		h = max(1, w*height/width)
	}
	at := b.Min.Add(image.Pt((b.Dx()-w)/2, (b.Dy()-h)/2))
	return image.Rectangle{at, at.Add(image.Pt(w, h))}
}
