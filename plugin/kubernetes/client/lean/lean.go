// Package lean reads of a Kubernetes object only what DNS needs.
//
//	bytes of one object ──Decode──▶ Service, EndpointSlice, Pod, Namespace, ServiceImport
//	                                (protobuf or JSON; everything else is stepped over)
//
// A typed object of k8s.io/api costs several kilobytes and a hundred allocations; these
// cost none when a value is used again. The values borrow: a []byte in them
// points into the bytes that were decoded and is good for as long as those are.
// Decode first forgets what the value held. Nothing here is safe for concurrent use.
//
// The package knows nothing of requests, streams or stores. Start at Object; proto.go
// is the walk over protobuf fields, json.go the JSON forms.
package lean

import (
	"bytes"
	"net/netip"
	"unsafe"
)

// Object is a kind of which DNS needs something.
type Object interface {
	// Decode reads one object: with the encoding Protobuf the message without the
	// API's envelope (see Unwrap), with JSON the JSON object.
	Decode(b []byte, e Encoding) error
	// Metadata returns the object's metadata, good until the next Decode.
	Metadata() *Meta
}

// Encoding says how an object is written.
type Encoding uint8

// The encodings that API servers speak.
const (
	Protobuf Encoding = iota
	JSON
)

// Meta is what is used of an object's metadata.
type Meta struct {
	Name, Namespace []byte
	// ResourceVersion orders the states of one resource; an API may leave it out.
	ResourceVersion []byte
	// Deleting is set once the object's deletion has begun (deletionTimestamp).
	Deleting            bool
	Labels, Annotations []Pair
}

// Pair is one label or annotation.
type Pair struct{ Key, Value []byte }

func (m *Meta) reset() {
	*m = Meta{Labels: m.Labels[:0], Annotations: m.Annotations[:0]}
}

// Label returns the value of the label key, or nil.
func (m *Meta) Label(key string) []byte { return find(m.Labels, key) }

// Annotation returns the value of the annotation key, or nil.
func (m *Meta) Annotation(key string) []byte { return find(m.Annotations, key) }

func find(pairs []Pair, key string) []byte {
	for i := range pairs {
		if string(pairs[i].Key) == key {
			return pairs[i].Value
		}
	}
	return nil
}

// Port is a port of a service or an endpoint slice.
type Port struct {
	Name, Protocol []byte // as written, like "http" and "TCP"
	Number         int32  // NoPort where a slice's port gives none
}

// NoPort is the number of a port without a number.
const NoPort = -1

// Addr reads an IP address. Of what is no address, and of the zone of a scoped
// one, nothing is kept; IPv4 written in IPv6 becomes IPv4.
func Addr(b []byte) (netip.Addr, bool) {
	if len(b) == 0 || len(b) > 45 { // longest: IPv6 with IPv4 at its end, RFC 4291 §2.2
		return netip.Addr{}, false
	}
	// The string lives only for this call: ParseAddr keeps no part of it but in
	// its error, which is dropped, and in a zone, which it copies.
	a, err := netip.ParseAddr(unsafe.String(&b[0], len(b)))
	if err != nil {
		return netip.Addr{}, false
	}
	return a.Unmap().WithZone(""), true
}

// appendAddr appends the address in b, if it is one.
func appendAddr(to []netip.Addr, b []byte) []netip.Addr {
	if a, ok := Addr(b); ok {
		to = append(to, a)
	}
	return to
}

var none = []byte("None") // a headless service's cluster IP

func isNone(b []byte) bool { return bytes.Equal(b, none) }
