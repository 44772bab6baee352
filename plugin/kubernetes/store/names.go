package store

import (
	"hash/maphash"
	"math"
	"math/bits"
	"net/netip"
	"strings"

	"github.com/coredns/coredns/plugin/kubernetes/client/lean"
)

// seed makes hashes differ between processes, so that nobody can choose names that collide.
var seed = maphash.MakeSeed()

// hashName hashes an object's name in its namespace.
func hashName(ns, name []byte) uint64 {
	return mix(maphash.Bytes(seed, ns), maphash.Bytes(seed, name))
}

func hashNameString(ns, name string) uint64 {
	return mix(maphash.String(seed, ns), maphash.String(seed, name))
}

func mix(ns, name uint64) uint64 { return bits.RotateLeft64(ns, 23)*0x9e3779b97f4a7c15 ^ name }

func hashAddr(a netip.Addr) uint64 { return hash16(a.As16()) }

func hash16(a [16]byte) uint64 { return maphash.Bytes(seed, a[:]) }

// Port is a port of a service or of a slice.
type Port struct {
	Name     string // may be empty
	Protocol string // "tcp", "udp" or "sctp"
	Number   int32  // lean.NoPort where a slice's port has none
}

// interner keeps one copy of what many records share: namespaces, and sets of ports.
// A writer has its own. It forgets everything when there is too much of it, which costs nothing
// but later copies: a record keeps what it has.
type interner struct {
	texts map[string]string
	ports map[string][]Port
	key   []byte
}

const maxInterned = 4096

func (in *interner) text(b []byte) string {
	if s, ok := in.texts[string(b)]; ok {
		return s
	}
	if in.texts == nil || len(in.texts) >= maxInterned {
		in.texts = make(map[string]string)
	}
	s := string(b)
	in.texts[s] = s
	return s
}

func (in *interner) portSet(ports []lean.Port) []Port {
	if len(ports) == 0 {
		return nil
	}
	in.key = in.key[:0]
	for _, p := range ports {
		in.key = append(append(append(in.key, p.Name...), 0), p.Protocol...)
		in.key = append(in.key, 0, byte(p.Number>>24), byte(p.Number>>16), byte(p.Number>>8), byte(p.Number))
	}
	if set, ok := in.ports[string(in.key)]; ok {
		return set
	}
	set := make([]Port, len(ports))
	for i, p := range ports {
		if p.Number > math.MaxUint16 { // the API takes such of a slice
			p.Number = lean.NoPort
		}
		set[i] = Port{strings.ToLower(string(p.Name)), strings.ToLower(string(p.Protocol)), p.Number}
	}
	if in.ports == nil || len(in.ports) >= maxInterned {
		in.ports = make(map[string][]Port)
	}
	in.ports[string(in.key)] = set
	return set
}
