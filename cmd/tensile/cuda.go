package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"tensile/device/cuda"
	"tensile/internal/fakecuda"
)

// openCUDA opens the device that --device cuda or cuda:N names, the first being 0; with --fake on a driver without a
// GPU.
func openCUDA(f *planFlags) (*cuda.Device, error) {
	var o cuda.Options
	if _, number, ok := strings.Cut(f.device, ":"); ok {
		var err error
		if o.Index, err = strconv.Atoi(number); err != nil || o.Index < 0 {
			return nil, fmt.Errorf("--device %s: give cuda, or cuda:N with the number of a GPU from 0 on", f.device)
		}
	}
	if f.link != "" && f.link != "none" {
		return nil, fmt.Errorf("--link %s: on --device cuda the link is the device's own; leave it out", f.link)
	}
	var err error
	if o.Pinned, err = f.host.limit(false); err != nil {
		return nil, err
	}
	var driver cuda.Driver
	if f.fake {
		driver = fakecuda.New(fakecuda.Options{})
	} else if driver, err = cudaDriver(); err != nil {
		return nil, fmt.Errorf("--device %s: %w; cpu and sim:NAME (%s) need no GPU", f.device, err, simNames())
	}
	d, err := cuda.New(driver, o)
	if err != nil {
		return nil, fmt.Errorf("--device %s: %w", f.device, err)
	}
	return d, nil
}

// gpu is a device that is on PCI: a cuda.Device or cuda.Pager.
type gpu interface{ Bus() string }

var _ gpu = cuda.Pager{}

// printJSON prints a document of what a device has done, with "fake": true if that had a driver without a GPU.
func (f *planFlags) printJSON(out io.Writer, document any) error {
	if f.fake {
		document = faked{document}
	}
	return printJSON(out, document)
}

// faked is a document, an object, which says that no GPU was used.
type faked struct{ document any }

func (d faked) MarshalJSON() ([]byte, error) {
	content, err := json.Marshal(d.document)
	if err != nil {
		return nil, err
	}
	return append([]byte(`{"fake":true,`), content[1:]...), nil
}

// notReal says below a table that no GPU was used, if so.
func (f *planFlags) notReal(out io.Writer) error {
	if !f.fake {
		return nil
	}
	_, err := fmt.Fprintln(out, "fake: no GPU was used; kernels are executed by an interpreter, in virtual time")
	return err
}
