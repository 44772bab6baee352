package wire

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

const manyAddresses = 1200 // which take 68 octets each with their owner in full, and 16 with a pointer

// manyOf adds as many addresses of one name, which is not the question's, and returns the lines that they are read as.
func manyOf(t *testing.T, w *Reply, owner string) []string {
	t.Helper()
	var want []string
	name := MustName(owner)
	for i := range manyAddresses {
		a := netip.AddrFrom4([4]byte{192, 0, byte(i >> 8), byte(i)})
		if !w.Addr(Answer, name, 60, a) {
			t.Fatalf("there is no room for address %d", i)
		}
		want = append(want, fmt.Sprintf("%s 60 IN A %s", owner, a))
	}
	slices.Sort(want)
	return want
}

func sortedLines(rrs []dns.RR) []string {
	l := strings.Split(strings.TrimSpace(lines(rrs)), "\n")
	slices.Sort(l)
	return l
}

// Addresses that fit into a message with pointers for their owners are all in it, though they may change places (RFC
// 1035 §4.1.4): over TCP there is no other way to get them. Their owners stay right when they do, also when the reply was
// put away before.
func TestManyAddressesFit(t *testing.T) {
	const owner = "addresses-of-a-service.in-some-namespace.example.net."
	q := query(t, "www.example.org.", TypeA, 1232)
	reverse := make([]uint16, manyAddresses)
	for i := range reverse {
		reverse[i] = uint16(manyAddresses - 1 - i)
	}
	var w, loaded, copied Reply
	w.Reset(nil)
	w.Begin(q)
	want := manyOf(t, &w, owner)
	if n := len(w.Bytes()); n < longMessage || n > MaxMessage {
		t.Fatalf("the message has %d octets", n)
	}
	packed, clone := w.Pack(), w.Copied()
	loaded.Reset(nil)
	loaded.Load(&packed, q)
	copied.Reset(nil)
	copied.Begin(q)
	copied.Paste(&clone)
	for what, w := range map[string]*Reply{"built": &w, "put away": &loaded, "copied": &copied} {
		for _, turn := range []string{"as it was", "in reverse", "back again"} {
			if turn != "as it was" {
				w.Reorder(reverse)
			}
			m := unpack(t, w.Message(q))
			if got := sortedLines(m.Answer); !slices.Equal(got, want) || m.Truncated {
				t.Errorf("%s, %s: %d records, TC %v", what, turn, len(got), m.Truncated)
			}
			first := "192.0.0.0"
			if turn == "in reverse" {
				first = "192.0.4.175"
			}
			if a := m.Answer[0].(*dns.A).A.String(); a != first {
				t.Errorf("%s, %s: the first address is %s, want %s", what, turn, a, first)
			}
		}
	}
}

// What a long reply needs, a short one does not get: its addresses change places without being written anew, and cut to
// a client's size it is as short as can be.
func TestShortRepliesAreNotAnchored(t *testing.T) {
	const owner = "addresses-of-a-service.in-some-namespace.example.net."
	q := query(t, "www.example.org.", TypeA, 1232)
	var w Reply
	w.Reset(nil)
	w.Begin(q)
	for !w.Anchors(TypeA) {
		if len(w.Bytes()) > longMessage {
			t.Fatalf("no anchor after %d octets", len(w.Bytes()))
		}
		w.Addr(Answer, MustName(owner), 60, netip.MustParseAddr("192.0.2.1"))
		if !w.Anchors(TypeTXT) {
			t.Fatal("names may not point to records that stay where they are")
		}
	}
	if len(w.Bytes()) <= longMessage {
		t.Errorf("names point to addresses after %d octets", len(w.Bytes()))
	}
	manyOf(t, &w, owner)
	const limit = 1232
	m := unpack(t, w.End(End{Limit: limit}))
	if most := (limit - 12 - len("\x03www\x07example\x03org\x00\x00\x01\x00\x01") - len(owner)) / 16; !m.Truncated || len(m.Answer) < most {
		t.Errorf("%d addresses in %d octets, TC %v; want %d", len(m.Answer), limit, m.Truncated, most)
	}
}
