package recurse

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/resolver/clock"
	"github.com/coredns/coredns/plugin/pkg/resolver/iterate"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// over is a server of one zone, in the clear and over TLS, that counts.
type over struct {
	*slow
	secure net.Listener
	port   uint16
	tls    atomic.Int32
	mute   atomic.Bool                    // over TLS
	odd    atomic.Pointer[func(*dns.Msg)] // changes replies over TLS
}

func startOver(t *testing.T, certificate bool) *over {
	t.Helper()
	o := &over{slow: startSlow(t, time.Millisecond)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o.port = uint16(l.Addr().(*net.TCPAddr).Port)
	if !certificate {
		l.Close() // nobody is there
		return o
	}
	dir, err := test.WritePEMFiles(t)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := tls.LoadX509KeyPair(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	o.secure = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"dot"}})
	s := &dns.Server{Listener: o.secure, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		o.tls.Add(1)
		if o.mute.Load() {
			return
		}
		m := new(dns.Msg).SetReply(q)
		m.Authoritative = true
		m.Answer = append(m.Answer, &dns.A{Hdr: dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeA, Class: 1, Ttl: 60}, A: net.IPv4(192, 0, 2, 1)})
		if change := o.odd.Load(); change != nil {
			(*change)(m)
		}
		_ = w.WriteMsg(m)
	})}
	go func() { _ = s.ActivateAndServe() }()
	t.Cleanup(func() { _ = s.Shutdown() })
	return o
}

// A server that is met is asked in the clear, and beside that over TLS. If that works it is asked over TLS only, for
// three days; if not, it is not tried again for a day. What goes wrong over TLS is asked in the clear (RFC 9539).
func TestEncryption(t *testing.T) {
	for what, c := range map[string]struct {
		there, mute bool
		wait        store.Time // how long what the probe found is remembered
	}{"works": {true, false, secureFor}, "nobody is there": {false, false, insecureFor}, "never answers": {true, true, insecureFor}} {
		t.Run(what, func(t *testing.T) {
			o := startOver(t, c.there)
			o.mute.Store(c.mute)
			var side *tlsSide
			r := o.resolver(t, func(s *settings) { s.encrypt, s.timeout, s.minimise = true, 5*time.Second, iterate.Off })
			r.encryption.port = o.port
			began := store.Time(clock.Now().UnixNano())
			ask := func(name string) {
				t.Helper()
				j, _ := r.beginFor(queryFrom(t, "192.0.2.1", name), nil, nil, unlooked)
				if err := j.wait(context.Background()); err != nil || len(j.result.Answer) != 1 {
					t.Fatalf("%s: %+v %v", name, j.result, err)
				}
			}
			ask("first.example.org.")
			if o.count("first.example.org.") == 0 {
				t.Error("it was not asked in the clear at first")
			}
			side = &r.conf.Stores.Servers.Get(netip.AddrPortFrom(o.at.Addr(), o.at.Port()), nil).Peer.(*peer).secure
			for range 1000 {
				side.mu.Lock()
				over := !side.probing
				side.mu.Unlock()
				if over {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			if side.good != (c.there && !c.mute) || side.until < began+c.wait || side.until > store.Time(clock.Now().UnixNano())+c.wait {
				t.Fatalf("after the probe: good %v, until %d s later", side.good, (side.until-began)/store.Second)
			}
			ask("second.example.org.")
			clear, secure := o.count("second.example.org."), o.tls.Load()
			if want := fmt.Sprint(map[bool]string{true: "0 2", false: "1 0"}[side.good]); !c.mute && fmt.Sprint(clear, secure) != want {
				t.Errorf("second name: in the clear and over TLS %d %d, want %s", clear, secure, want)
			}
			if !side.good {
				return
			}
			o.mute.Store(true)
			ask("mute.example.org.")
			if !side.good || o.count("mute.example.org.") == 0 {
				t.Errorf("one reply was lost: good %v, %d times in the clear", side.good, o.count("mute.example.org."))
			}
			side.until = began
			o.mute.Store(false)
			ask("again.example.org.")
			if o.count("again.example.org.") == 0 {
				t.Error("three days later it is not asked in the clear")
			}
		})
	}
}

// What listens at the port of TLS may be another server: its errors, and what a resolver says there, are asked once more
// in the clear. One that has nothing else to say, from the first query on or time after time, is not asked over TLS any
// more.
func TestOddOverTLS(t *testing.T) {
	for what, change := range map[string]func(m *dns.Msg){
		"SERVFAIL": func(m *dns.Msg) { m.Answer, m.Rcode = nil, dns.RcodeServerFailure },
		"REFUSED":  func(m *dns.Msg) { m.Answer, m.Rcode = nil, dns.RcodeRefused },
		"resolver": func(m *dns.Msg) { m.Authoritative, m.RecursionAvailable = false, true },
		"cut":      func(m *dns.Msg) { m.Answer, m.Truncated = nil, true },
		"mute":     nil,
	} {
		for _, since := range []int{0, 1} { // queries over TLS
			t.Run(fmt.Sprint(what, " after ", since), func(t *testing.T) {
				o := startOver(t, true)
				begin := func() {
					o.mute.Store(change == nil)
					o.odd.Store(&change)
				}
				if since == 0 {
					begin()
				}
				r := o.resolver(t, func(s *settings) { s.encrypt, s.timeout, s.minimise = true, 5*time.Second, iterate.Off })
				r.encryption.port = o.port
				ask := func(name string) *tlsSide {
					t.Helper()
					j, _ := r.beginFor(queryFrom(t, "192.0.2.1", name), nil, nil, unlooked)
					if err := j.wait(context.Background()); err != nil || len(j.result.Answer) != 1 {
						t.Fatalf("%s: %+v %v", name, j.result, err)
					}
					return &r.conf.Stores.Servers.Get(netip.AddrPortFrom(o.at.Addr(), o.at.Port()), nil).Peer.(*peer).secure
				}
				side := ask("first.example.org.")
				state := func() (good, probing bool) {
					side.mu.Lock()
					defer side.mu.Unlock()
					return side.good, side.probing
				}
				for range 1000 {
					if _, probing := state(); !probing {
						break
					}
					time.Sleep(10 * time.Millisecond)
				}
				if good, _ := state(); good != (since > 0) {
					t.Fatalf("after the probe: good %v", good)
				}
				if since == 0 {
					return
				}
				begin()
				for i := range mostMisses {
					name := fmt.Sprintf("n%d.example.org.", i)
					ask(name)
					if good, _ := state(); good != (i < mostMisses-1) || o.count(name) != 1 {
						t.Errorf("%s: good %v, %d times in the clear", name, good, o.count(name))
					}
				}
			})
		}
	}
}
