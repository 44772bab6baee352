package hosts

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/readahead"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

var (
	_ readahead.Table    = Hosts{}
	_ plugin.WireHandler = Hosts{}
)

// TestReadAhead: what is read ahead is what a search finds, unless another name has the same bits of its hash.
func TestReadAhead(t *testing.T) {
	const names = 60_000
	var text strings.Builder
	for i := range names {
		fmt.Fprintf(&text, "10.%d.%d.%d n%d.example.org\n2001:db8::%x n%d.example.org\n", i>>16, i>>8&255, i&255, i, i+1, i)
	}
	h := Hosts{Hostsfile: &Hostsfile{}}
	if h.Large() {
		t.Error("without names it is large")
	}
	h.file.Store(made(t, text.String(), nil))
	if !h.Large() {
		t.Fatal("it is not large")
	}
	others := 0
	for i := range names {
		name := wire.MustName(fmt.Sprintf("n%d.example.org.", i))
		for _, is6 := range []bool{false, true} {
			e := h.file.Load().candidate(wire.Hash(name), is6)
			if e == nil {
				t.Fatalf("n%d, %t: nothing", i, is6)
			}
			if !e.named(name, is6) {
				others++
			}
		}
	}
	if others > names/50 {
		t.Errorf("%d of %d are of other names", others, 2*names)
	}
	// It has no effect, whatever is asked.
	for _, typ := range []uint16{dns.TypeA, dns.TypeAAAA, dns.TypePTR, dns.TypeTXT} {
		for _, name := range []string{"n1.example.org.", "nobody.example.org.", "."} {
			q := new(wire.Query)
			q.SetMsg(new(dns.Msg).SetQuestion(name, typ), wire.Peer{})
			for left := readahead.First; left > 0; left-- {
				h.ReadAhead(q, left, nil)
				(Hosts{Hostsfile: &Hostsfile{}}).ReadAhead(q, left, nil)
			}
		}
	}
}
