package wiretest

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// Ordinary is a reply as long as the hostile ones that anybody might send: addresses at an alias' end.
func Ordinary() Reply {
	m := begin(example)
	m.record(wire.Answer, question, wire.TypeCNAME, wire.MustName("host.example.net."))
	host := pointer(len(m.b) - len("\x04host\x07example\x03net\x00"))
	return m.fill(wire.Answer, wire.TypeA, func(i int) ([]byte, []byte) {
		return host, []byte{10, byte(i >> 16), byte(i >> 8), byte(i)}
	}).reply("ordinary")
}

// Hostile is replies that are made to be dear.
func Hostile() []Reply {
	return slices.Concat(pointers(), aliases(), []Reply{
		roots(), unknown(), suffixes(), sameHash(), options(), optFirst(), optRepeated(), services(), bitmaps(), strings(), questions(), hosts(), signers(),
	})
}

// pointers is names of many pointers.
func pointers() []Reply {
	// One name after the other that is a label and a pointer to the one before, as deep as a name may be.
	deep := begin([]byte{0})
	last := wire.HeaderLen
	for range 125 {
		at := len(deep.b)
		deep.record(wire.Answer, append([]byte{1, 'a'}, pointer(last)...), wire.TypeA, []byte{10, 0, 0, 1})
		last = at
	}
	deep.fill(wire.Answer, wire.TypeCNAME, func(int) ([]byte, []byte) { return pointer(last), pointer(last) })

	// RDATA that nobody reads as names, of pointers each to the one before, and aliases by its end.
	chain := func(name string, hops int) Reply {
		m := begin(example)
		rdata := []byte{1, 0, 3, 8}
		at := len(m.b) + 2 + 10
		to := wire.HeaderLen
		for range hops {
			here := at + len(rdata)
			rdata = append(rdata, pointer(to)...)
			to = here
		}
		m.record(wire.Answer, question, dns.TypeDNSKEY, rdata)
		return m.fill(wire.Answer, wire.TypeCNAME, func(int) ([]byte, []byte) { return pointer(to), pointer(to) }).reply(name)
	}
	return []Reply{deep.reply("labels and pointers"), chain("pointers to pointers", 8000), chain("126 pointers", 125)}
}

// aliases is one long chain of CNAMEs, in several orders.
func aliases() []Reply {
	const n = 3200
	order := func(name string, place func(i int) int) Reply {
		m := begin(example)
		return m.fill(wire.Answer, wire.TypeCNAME, func(i int) (owner, target []byte) {
			if i == n {
				return nil, nil
			}
			if i = place(i); i == 0 {
				return question, append(number(0), 0)
			}
			return append(number(i-1), 0), append(number(i), 0)
		}).reply(name)
	}
	shuffled := rand.New(rand.NewPCG(1, 2)).Perm(n)
	return []Reply{
		order("aliases forward", func(i int) int { return i }),
		order("aliases backward", func(i int) int { return n - 1 - i }),
		order("aliases shuffled", func(i int) int { return shuffled[i] }),
	}
}

// roots is as many records as there may be.
func roots() Reply {
	return begin([]byte{0}).fill(wire.Answer, wire.TypeTXT, func(int) ([]byte, []byte) { return []byte{0}, []byte{0} }).reply("root owners")
}

// unknown is records of a type that is known to nobody, without RDATA.
func unknown() Reply {
	return begin([]byte{0}).fill(wire.Answer, 65280, func(int) ([]byte, []byte) { return []byte{0}, []byte{} }).reply("unknown type")
}

// suffixes is names of 127 labels that share all but one of them.
func suffixes() Reply {
	m := begin(append(labels(123), 0))
	return m.fill(wire.Answer, wire.TypeCNAME, func(i int) ([]byte, []byte) {
		return append(number(i), question...), append(number(i+1), question...)
	}).reply("long suffixes")
}

// sameHash is names of many labels whose last ones are the same for a compressor that hashes them with FNV-1a from its
// usual begin.
func sameHash() Reply {
	m := begin(example)
	var at [2]int
	for i, last := range twins() {
		at[i] = len(m.b) + 2 + 10
		m.record(wire.Answer, question, wire.TypeCNAME, slices.Concat(labels(120), last, []byte{0}))
	}
	return m.fill(wire.Answer, wire.TypeCNAME, func(i int) ([]byte, []byte) {
		return pointer(at[1]), pointer(at[1])
	}).reply("one hash")
}

// twins is two labels of one FNV-1a hash.
func twins() [2][]byte {
	// Some 77,000 labels are enough: half of the bits (the birthday paradox).
	seen := map[uint32][]byte{}
	for i := uint64(0); ; i++ {
		label := []byte(fmt.Sprintf("\x08%08x", i))
		h := fnv.New32a()
		h.Write(label)
		if other := seen[h.Sum32()]; other != nil {
			return [2][]byte{other, label}
		}
		seen[h.Sum32()] = label
	}
}

// options is one OPT record full of empty options.
func options() Reply {
	m := begin(example)
	m.record(wire.Answer, question, wire.TypeA, []byte{10, 0, 0, 1})
	m.opt(bytesOf([]byte{0xFD, 0xE9, 0, 0}, 15000))
	return m.reply("options")
}

// opt adds an OPT record.
func (m *maker) opt(options []byte) bool {
	return m.record(wire.Additional, []byte{0}, wire.TypeOPT, options)
}

// bytesOf is b n times.
func bytesOf(b []byte, n int) []byte { return slices.Repeat(b, n) }

// optFirst is an OPT record with a cookie, which is not passed on, before all other records.
func optFirst() Reply {
	m := begin(example)
	m.opt([]byte{0, wire.OptionCookie, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8})
	return m.fill(wire.Additional, wire.TypeCNAME, func(i int) ([]byte, []byte) {
		return append(number(i), question...), append(number(i+1), question...)
	}).reply("OPT first")
}

// optRepeated is nothing but OPT records.
func optRepeated() Reply {
	return begin(example).fill(wire.Additional, wire.TypeOPT, func(int) ([]byte, []byte) { return []byte{0}, []byte{} }).reply("OPT repeated")
}

// services is an HTTPS record with as many parameters as fit.
func services() Reply {
	m := begin(example)
	rdata := []byte{0, 1, 0}
	for key := 9; len(rdata) < 65000; key++ {
		rdata = append(rdata, byte(key>>8), byte(key), 0, 0)
	}
	m.record(wire.Answer, question, dns.TypeHTTPS, rdata)
	return m.reply("SVCB parameters")
}

// bitmaps is NSEC records of all types.
func bitmaps() Reply {
	rdata := []byte{0}
	for window := range 256 {
		rdata = append(append(rdata, byte(window), 32), bytesOf([]byte{0xFF}, 32)...)
	}
	return begin(example).fill(wire.Authority, dns.TypeNSEC, func(int) ([]byte, []byte) { return question, rdata }).reply("NSEC bitmaps")
}

// strings is TXT records of strings of one octet.
func strings() Reply {
	m := begin(example)
	m.record(wire.Answer, question, wire.TypeTXT, bytesOf([]byte{1, 'a'}, 32500))
	return m.reply("TXT strings")
}

// questions is a message with as many questions as fit, of a long name.
func questions() Reply {
	m := begin(longest)
	n := 1
	for ; len(m.b)+6 <= wire.MaxMessage; n++ {
		m.b = append(append(m.b, question...), 0, wire.TypeA, 0, wire.ClassIN)
	}
	binary.BigEndian.PutUint16(m.b[4:], uint16(n))
	return m.reply("questions")
}

// hosts is a HIP record (RFC 8005) whose rendezvous servers are pointers.
func hosts() Reply {
	m := begin(longest)
	rdata := append([]byte{4, 2, 0, 4, 1, 2, 3, 4, 1, 2, 3, 4}, bytesOf(question, 32000)...)
	m.record(wire.Answer, question, dns.TypeHIP, rdata)
	return m.reply("HIP servers")
}

// signers is signatures whose signers are pointers, which miekg/dns follows.
func signers() Reply {
	m := begin(longest)
	rdata := append(make([]byte, 18), question...)
	return m.fill(wire.Answer, wire.TypeRRSIG, func(int) ([]byte, []byte) { return question, rdata }).reply("signers")
}
