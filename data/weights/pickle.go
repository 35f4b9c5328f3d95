package weights

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"strings"

	"tensile/graph"
)

// What a pickle is made of, beside nil, bool, int64, float64 and string.
type (
	global string   // The name of a Python object, as MODULE.NAME.
	thing  struct { // An object of an unknown class, whose content is ignored.
		by     string // The class, as a global.
		tensor bool   // it is a tensor
	}
	tuple []any
	list  struct{} // A list, whose content is never needed.
	dict  struct{ keys, values []any }

	// storage is the file of an archive that tensors are views of.
	storage struct {
		key      string
		kind     Type
		elements int64
	}
	// view is a tensor: elements of a storage from an offset on, with a stride for each dimension, in elements.
	view struct {
		of      storage
		offset  int64
		shape   graph.Shape
		strides []int64
	}
)

// unpickler reads a pickle of the opcodes that torch.save writes of tensors in dicts. It calls nothing: the few globals
// that it knows stand for values of its own, and what all others would make is passed over.
type unpickler struct {
	text  []byte
	at    int
	stack []any
	marks []int // Height of the stack at each mark.
	memo  map[uint32]any
	made  int64 // bytes of what was made and may be kept, beside stack and marks
	most  int64 // bytes of all that, or the pickle is refused
}

// What values take at most, in bytes, with what their growth takes.
const (
	onStack = 48
	onMarks = 24
	inTuple = 32
	inDict  = 96 // key and value
	inMemo  = 96
	boxed   = 64  // what an opcode makes, beside its text and what is in it
	viewed  = 256 // a tensor
)

// keep counts what is made, and returns an error for more than a pickle of this size needs: each byte of a hostile one
// would make many.
func (u *unpickler) keep(bytes int64) error {
	if u.made += bytes; u.made+int64(len(u.stack))*onStack+int64(len(u.marks))*onMarks > u.most {
		return fmt.Errorf("it makes more than %d bytes of a file of this size: save model.state_dict() by torch.save",
			u.most)
	}
	return nil
}

const (
	orderedDict      = "collections.OrderedDict"
	rebuildTensor    = "torch._utils._rebuild_tensor_v2"
	rebuildParameter = "torch._utils._rebuild_parameter"
	rebuildOther     = "torch._utils._rebuild_tensor_v3"
)

// unpickle returns the value of a pickle in a file of a size. It takes a small multiple of that memory.
func unpickle(text []byte, size int64) (any, error) {
	const (
		least    = 16 << 20
		multiple = 4
	)
	u := unpickler{text: text, memo: make(map[uint32]any), most: least + multiple*size}
	for {
		start := u.at
		op, err := u.take(1)
		if err == nil && op[0] == '.' { // STOP
			return u.pop()
		}
		if err == nil {
			err = u.step(op[0])
		}
		if err == nil {
			err = u.keep(0)
		}
		if err != nil {
			return nil, fmt.Errorf("byte %d of its pickle: %w", start, err)
		}
	}
}

// take returns the next n bytes.
func (u *unpickler) take(n int) ([]byte, error) {
	if n < 0 || n > len(u.text)-u.at {
		return nil, fmt.Errorf("the pickle ends too early: save or download the file again")
	}
	u.at += n
	return u.text[u.at-n : u.at], nil
}

// number reads an unsigned number of n bytes, at most 8.
func (u *unpickler) number(bytes int) (uint64, error) {
	text, err := u.take(bytes)
	var whole [8]byte
	copy(whole[:], text)
	return binary.LittleEndian.Uint64(whole[:]), err
}

// line takes the bytes up to the end of a line.
func (u *unpickler) line() (string, error) {
	n := bytes.IndexByte(u.text[u.at:], '\n')
	text, err := u.take(n + 1)
	return strings.TrimSuffix(string(text), "\n"), err
}

func (u *unpickler) push(v any) { u.stack = append(u.stack, v) }

// pop takes a value off the stack, none from below the last mark.
func (u *unpickler) pop() (any, error) {
	floor := 0
	if len(u.marks) > 0 {
		floor = u.marks[len(u.marks)-1]
	}
	if len(u.stack) <= floor {
		return nil, damaged("an operand is missing")
	}
	v := u.stack[len(u.stack)-1]
	u.stack = u.stack[:len(u.stack)-1]
	return v, nil
}

// popMark takes all values above the last mark off the stack, and the mark.
func (u *unpickler) popMark() ([]any, error) {
	if len(u.marks) == 0 {
		return nil, damaged("a mark is missing")
	}
	n := u.marks[len(u.marks)-1]
	u.marks = u.marks[:len(u.marks)-1]
	all := append([]any(nil), u.stack[n:]...)
	u.stack = u.stack[:n]
	return all, nil
}

// popN takes the uppermost n values off the stack.
func (u *unpickler) popN(n int) ([]any, error) {
	all := make([]any, n)
	for i := n - 1; i >= 0; i-- {
		var err error
		if all[i], err = u.pop(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// damaged is the error of a pickle that no program writes.
func damaged(what string) error { return fmt.Errorf("%s: save or download the file again", what) }

// step carries out an opcode.
func (u *unpickler) step(op byte) error {
	switch op {
	case 0x80: // PROTO
		n, err := u.number(1)
		if err == nil && n != 2 && n != 4 {
			err = fmt.Errorf("protocol %d, want 2 or 4: save with torch.save's own pickle_protocol", n)
		}
		return err
	case 0x95: // FRAME
		_, err := u.take(8)
		return err
	case 0x94: // MEMOIZE
		if len(u.stack) == 0 {
			return damaged("an operand is missing")
		}
		u.memo[uint32(len(u.memo))] = u.stack[len(u.stack)-1]
		return u.keep(inMemo)
	case 0x93: // STACK_GLOBAL
		both, err := u.popN(2)
		if err != nil {
			return err
		}
		module, isText := both[0].(string)
		name, areTexts := both[1].(string)
		if !isText || !areTexts {
			return damaged("a global without a name")
		}
		u.push(global(module + "." + name))
		return u.keep(boxed + int64(len(module)+len(name)))
	case '(': // MARK
		u.marks = append(u.marks, len(u.stack))
	case 'q', 'r', 'h', 'j': // BINPUT, LONG_BINPUT, BINGET, LONG_BINGET
		return u.remember(op)
	case 'N': // NONE
		u.push(nil)
	case 0x88, 0x89: // NEWTRUE, NEWFALSE
		u.push(op == 0x88)
	case 'K', 'M', 'J', 0x8a: // BININT1, BININT2, BININT, LONG1
		return u.integer(op)
	case 'B', 'T', 'C', 'U', 0x8b: // BINBYTES, BINSTRING, their short forms, LONG4
		width := 4
		if op == 'C' || op == 'U' {
			width = 1
		}
		n, err := u.number(width)
		if err == nil {
			_, err = u.take(int(n))
		}
		u.push(thing{})
		return err
	case '0': // POP
		_, err := u.pop()
		return err
	case 'G': // BINFLOAT: a learning rate, a loss
		_, err := u.take(8)
		u.push(0.0)
		return err
	case 'X', 0x8c: // BINUNICODE, SHORT_BINUNICODE
		n, err := u.number(map[byte]int{'X': 4, 0x8c: 1}[op])
		if err != nil {
			return err
		}
		text, err := u.take(int(n))
		u.push(string(text))
		return cmp.Or(err, u.keep(boxed+int64(len(text))))
	case ')': // EMPTY_TUPLE
		u.push(tuple(nil))
	case ']': // EMPTY_LIST
		u.push(list{})
	case '}': // EMPTY_DICT
		u.push(&dict{})
		return u.keep(boxed)
	case 't', 0x85, 0x86, 0x87: // TUPLE, TUPLE1, TUPLE2, TUPLE3
		return u.tuple(op)
	case 'a', 'e', 's', 'u': // APPEND, APPENDS, SETITEM, SETITEMS
		return u.fill(op)
	case 'c': // GLOBAL
		return u.global()
	case 'R', 0x81: // REDUCE, NEWOBJ
		return u.call()
	case 'b': // BUILD: attributes, such as the versions of modules
		attributes, err := u.pop()
		if err != nil {
			return err
		}
		to, err := u.pop()
		switch o := to.(type) {
		case *dict, thing:
		case *object:
			o.attributes, _ = attributes.(*dict)
		default:
			err = cmp.Or(err, damaged("attributes of what has none"))
		}
		u.push(to)
		return err
	case 'Q': // BINPERSID
		return u.storage()
	default:
		return fmt.Errorf("opcode 0x%02x is none of a dict of tensors: save model.state_dict() by torch.save", op)
	}
	return nil
}

// remember carries out the opcodes of the memo.
func (u *unpickler) remember(op byte) error {
	width := 1
	if op == 'r' || op == 'j' {
		width = 4
	}
	n, err := u.number(width)
	if err != nil {
		return err
	}
	if op == 'h' || op == 'j' {
		v, found := u.memo[uint32(n)]
		if !found {
			return damaged("it names a value that is not there")
		}
		u.push(v)
		return nil
	}
	v, err := u.pop()
	if err != nil {
		return err
	}
	u.push(v)
	u.memo[uint32(n)] = v
	return u.keep(inMemo)
}

func (u *unpickler) integer(op byte) error {
	width := map[byte]int{'K': 1, 'M': 2, 'J': 4}[op]
	if op == 0x8a {
		n, err := u.number(1)
		if err != nil {
			return err
		}
		if n > 8 { // of a random generator
			_, err := u.take(int(n))
			u.push(thing{})
			return err
		}
		width = int(n)
	}
	n, err := u.number(width)
	v := int64(n)
	if signed := op == 'J' || op == 0x8a; signed && width > 0 {
		unused := 64 - 8*width
		v = v << unused >> unused
	}
	u.push(v)
	return err
}

func (u *unpickler) tuple(op byte) error {
	var all []any
	var err error
	if op == 't' {
		all, err = u.popMark()
	} else {
		all, err = u.popN(int(op-0x85) + 1)
	}
	u.push(tuple(all))
	return cmp.Or(err, u.keep(boxed+int64(len(all))*inTuple))
}

// fill puts values into a list or a dict.
func (u *unpickler) fill(op byte) error {
	var all []any
	var err error
	switch op {
	case 'a':
		all, err = u.popN(1)
	case 's':
		all, err = u.popN(2)
	default:
		all, err = u.popMark()
	}
	if err != nil {
		return err
	}
	to, err := u.pop()
	if err != nil {
		return err
	}
	u.push(to)
	_, isThing := to.(thing)
	switch d, isDict := to.(*dict); {
	case isThing:
	case op == 'a' || op == 'e':
		if _, is := to.(list); !is {
			return damaged("elements of what is no list")
		}
	case !isDict || len(all)%2 != 0:
		return damaged("items of what is no dict")
	default:
		for i := 0; i < len(all); i += 2 {
			d.keys, d.values = append(d.keys, all[i]), append(d.values, all[i+1])
		}
		return u.keep(int64(len(all)/2) * inDict)
	}
	return nil
}

func (u *unpickler) global() error {
	module, err := u.line()
	if err != nil {
		return err
	}
	name, err := u.line()
	if err != nil {
		return err
	}
	u.push(global(module + "." + name))
	return u.keep(boxed + int64(len(module)+len(name)))
}

// storage has a description of a storage stand for it.
func (u *unpickler) storage() error {
	v, err := u.pop()
	if err != nil {
		return err
	}
	d, _ := v.(tuple)
	if len(d) != 5 || d[0] != "storage" {
		return damaged("no description of a storage")
	}
	name, isGlobal := d[1].(global)
	key, isText := d[2].(string)
	n, isNumber := d[4].(int64)
	of, known := storages[string(name)]
	if !isGlobal || !isText || !isNumber || n < 0 {
		return damaged("no description of a storage")
	}
	if !known {
		u.push(thing{string(name), true})
		return u.keep(boxed)
	}
	u.push(storage{key, of, n})
	return u.keep(boxed)
}

// call has what a known global makes of its arguments stand for them.
func (u *unpickler) call() error {
	both, err := u.popN(2)
	if err != nil {
		return err
	}
	f, isGlobal := both[0].(global)
	args, isTuple := both[1].(tuple)
	if made, is := both[0].(thing); is && isTuple { // what was called for the function
		u.push(thing{by: made.by})
		return u.keep(boxed)
	}
	if !isGlobal || !isTuple {
		return damaged("a call of what is no function")
	}
	if len(args) > 0 && (f == rebuildParameter || f == rebuildTensor) {
		if made, is := args[0].(thing); is { // elements of another type
			u.push(thing{made.by, true})
			return u.keep(boxed)
		}
	}
	switch {
	case f == "torch.Size" && len(args) == 1:
		u.push(args[0])
		return nil
	case strings.HasPrefix(string(f), "torch.distributed.checkpoint.") && len(args) == 0:
		u.push(&object{})
		return u.keep(boxed)
	case f == rebuildOther && len(args) >= 7: // elements of another type
		kind, _ := args[6].(global)
		u.push(thing{string(kind), true})
		return u.keep(boxed)
	case f == orderedDict && len(args) == 0:
		u.push(&dict{})
		return u.keep(boxed)
	case f == rebuildParameter && len(args) == 3:
		if v, is := args[0].(view); is {
			u.push(v)
			return nil
		}
	case f == rebuildTensor && (len(args) == 6 || len(args) == 7):
		v, err := newView(args)
		u.push(v)
		return cmp.Or(err, u.keep(viewed+int64(len(v.shape))*inTuple))
	case f != orderedDict && f != rebuildParameter && f != rebuildTensor:
		u.push(thing{string(f), strings.HasPrefix(string(f), "torch.") && strings.Contains(string(f), "._rebuild_")})
		return u.keep(boxed)
	}
	return damaged(fmt.Sprintf("a call of %s with other arguments than torch's", quote(string(f))))
}

// newView returns the tensor of the arguments of torch's function and checks that it lies within its storage.
func newView(args tuple) (view, error) {
	of, is := args[0].(storage)
	offset, isNumber := args[1].(int64)
	shape, isShape := numbersOf(args[2])
	strides, areStrides := numbersOf(args[3])
	if !is || !isNumber || !isShape || !areStrides || offset < 0 || len(shape) != len(strides) {
		return view{}, damaged("no description of a tensor")
	}
	v := view{of: of, offset: offset, shape: make(graph.Shape, len(shape)), strides: strides}
	for i, extent := range shape {
		v.shape[i] = int(extent)
	}
	elements, err := count(v.shape)
	if err != nil {
		return view{}, err
	}
	if elements == 0 {
		return v, nil
	}
	last, outside := offset, elements > of.elements || offset >= of.elements
	for i, extent := range shape {
		if extent > 1 && strides[i] > 0 && !outside {
			outside = extent-1 > (of.elements-1-last)/strides[i]
			last += (extent - 1) * strides[i]
		}
	}
	if outside {
		return view{}, fmt.Errorf("a tensor of shape %v reaches beyond its storage of %d elements: save a contiguous "+
			"copy of it", v.shape, of.elements)
	}
	return v, nil
}

// numbersOf returns the numbers of a tuple, none of them negative.
func numbersOf(v any) ([]int64, bool) {
	all, is := v.(tuple)
	numbers := make([]int64, len(all))
	for i, x := range all {
		n, isNumber := x.(int64)
		if !isNumber || n < 0 {
			return nil, false
		}
		numbers[i] = n
	}
	return numbers, is
}
