package recurse

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"
)

// A stanza of equal text goes on with all that is kept; one of another text with what is known of servers, and of the
// root if the hints are the same; one of another server block with nothing (R53).
func TestSharing(t *testing.T) {
	at := netip.MustParseAddrPort("192.0.2.1:53")
	name := rrset.MustName("www.example.org.")
	made := func(server string, edit func(*settings)) func() *resolver {
		return func() *resolver {
			s := defaults()
			edit(&s)
			return s.resolver(server)
		}
	}
	plain := func(*settings) {}
	first := take("text", made("dns://:53", plain))
	defer give("text")
	now := first.now()
	v := first.conf.Stores.Servers.Get(at, func() any { return first.peerOf(at) })
	v.Replied(7*time.Millisecond, true)
	v.SetLame(name, false, now.After(60))
	first.conf.Stores.RRsets.Put(name, 1, &store.Entry{Rank: store.AnswerData, Set: rrset.New(name, 1, 60, "\x01\x02\x03\x04"), TTL: 60, Expires: now.After(60)}, now)
	first.conf.Stores.Delegations.Put(&store.Delegation{Zone: rrset.Root, Hosts: first.conf.Hints.Hosts, Expires: now.After(60)}, now)
	for _, c := range []struct {
		text                string
		make                func() *resolver
		rrsets, infra, root bool
	}{
		{"text", made("dns://:53", plain), true, true, true},
		{"text changed", made("dns://:53", func(s *settings) { s.snoop = true }), false, true, true},
		{"other hints", made("dns://:53", func(s *settings) {
			s.hints = &store.Delegation{Zone: rrset.Root, Fixed: true, Hosts: []store.Host{{Name: name, Addrs: []netip.Addr{at.Addr()}}}}
		}), false, true, false},
		{"other block", made("dns://:54", plain), false, false, false},
	} {
		r := take(c.text, c.make)
		s := r.conf.Stores
		if kept := s.RRsets.Get(name, 1, now) != nil; kept != c.rrsets {
			t.Errorf("%s: the answer is kept: %v", c.text, kept)
		}
		v := s.Servers.Get(at, func() any { return r.peerOf(at) })
		lame, _ := v.Lame(name, now)
		if known := v.RTT() == 7*time.Millisecond && lame; known != c.infra {
			t.Errorf("%s: the server is known: %v", c.text, known)
		}
		if r != first && v.Peer == first.conf.Stores.Servers.Get(at, nil).Peer {
			t.Errorf("%s: two resolvers share a server's connections", c.text)
		}
		if root := s.Delegations.Get(rrset.Root, now) != nil; root != c.root {
			t.Errorf("%s: the root is known: %v", c.text, root)
		}
		give(c.text)
	}
}

// A byte order mark before hints is no part of their first name.
func TestMarkedHints(t *testing.T) {
	file := filepath.Join(t.TempDir(), "root.hints")
	if err := os.WriteFile(file, []byte("\uFEFF. 60 IN NS a.example.org.\r\na.example.org. 60 IN A 192.0.2.1\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if d, err := readHints(file); err != nil || len(d.Hosts) != 1 || len(d.Hosts[0].Addrs) != 1 {
		t.Errorf("got %+v, %v", d, err)
	}
}

// Hints that were changed in place make a stanza another one, though its text is as it was.
func TestChangedHints(t *testing.T) {
	file := filepath.Join(t.TempDir(), "root.hints")
	identity := func(address string) string {
		t.Helper()
		if err := os.WriteFile(file, []byte(". 60 IN NS a.example.org.\na.example.org. 60 IN A "+address+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		s := defaults()
		var err error
		if s.hints, err = readHints(file); err != nil {
			t.Fatal(err)
		}
		return s.identity("recurse {hints " + file + "}")
	}
	one, same, other := identity("192.0.2.1"), identity("192.0.2.1"), identity("192.0.2.2")
	if one != same || one == other {
		t.Errorf("%q, %q, %q", one, same, other)
	}
	if s := defaults(); s.identity("recurse") == one {
		t.Error("the built-in hints count as others")
	}
}
