package lean

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// fields steps over the fields of one protobuf message:
//
//	for f := over(b); f.next(); {
//		switch f.num { case 1: name = f.bytes() }
//	}
//	return f.err
//
// Fields that nobody asks for are stepped over without a look inside.
type fields struct {
	rest []byte
	num  protowire.Number
	typ  protowire.Type
	val  []byte // of a length-delimited field
	n    uint64 // of a varint
	err  error
}

func over(b []byte) *fields { return &fields{rest: b} }

func (f *fields) next() bool {
	if f.err != nil || len(f.rest) == 0 {
		return false
	}
	num, typ, n := protowire.ConsumeTag(f.rest)
	if n < 0 {
		return f.fail(protowire.ParseError(n))
	}
	f.num, f.typ, f.rest = num, typ, f.rest[n:]
	switch typ {
	case protowire.BytesType:
		f.val, n = protowire.ConsumeBytes(f.rest)
	case protowire.VarintType:
		f.n, n = protowire.ConsumeVarint(f.rest)
	default:
		n = protowire.ConsumeFieldValue(num, typ, f.rest)
	}
	if n < 0 {
		return f.fail(fmt.Errorf("field %d: %w", num, protowire.ParseError(n)))
	}
	f.rest = f.rest[n:]
	return true
}

func (f *fields) fail(err error) bool {
	if f.err == nil {
		f.err = err
	}
	return false
}

var errWireType = errors.New("unexpected wire type")

// bytes returns the value of a length-delimited field, never nil.
func (f *fields) bytes() []byte {
	if f.typ != protowire.BytesType {
		f.fail(fmt.Errorf("field %d: %w", f.num, errWireType))
		return nil
	}
	return f.val
}

// varint returns the value of a varint field.
func (f *fields) varint() uint64 {
	if f.typ != protowire.VarintType {
		f.fail(fmt.Errorf("field %d: %w", f.num, errWireType))
		return 0
	}
	return f.n
}

// within decodes an embedded message; its error becomes the walk's.
func (f *fields) within(decode func(b []byte) error) {
	if b := f.bytes(); f.err == nil {
		if err := decode(b); err != nil {
			f.fail(fmt.Errorf("field %d: %w", f.num, err))
		}
	}
}

// Field numbers of ObjectMeta (k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto).
const (
	metaName              = 1
	metaNamespace         = 3
	metaResourceVersion   = 6
	metaDeletionTimestamp = 9
	metaLabels            = 11
	metaAnnotations       = 12
)

func (m *Meta) proto(b []byte) error {
	f := over(b)
	for f.next() {
		switch f.num {
		case metaName:
			m.Name = f.bytes()
		case metaNamespace:
			m.Namespace = f.bytes()
		case metaResourceVersion:
			m.ResourceVersion = f.bytes()
		case metaDeletionTimestamp:
			m.Deleting = true
		case metaLabels:
			m.Labels = appendPair(m.Labels, f)
		case metaAnnotations:
			m.Annotations = appendPair(m.Annotations, f)
		}
	}
	return f.err
}

// appendPair appends the map entry that f stands at: key = 1, value = 2.
func appendPair(to []Pair, f *fields) []Pair {
	p := Pair{Value: []byte{}}
	e := over(f.bytes())
	for e.next() {
		switch e.num {
		case 1:
			p.Key = e.bytes()
		case 2:
			p.Value = e.bytes()
		}
	}
	if e.err != nil {
		f.fail(fmt.Errorf("map entry: %w", e.err))
		return to
	}
	return append(to, p)
}

// appendPort appends a port: in services and in slices name = 1, protocol = 2, port = 3.
func appendPort(to []Port, f *fields) []Port {
	p := Port{Number: NoPort}
	e := over(f.bytes())
	for e.next() {
		switch e.num {
		case 1:
			p.Name = e.bytes()
		case 2:
			p.Protocol = e.bytes()
		case 3:
			p.Number = int32(e.varint())
		}
	}
	if e.err != nil {
		f.fail(fmt.Errorf("port: %w", e.err))
		return to
	}
	return append(to, p)
}
