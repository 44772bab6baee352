package dynupdate

import (
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/keyring"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/tsig"

	"github.com/miekg/dns"
)

// TestPasserTells: what is refused before it is passed on is told to the client and in the log, as where the zone is.
func TestPasserTells(t *testing.T) {
	logged := logtest.Capture(t)
	p := &passer{settings: defaults(), findKey: func(string) (keyring.Key, bool) { return keyring.Key{}, false }}
	p.zone, p.passKey.name = "example.org.", "up."
	p.policy.rules = []rule{{key: "web.", name: []byte("\x03www\x07example\x03org\x00"), types: typeSet{types: []uint16{dns.TypeA}}}}
	b := &bed{t: t, h: &tsig.TSIGServer{Zones: []string{"."}, Next: p}, from: "192.0.2.1"}
	for _, tc := range []struct{ key, note, line string }{
		{"web.", "no permission for www.example.org. TXT", "UPDATE example.org. by web. from 192.0.2.1: REFUSED: no permission for www.example.org. TXT"},
		{"other.", "no permission for this key", "UPDATE example.org. by other. from 192.0.2.1: REFUSED: no permission for this key"},
		{"", "no signature", ""},
	} {
		logged.Take()
		b.key = tc.key
		m := newUpdate(t, "up IN www.example.org. 60 TXT no")
		m.SetEdns0(1232, false)
		reply := b.send(m)
		opt := reply.IsEdns0()
		if reply.Rcode != dns.RcodeRefused || opt == nil || len(opt.Option) != 1 {
			t.Errorf("by %q: no extended error: %v", tc.key, reply)
			continue
		}
		if e, ok := opt.Option[0].(*dns.EDNS0_EDE); !ok || e.InfoCode != dns.ExtendedErrorCodeProhibited || e.ExtraText != tc.note {
			t.Errorf("by %q: %v", tc.key, opt)
		}
		if !strings.Contains(logged.String(), tc.line) || tc.line == "" && logged.String() != "" {
			t.Errorf("by %q: logged %q", tc.key, logged)
		}
	}
	p.quiet = true
	logged.Take()
	b.key = "web."
	if b.send(newUpdate(t, "up IN www.example.org. 60 TXT no")); logged.String() != "" {
		t.Errorf("with log off: %s", logged)
	}
}
