package dynupdate

import (
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/keyring"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/updates"
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

// TestPassedOnAgain: a client that did not get the answer sends its message again. What is passed on, signed anew, is
// the same message for the primary then, too, which makes the update once; also after a reload.
func TestPassedOnAgain(t *testing.T) {
	logtest.Capture(t)
	const secret = "c2VjcmV0LW9mLXRoZS10ZXN0"
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var came []string
	primary := &dns.Server{PacketConn: conn, TsigSecret: map[string]string{"up.": secret}, MsgAcceptFunc: func(dns.Header) dns.MsgAcceptAction { return dns.MsgAccept },
		Handler: dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
			if w.TsigStatus() != nil {
				return
			}
			mu.Lock()
			came = append(came, r.IsTsig().MAC)
			mu.Unlock()
			m := new(dns.Msg).SetReply(r)
			m.SetTsig("up.", dns.HmacSHA256, 300, time.Now().Unix())
			w.WriteMsg(m)
		})}
	var ended sync.WaitGroup
	started := make(chan struct{})
	primary.NotifyStartedFunc = func() { close(started) }
	ended.Go(func() { primary.ActivateAndServe() })
	<-started
	t.Cleanup(func() {
		primary.Shutdown()
		ended.Wait()
	})
	b := &bed{t: t, key: "web.", from: "192.0.2.1"}
	restart := func() {
		p := &passer{settings: defaults(), to: updates.Forwarder{Servers: []string{conn.LocalAddr().String()}},
			findKey: func(string) (keyring.Key, bool) { return keyring.Key{Secret: secret}, true }}
		p.zone, p.passKey.name = "example.org.", "up."
		p.policy.rules = []rule{{key: "web.", name: []byte("\x03www\x07example\x03org\x00"), types: typeSet{all: true}}}
		b.h = &tsig.TSIGServer{Zones: []string{"."}, Next: p}
	}
	restart()
	m := newUpdate(t, "up IN www.example.org. 60 TXT a")
	send := func(m *dns.Msg) {
		t.Helper()
		if reply := b.send(m); reply.Rcode != dns.RcodeSuccess {
			t.Fatal(reply)
		}
	}
	send(m)
	send(newUpdate(t, "up IN www.example.org. 60 TXT b"))
	time.Sleep(1100 * time.Millisecond) // it would be signed at another time
	send(m)
	restart()
	send(m)
	mu.Lock()
	defer mu.Unlock()
	if len(came) != 4 || came[0] == came[1] || !slices.Equal(came[2:], []string{came[0], came[0]}) {
		t.Errorf("signatures %q", came)
	}
}

// Of signings the last ones are known, and not more than there is room for.
func TestSignings(t *testing.T) {
	var s signings
	sig := func(i int) tsig.Signature { return tsig.Signature{Key: "key.", Time: uint64(i)} }
	const n = 5*maxReplays/2 + 1
	for i := range n {
		if at := s.first(sig(i), uint64(i)); at != uint64(i) {
			t.Fatalf("number %d was signed at %d", i, at)
		}
	}
	if known := len(s.last) + len(s.before); known > 2*maxReplays {
		t.Errorf("%d are known", known)
	}
	for _, i := range []int{n - 1, n - maxReplays} {
		if at := s.first(sig(i), n); at != uint64(i) {
			t.Errorf("number %d was signed at %d", i, at)
		}
	}
	if at := s.first(sig(0), n); at != n {
		t.Errorf("the first one is known still: %d", at)
	}
}
