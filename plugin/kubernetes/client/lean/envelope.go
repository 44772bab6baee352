package lean

import (
	"bytes"
	"errors"
	"fmt"
)

// Magic stands before every protobuf object that an API server writes
const Magic = "k8s\x00"

var errEnvelope = errors.New("no protobuf envelope")

// Unwrap returns the object in an API server's protobuf envelope: the magic, then
// a runtime.Unknown with the object as field 2 and its kind in field 1.
// Both results point into b.
func Unwrap(b []byte) (kind, object []byte, err error) {
	if !bytes.HasPrefix(b, []byte(Magic)) {
		return nil, nil, errEnvelope
	}
	f := over(b[len(Magic):])
	for f.next() {
		switch f.num {
		case 1: // TypeMeta: apiVersion = 1, kind = 2
			t := over(f.bytes())
			for t.next() {
				if t.num == 2 {
					kind = t.bytes()
				}
			}
			if t.err != nil {
				return nil, nil, fmt.Errorf("envelope: %w", t.err)
			}
		case 2:
			object = f.bytes()
		}
	}
	if f.err != nil {
		return nil, nil, fmt.Errorf("envelope: %w", f.err)
	}
	return kind, object, nil
}

// Event reads one frame of a protobuf watch: a WatchEvent with its type as
// field 1 and in field 2 a RawExtension, whose field 1 is the enveloped object.
// The results point into b.
func Event(b []byte) (typ, enveloped []byte, err error) {
	f := over(b)
	for f.next() {
		switch f.num {
		case 1:
			typ = f.bytes()
		case 2:
			e := over(f.bytes())
			for e.next() {
				if e.num == 1 {
					enveloped = e.bytes()
				}
			}
			if e.err != nil {
				return nil, nil, fmt.Errorf("watch event: %w", e.err)
			}
		}
	}
	if f.err != nil {
		return nil, nil, fmt.Errorf("watch event: %w", f.err)
	}
	return typ, enveloped, nil
}

// ListMeta is what a reader of lists needs of a list's metadata.
type ListMeta struct {
	ResourceVersion string `json:"resourceVersion"`
	// Continue asks for the next page; empty on the last one.
	Continue string `json:"continue"`
}

// Decode reads the metadata of a list: resourceVersion = 2, continue = 3.
func (m *ListMeta) Decode(b []byte) error {
	f := over(b)
	for f.next() {
		switch f.num {
		case 2:
			m.ResourceVersion = string(f.bytes())
		case 3:
			m.Continue = string(f.bytes())
		}
	}
	return f.err
}
