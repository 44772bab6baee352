package forward

import (
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// options is the options of a message, as text.
func options(m *dns.Msg) (all []string) {
	for _, o := range m.IsEdns0().Option {
		all = append(all, fmt.Sprintf("%d=%s", o.Option(), o))
	}
	return all
}

// Cookies, keepalive and padding are between neighbours; all else passes in both directions, and in both lanes.
func TestHopByHopOptions(t *testing.T) {
	var asked atomic.Pointer[dns.Msg]
	const theirs = "aaaaaaaabbbbbbbb"
	f := configured(t, "forward . "+upstream(t, func(w dns.ResponseWriter, r *dns.Msg) {
		asked.Store(r.Copy())
		m := new(dns.Msg).SetReply(r)
		m.SetEdns0(1232, false)
		opt := m.IsEdns0()
		for _, o := range r.IsEdns0().Option {
			if c, ok := o.(*dns.EDNS0_COOKIE); ok {
				opt.Option = append(opt.Option, &dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: c.Cookie[:16] + theirs})
			}
		}
		opt.Option = append(opt.Option, &dns.EDNS0_TCP_KEEPALIVE{Code: dns.EDNS0TCPKEEPALIVE, Timeout: 7},
			&dns.EDNS0_EDE{InfoCode: 3}, &dns.EDNS0_PADDING{Padding: make([]byte, 8)})
		w.WriteMsg(m)
	}))
	const mine = "0102030405060708"
	var ours string
	for n, lane := range []string{"message", "wire", "message", "wire"} {
		r := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
		r.SetEdns0(1232, false)
		r.IsEdns0().Option = []dns.EDNS0{
			&dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: mine}, &dns.EDNS0_PADDING{Padding: make([]byte, 16)},
			&dns.EDNS0_LOCAL{Code: 65500, Data: []byte("abc")}, &dns.EDNS0_TCP_KEEPALIVE{Code: dns.EDNS0TCPKEEPALIVE},
		}
		var m *dns.Msg
		var err error
		if lane == "wire" {
			m, _, _, err = serveWire(t, f, wire.Peer{}, r)
		} else {
			m, _, err = serve(f, &test.ResponseWriter{}, r)
		}
		if err != nil || m == nil {
			t.Fatal(lane, m, err)
		}
		if got := fmt.Sprint(options(m)); got != "[15=3 (Stale Answer): ()]" {
			t.Errorf("%s: the client saw %s", lane, got)
		}
		var cookie string
		for _, o := range asked.Load().IsEdns0().Option {
			if c, ok := o.(*dns.EDNS0_COOKIE); ok {
				cookie = c.Cookie
			}
		}
		if n == 0 {
			ours = cookie
		}
		want := ours
		if n > 0 {
			want += theirs
		}
		if got := options(asked.Load()); len(ours) != 16 || ours == mine || cookie != want || len(got) != 2 || got[0] != "65500=65500:0x616263" {
			t.Errorf("%s: the upstream saw %v, cookie %q, want %q", lane, got, cookie, want)
		}
	}
	// Who sends no cookie makes none.
	r := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
	r.SetEdns0(1232, false)
	r.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_PADDING{Padding: make([]byte, 16)}}
	if _, _, err := serve(f, &test.ResponseWriter{}, r); err != nil || len(options(asked.Load())) != 0 {
		t.Error(options(asked.Load()), err)
	}
}

// A firewall before the upstream drops what has a cookie, or a server takes none at all: once each upstream was asked
// with its cookie, the query goes on without one. Where another upstream is left it is shown its cookie first.
func TestQueryGoesOnWithoutCookie(t *testing.T) {
	const mine = "0102030405060708"
	cookie := func(r *dns.Msg) string {
		for _, o := range r.IsEdns0().Option {
			if c, ok := o.(*dns.EDNS0_COOKIE); ok {
				return c.Cookie
			}
		}
		return ""
	}
	bothLanes(t, func(t *testing.T, _ func(*Forward, string) string) {
		for what, odd := range map[string]dns.HandlerFunc{
			"drops": func(dns.ResponseWriter, *dns.Msg) {},
			"refuses": func(w dns.ResponseWriter, r *dns.Msg) {
				m := new(dns.Msg).SetRcode(r, dns.RcodeBadCookie)
				m.SetEdns0(1232, false)
				m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: cookie(r)[:16] + "aaaaaaaabbbbbbbb"}}
				w.WriteMsg(m)
			},
			"spoils": func(w dns.ResponseWriter, r *dns.Msg) {
				m := new(dns.Msg).SetReply(r)
				m.SetEdns0(1232, false)
				m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "1111111111111111"}}
				w.WriteMsg(m)
			},
		} {
			var mu sync.Mutex
			first := map[string]bool{} // whether the first query to an upstream had a cookie
			var addrs string
			for i := range 2 {
				addrs += " " + upstream(t, func(w dns.ResponseWriter, r *dns.Msg) {
					with := cookie(r) != ""
					mu.Lock()
					if _, known := first[fmt.Sprint(i)]; !known {
						first[fmt.Sprint(i)] = with
					}
					mu.Unlock()
					_, udp := w.RemoteAddr().(*net.UDPAddr)
					switch {
					case with:
						odd(w, r)
					case udp: // what is asked again over TCP has none either
						m := new(dns.Msg).SetReply(r)
						m.Truncated = true
						w.WriteMsg(m)
					default:
						says("192.0.2.1")(w, r)
					}
				})
			}
			f := configured(t, "forward ."+addrs+" {\nread_timeout 100ms\nmax_fails 0\nmax_connect_attempts 0\nprefer_udp\n}")
			r := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
			r.SetEdns0(1232, false)
			r.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: mine}}
			var m *dns.Msg
			var err error
			if t.Name() == "TestQueryGoesOnWithoutCookie/wire" {
				m, _, _, err = serveWire(t, f, wire.Peer{}, r)
			} else {
				m, _, err = serve(f, &test.ResponseWriter{}, r)
			}
			if err != nil || m == nil || len(m.Answer) != 1 {
				t.Errorf("%s: %v, %v", what, m, err)
			}
			mu.Lock()
			if len(first) != 2 || !first["0"] || !first["1"] {
				t.Errorf("%s: the first query to each upstream should have its cookie: %v", what, first)
			}
			mu.Unlock()
		}
	})
}

// The upstream sees random letters, the client its own; in both lanes.
func TestCaseRandomization(t *testing.T) {
	const name = "www.Some-long-Name.example.org."
	bothLanes(t, func(t *testing.T, _ func(*Forward, string) string) {
		var seen sync.Map
		f := configured(t, "forward . "+upstream(t, func(w dns.ResponseWriter, r *dns.Msg) {
			seen.Store(r.Question[0].Name, nil)
			says("192.0.2.1")(w, r)
		})+" {\ncase_randomization\n}")
		r := new(dns.Msg).SetQuestion(name, dns.TypeA)
		for range 10 {
			m, _, err := serve(f, &test.ResponseWriter{}, r)
			if t.Name() == "TestCaseRandomization/wire" {
				m, _, _, err = serveWire(t, f, wire.Peer{}, r)
			}
			if err != nil || m.Question[0].Name != name || m.Answer[0].Header().Name != name {
				t.Fatal(m, err)
			}
		}
		spellings := 0
		seen.Range(func(any, any) bool { spellings++; return true })
		if spellings < 10 {
			t.Errorf("%d spellings", spellings)
		}
	})
}
