package main

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

var testSizes = sizes{smallNames: 40, largeNames: 60, hitNames: 30, services: 70, flatQueries: 300, largeQueries: 300, walks: 30}

// contents is a zone file as name and type to yes; a name alone says that it exists.
func contents(t *testing.T, w workload) map[string]bool {
	t.Helper()
	var text bytes.Buffer
	if err := w.zone(&text); err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	z := dns.NewZoneParser(&text, "", w.name)
	for rr, ok := z.Next(); ok; rr, ok = z.Next() {
		h := rr.Header()
		have[h.Name+" "+dns.TypeToString[h.Rrtype]] = true
		for name := h.Name; name != "."; name = parent(name) {
			have[name] = true
		}
	}
	if err := z.Err(); err != nil {
		t.Fatal(err)
	}
	return have
}

func parent(name string) string {
	if i, end := dns.NextLabel(name, 0); !end {
		return name[i:]
	}
	return "."
}

// TestExpectations compares what queries expect with the zone files and the upstream.
func TestExpectations(t *testing.T) {
	for _, w := range workloads(testSizes) {
		have := map[string]bool{}
		if w.zone != nil {
			have = contents(t, w)
		}
		seen := map[outcome]int{}
		src := w.queries(rand.New(rand.NewPCG(7, 1)))(0, 1, 2)
		for range 300 {
			msg, want := src.next()
			m := new(dns.Msg)
			if err := m.Unpack(msg); err != nil {
				t.Fatalf("%s: %v", w.name, err)
			}
			q := m.Question[0]
			var got outcome
			switch inside := w.origin != "" && dns.IsSubDomain(dns.Fqdn(w.origin), q.Name); {
			case !inside && w.upstreams == 0:
				t.Fatalf("%s asks for %s, which is nobody's", w.name, q.Name)
			case !inside:
				r, _ := readReply(appendAnswer(nil, msg))
				if got = r.outcome; got == answer && m.AuthenticatedData { // asks whether it is secure
					got = secure
				}
			case have[q.Name+" "+dns.TypeToString[q.Qtype]]:
				got = answer
			case have[q.Name]:
				got = noData
			default:
				got = nxDomain
			}
			if got != want || !m.RecursionDesired || m.Id != 0 {
				t.Errorf("%s: %s is answered with outcome %d, not %d", w.name, q.String(), got, want)
			}
			seen[got]++
		}
		if w.origin != "" && (seen[answer] == 0 || seen[noData] == 0 || seen[nxDomain] == 0) {
			t.Errorf("%s: outcomes %v leave some out", w.name, seen)
		}
	}
}

// TestSeed: the same seed gives the same queries, another one others.
func TestSeed(t *testing.T) {
	for _, w := range workloads(testSizes) {
		stream := func(seed uint64) string {
			var b strings.Builder
			src := w.queries(rand.New(rand.NewPCG(seed, 1)))(0, 0, 2)
			for range 200 {
				msg, _ := src.next()
				b.Write(msg)
			}
			return b.String()
		}
		if first, again := stream(1), stream(1); first != again {
			t.Errorf("%s: one seed, two streams", w.name)
		}
		if !strings.Contains(w.name, "-miss") && stream(1) == stream(2) {
			t.Errorf("%s: two seeds, one stream", w.name)
		}
	}
}

func TestFreshNames(t *testing.T) {
	seen := map[string]bool{}
	for round := range 2 {
		for client := range 2 {
			src := newFreshNames(round, client, missZones(2)...)
			for range 100 {
				msg, _ := src.next()
				if seen[string(msg)] {
					t.Fatalf("%q comes twice", msg)
				}
				seen[string(msg)] = true
			}
		}
	}
}

// TestCursors: clients together go through the whole list.
func TestCursors(t *testing.T) {
	l, seen := warmQueries(hitOrigin, 10, rand.New(rand.NewPCG(1, 1))), map[string]bool{}
	for client := range 3 {
		src := l.cursor(client, 3)
		for range 10/3 + 1 {
			msg, _ := src.next()
			seen[string(msg)] = true
		}
	}
	if len(seen) != 10 {
		t.Errorf("%d of 10 queries", len(seen))
	}
}
