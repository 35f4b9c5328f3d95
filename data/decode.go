package data

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	_ "image/gif"
	_ "image/jpeg"
	_ "image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"

	_ "golang.org/x/image/bmp"
	_ "golang.org/x/image/tiff"
	_ "golang.org/x/image/webp"
)

// What files of images hold becomes red, green and blue here as Pillow's convert("RGB") makes it: what is transparent
// keeps its colour.

// imageKinds are the ends of names of images that are read.
var imageKinds = []string{".png", ".jpg", ".jpeg", ".jfif", ".webp", ".gif", ".bmp", ".tif", ".tiff"}

func isImage(name string) bool {
	return !strings.HasPrefix(name, ".") && slices.Contains(imageKinds, strings.ToLower(filepath.Ext(name)))
}

// decodeImage returns the image in a file's bytes, the first of several, opaque.
func decodeImage(text []byte) (image.Image, error) {
	img, kind, err := image.Decode(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	switch x := img.(type) {
	case *image.Gray:
		if kind == "tiff" && isFaxOfLight(text) {
			for i, v := range x.Pix {
				x.Pix[i] = ^v
			}
		}
	case *image.YCbCr:
		return colours(x, kind), nil
	case *image.NYCbCrA:
		return colours(&x.YCbCr, kind), nil
	case *image.NRGBA:
		if !x.Opaque() {
			for i := 3; i < len(x.Pix); i += 4 {
				x.Pix[i] = 0xff
			}
		}
	case *image.NRGBA64:
		for i := 6; i+1 < len(x.Pix); i += 8 {
			x.Pix[i], x.Pix[i+1] = 0xff, 0xff
		}
	case *image.Paletted:
		c, _, err := image.DecodeConfig(bytes.NewReader(text))
		whole, _ := c.ColorModel.(color.Palette) // that of a GIF has a colour where the image's has nothing
		for i, old := range x.Palette {
			if kind == "gif" && err == nil && len(whole) == len(x.Palette) {
				old = whole[i]
			}
			n, is := old.(color.NRGBA)
			if !is {
				n = color.NRGBAModel.Convert(old).(color.NRGBA)
			}
			n.A = 0xff
			x.Palette[i] = n
		}
	}
	return img, nil
}

// isFaxOfLight reports whether a TIFF has fax compression, in which a run of ones is black, of an image in which ones
// are white: the package that reads it takes the runs as they are there, and libtiff the image.
func isFaxOfLight(text []byte) bool {
	const compression, photometric, whiteIsOne = 259, 262, 1
	if len(text) < 8 {
		return false
	}
	var order binary.ByteOrder = binary.LittleEndian
	if text[0] == 'M' {
		order = binary.BigEndian
	}
	found := make(map[uint16]uint16)
	if at := int64(order.Uint32(text[4:])); at+2 <= int64(len(text)) {
		entries := text[at+2:]
		entries = entries[:min(len(entries)/12, int(order.Uint16(text[at:])))*12]
		for entry := range slices.Chunk(entries, 12) {
			if tag := order.Uint16(entry); tag == compression || tag == photometric {
				found[tag] = order.Uint16(entry[8:])
			}
		}
	}
	return found[compression] >= 2 && found[compression] <= 4 && found[photometric] == whiteIsOne
}

// hasEnd reports whether an image of a kind seems to have its end: the mark of it is among the last bytes of the file,
// behind which there may be something, or its header says how long it is.
func hasEnd(file *os.File, kind string) bool {
	info, err := file.Stat()
	if err != nil {
		return false
	}
	const last = 4096
	tail := make([]byte, min(last, info.Size()))
	if _, err := file.ReadAt(tail, info.Size()-int64(len(tail))); err != nil {
		return false
	}
	switch kind {
	case "png":
		return bytes.Contains(tail, []byte("IEND\xaeB`\x82"))
	case "jpeg":
		return bytes.Contains(tail, []byte("\xff\xd9"))
	}
	var head [21]byte
	if _, err := file.ReadAt(head[:], 0); err != nil {
		return false
	}
	switch kind {
	case "webp":
		animated := string(head[12:16]) == "VP8X" && head[20]&2 != 0 // of which no image is read
		return !animated && int64(binary.LittleEndian.Uint32(head[4:]))+8 <= info.Size()
	case "bmp":
		size := int64(binary.LittleEndian.Uint32(head[2:]))
		return size > 0 && size <= info.Size()
	}
	return false // it is decoded to know
}

// colours makes red, green and blue of luma and chroma. Where chroma has fewer pixels each takes three parts of its
// nearest and one of the next, as libjpeg-turbo and libwebp do by default.
func colours(x *image.YCbCr, kind string) image.Image {
	half := [2]int{1, 1} // pixels for each of chroma, across and down
	switch x.SubsampleRatio {
	case image.YCbCrSubsampleRatio420:
		half = [2]int{2, 2}
	case image.YCbCrSubsampleRatio422:
		half = [2]int{2, 1}
	case image.YCbCrSubsampleRatio440:
		half = [2]int{1, 2}
	case image.YCbCrSubsampleRatio444:
	default:
		return x
	}
	convert := jpegColour
	if kind == "webp" {
		convert = webpColour
	}
	w, h := x.Rect.Dx(), x.Rect.Dy()
	to := image.NewRGBA(image.Rect(0, 0, w, h))
	planes := [2][]byte{x.Cb, x.Cr}
	var rows [2][]byte
	for i := range rows {
		rows[i] = make([]byte, w+2)
	}
	cw, ch := (w+half[0]-1)/half[0], (h+half[1]-1)/half[1]
	sums := make([]int, cw)
	for y := range h {
		for i, plane := range planes {
			chromaRow(sums, plane, x.CStride, y, ch, half)
			widen(rows[i], sums, half, y, kind)
		}
		luma := x.Y[y*x.YStride:]
		pixels := to.Pix[y*to.Stride:]
		for i := range w {
			r, g, b := convert(int32(luma[i]), int32(rows[0][i]), int32(rows[1][i]))
			pixels[4*i], pixels[4*i+1], pixels[4*i+2], pixels[4*i+3] = r, g, b, 0xff
		}
	}
	return to
}

// chromaRow makes the row of chroma for row y: itself, or four times it where it has fewer rows, of which three parts
// are of the nearest and one of the next.
func chromaRow(sums []int, plane []byte, stride, y, rows int, half [2]int) {
	near := plane[y/half[1]*stride:]
	if half[1] == 1 {
		for i := range sums {
			sums[i] = int(near[i])
		}
		return
	}
	next := y/2 - 1 + 2*(y%2)
	far := plane[max(0, min(rows-1, next))*stride:]
	for i := range sums {
		sums[i] = 3*int(near[i]) + int(far[i])
	}
}

// widen makes a row of pixels of a row of chroma, which chromaRow may have multiplied by four.
func widen(to []byte, sums []int, half [2]int, y int, kind string) {
	n := len(sums)
	switch {
	case half[0] == 1 && half[1] == 1:
		for i, v := range sums {
			to[i] = byte(v)
		}
	case half[0] == 1: // libjpeg-turbo rounds down in the upper row and up in the lower one
		for i, v := range sums {
			to[i] = byte((v + 1 + y%2) >> 2)
		}
	case n == 1 && half[1] == 1:
		to[0], to[1] = byte(sums[0]), byte(sums[0])
	default:
		shift, left, right := 2, 1, 2
		if half[1] == 2 {
			shift, left, right = 4, 8, 7
			if kind == "webp" {
				right = 8
			}
		}
		for i, v := range sums {
			before, after := sums[max(0, i-1)], sums[min(n-1, i+1)]
			to[2*i] = byte((3*v + before + left) >> shift)
			to[2*i+1] = byte((3*v + after + right) >> shift)
		}
		if shift == 2 { // the ends are taken as they are
			to[0], to[2*n-1] = byte(sums[0]), byte(sums[n-1])
		} else {
			to[0], to[2*n-1] = byte((4*sums[0]+left)>>shift), byte((4*sums[n-1]+right)>>shift)
		}
	}
}

func clip(v int32) byte { return byte(max(0, min(255, v))) }

// jpegColour is libjpeg's, in its fixed-point numbers.
func jpegColour(y, cb, cr int32) (r, g, b byte) {
	const half = 1 << 15
	cb, cr = cb-128, cr-128
	return clip(y + (91881*cr+half)>>16), clip(y + (-22554*cb-46802*cr+half)>>16), clip(y + (116130*cb+half)>>16)
}

// webpColour is libwebp's, in its fixed-point numbers: luma is from 16 to 235.
func webpColour(y, u, v int32) (r, g, b byte) {
	y = y * 19077 >> 8
	return clip((y + v*26149>>8 - 14234) >> 6), clip((y - u*6419>>8 - v*13320>>8 + 8708) >> 6),
		clip((y + u*33050>>8 - 17685) >> 6)
}
