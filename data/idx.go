package data

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"tensile/data/rooted"
)

// maxIDXBytes is the most that an IDX file may hold, some twenty times the size of MNIST's training images.
const maxIDXBytes = int64(1) << 30

// readIDXFile opens an IDX file, plain or compressed with gzip whatever its name says, and reads it.
func readIDXFile(in *rooted.Files, path string, dimensions int) (extents []int, content []byte, err error) {
	file, err := in.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	extents, content, err = readMaybeGzip(file, dimensions)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return extents, content, nil
}

func readMaybeGzip(r io.Reader, dimensions int) (extents []int, content []byte, err error) {
	buffered := bufio.NewReader(r)
	if start, _ := buffered.Peek(2); !bytes.Equal(start, []byte{0x1f, 0x8b}) {
		return readIDX(buffered, dimensions)
	}
	unpacked, err := gzip.NewReader(buffered)
	if err != nil {
		return nil, nil, fmt.Errorf("damaged (%w): download it again", err)
	}
	return readIDX(unpacked, dimensions)
}

// readIDX reads an IDX file of unsigned bytes: two zero bytes, the element type 8, the number of dimensions, each
// extent as a big-endian uint32, then the elements in row-major order. It never holds more than the file does.
func readIDX(r io.Reader, dimensions int) (extents []int, content []byte, err error) {
	head := make([]byte, 4+4*dimensions)
	if n, err := io.ReadFull(r, head); err != nil {
		return nil, nil, damage(err, int64(n), int64(len(head)))
	}
	want := 0x0800 | uint32(dimensions)
	if magic := binary.BigEndian.Uint32(head); magic != want {
		return nil, nil, fmt.Errorf("starts with %#08x, want %#08x (unsigned bytes, %d dimensions): "+
			"not the file that its name says, download it again", magic, want, dimensions)
	}
	total := int64(1)
	for i := range dimensions {
		extent := int64(binary.BigEndian.Uint32(head[4+4*i:]))
		extents = append(extents, int(extent))
		if extent == 0 || total > maxIDXBytes/extent {
			return nil, nil, fmt.Errorf("the header claims extents %v..., want 1 to %d bytes in all: download it again",
				extents, maxIDXBytes)
		}
		total *= extent
	}
	content, err = io.ReadAll(io.LimitReader(r, total+1))
	if err != nil || int64(len(content)) < total {
		return nil, nil, damage(err, int64(len(head)+len(content)), int64(len(head))+total)
	}
	if int64(len(content)) > total {
		return nil, nil, fmt.Errorf("goes on after the %d bytes that its header claims: download it again",
			int64(len(head))+total)
	}
	return extents, content, nil
}

// damage words the error of a file that ended or broke after got of want bytes.
func damage(err error, got, want int64) error {
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("truncated: ends after %d of %d bytes: download it again", got, want)
	}
	return fmt.Errorf("damaged after %d of %d bytes (%w): download it again", got, want, err)
}
