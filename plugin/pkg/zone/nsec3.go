package zone

import (
	"crypto/sha1"
	"encoding/base32"

	"github.com/coredns/coredns/plugin/pkg/wire"
)

// Denial of existence by hashed names (RFC 5155). The owners of NSEC3 records are hashes; in base32hex they
// have the order of the hashes, so that they are in a chain as NSEC records are.

// hashed is the NSEC3 records of a zone.
type hashed struct {
	chain      chain
	tree       *branch // in place of chain, if the zone is growing; nil if there are no parameters
	params     []byte  // the data of the NSEC3PARAM record
	iterations int
	salt       []byte
	hidden     []uint32 // nodes that are not in the index, as there is nothing else at them
}

// maxIterations is how often a name may be hashed at most. RFC 9276 §3.1 wants no repetition at
// all; with many, each query for a name that does not exist takes long, and resolvers ignore the proof.
const maxIterations = 150

// hashed is the NSEC3 records that belong to the parameters at the apex (RFC 5155 §4). It has no chain if
// there are none, or if they are of no use.
func (b *Builder) hashed(z *Zone, places, hidden []uint32) *hashed {
	h := &hashed{hidden: hidden}
	params, ok := parameters(z, b.warn)
	if !ok {
		b.warn("zone %s has NSEC3 records, but no usable NSEC3PARAM record: denials are not proved", wire.Text(b.origin))
		return h
	}
	h.use(params)
	own := places[:0:0]
	for _, p := range places {
		n := z.at(p)
		if prefix := n.prefix(); len(prefix) == 1+hashLabelLen && matchesParameters(n.Set(typeNSEC3).Records().Data(), params) {
			own = append(own, p)
		}
	}
	if len(own) > 0 {
		h.chain = newChain(z, own)
	}
	return h
}

// use takes parameters, the data of an NSEC3PARAM record (RFC 5155 §4.2).
func (h *hashed) use(params []byte) {
	h.params, h.iterations, h.salt = params, int(u16(params[2:])), params[5:5+int(params[4])]
}

// usable reports whether there is a chain.
func (h *hashed) usable() bool { return h.tree != nil || len(h.chain.keys) > 0 }

// before is the last node of the chain that is not behind an owner, and whether it is the owner's own. nil is the end
// of the chain.
func (h *hashed) before(z *Zone, prefix []byte) (n Node, exact bool) {
	switch {
	case h.tree != nil:
		return h.beforeHash(z, prefix)
	case prefix == nil:
		return h.chain.last(z), false
	}
	return h.chain.before(z, prefix)
}

// parameters is the RDATA of the first NSEC3PARAM record that can be used: SHA-1, no flags, and not
// too many iterations.
func parameters(z *Zone, warn func(string, ...any)) ([]byte, bool) {
	for r := z.apex.Set(typeNSEC3PARAM).Records(); len(r) > 0; r = r.Next() {
		p := r.Data()
		if len(p) < 5 || len(p) < 5+int(p[4]) || p[0] != 1 || p[1] != 0 {
			continue
		}
		if n := u16(p[2:]); n > maxIterations {
			warn("NSEC3PARAM record of zone %s asks for %d iterations, at most %d are done", wire.Text(z.origin), n, maxIterations)
			continue
		}
		return p, true
	}
	return nil, false
}

// matchesParameters compares algorithm, iterations and salt of an NSEC3 record with parameters.
func matchesParameters(nsec3, params []byte) bool {
	n := 5 + int(params[4])
	return len(nsec3) > n && nsec3[0] == params[0] && string(nsec3[2:n]) == string(params[2:n])
}

// hashLabelLen is the octets of a hash in base32hex, without padding.
const hashLabelLen = sha1.Size * 8 / 5

var hashEncoding = base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").WithPadding(base32.NoPadding)

// hashLabel is a hash of a name as a label (RFC 5155 §5).
type hashLabel [1 + hashLabelLen]byte

// label is a lower name's hash.
func (h *hashed) label(name []byte) (l hashLabel) {
	var buf [wire.MaxName + 256]byte
	in := append(append(buf[:0], name...), h.salt...)
	sum := sha1.Sum(in)
	for range h.iterations {
		in = append(append(buf[:0], sum[:]...), h.salt...)
		sum = sha1.Sum(in)
	}
	l[0] = hashLabelLen
	hashEncoding.Encode(l[1:], sum[:])
	return l
}

// match is the NSEC3 record of a name, if it has one.
func (h *hashed) match(z *Zone, name []byte) (Node, bool) {
	l := h.label(name)
	n, exact := h.before(z, l[:])
	return n, exact
}

// cover is the NSEC3 record that shows that a name has none. Behind the last one the chain begins again.
func (h *hashed) cover(z *Zone, name []byte) Node {
	l := h.label(name)
	n, _ := h.before(z, l[:])
	if n == nil {
		n, _ = h.before(z, nil)
	}
	return n
}
