package control

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"net/netip"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// top is what came most often. It belongs to one goroutine at a time.
type top struct {
	names, missing *sketch // of all queries, and of those with NXDOMAIN
	clients        *sketch
	types          map[uint16]*uint64 // those of 64 and more; bounded by mostTypes
	common         [64]uint64         // types below 64
	rcodes         [noReply + 1]uint64
	queries        uint64
}

// noReply stands among return codes for queries that got no reply, on purpose.
const noReply = 24

// Sizes of a top's sketches. A key of names is a name in wire form, the end of it if it is longer.
const (
	keptNames   = 4096
	keptClients = 8192
	nameRoom    = 80
	clientRoom  = 17
	mostTypes   = 256
)

func newTop() *top {
	return &top{
		names: newSketch(keptNames, nameRoom), missing: newSketch(keptNames, nameRoom),
		clients: newSketch(keptClients, clientRoom), types: map[uint16]*uint64{},
	}
}

// size is the octets of memory that t takes at most.
func (t *top) size() int { return t.names.size() + t.missing.size() + t.clients.size() + mostTypes*64 }

// note counts a query: its lower name in wire form with the hash, who asked for what, and the reply's return code.
func (t *top) note(name []byte, hash uint64, client [16]byte, qtype uint16, rcode int) {
	t.queries++
	t.names.add(hash, name)
	if rcode == dns.RcodeNameError {
		t.missing.add(hash, name)
	}
	t.client(client)
	if int(qtype) < len(t.common) {
		t.common[qtype]++
	} else {
		t.rare(qtype)
	}
	if rcode < len(t.rcodes) {
		t.rcodes[rcode]++
	}
}

// client counts who asked. Its hash is a mix of the address that nobody outside can foretell.
func (t *top) client(b [16]byte) {
	hi, lo := binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:])
	h, l := bits.Mul64(hi^clientSeed[0], lo^clientSeed[1])
	h ^= l
	h = (h ^ h>>29) * 0x9E3779B97F4A7C15
	t.clients.add(h^h>>32, b[:])
}

// rare counts a type that is not common.
func (t *top) rare(qtype uint16) {
	n := t.types[qtype]
	if n == nil {
		if len(t.types) >= mostTypes {
			return
		}
		n = new(uint64)
		t.types[qtype] = n
	}
	*n++
}

// reset forgets all.
func (t *top) reset() {
	t.names.reset()
	t.missing.reset()
	t.clients.reset()
	clear(t.types)
	t.common, t.rcodes, t.queries = [64]uint64{}, [noReply + 1]uint64{}, 0
}

// clientSeed makes the hashes of addresses differ from process to process.
var clientSeed = [2]uint64{rand.Uint64() | 1, rand.Uint64() | 1}

// nameOf shows a key of names. One that was cut begins in the middle of a name.
func nameOf(key string) string {
	b := []byte(key)
	if n := wire.NameLen(b); n != len(b) {
		for i := range b { // the first place at which a whole name begins
			if wire.NameLen(b[i:]) == len(b)-i {
				return "…" + wire.Text(b[i:])
			}
		}
	}
	return wire.Text(b)
}

// addressOf shows a key of clients.
func addressOf(key string) string {
	if len(key) != 16 {
		return key
	}
	return netip.AddrFrom16([16]byte([]byte(key))).Unmap().String()
}
