package test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/forward"
	"github.com/coredns/coredns/plugin/metadata"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/request"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// foreign is a plugin such as others write: it knows messages only, and does what the tests let it do.
type foreign struct {
	next  plugin.Handler
	calls atomic.Int64
	serve func(f *foreign, ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error)
}

func (f *foreign) Name() string { return "foreign" }

func (f *foreign) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	f.calls.Add(1)
	if f.serve != nil {
		return f.serve(f, ctx, w, r)
	}
	return plugin.NextOrFailure(f.Name(), f.next, ctx, w, r)
}

// Metadata implements metadata.Provider.
func (f *foreign) Metadata(ctx context.Context, state request.Request) context.Context {
	metadata.SetValueFunc(ctx, "foreign/name", func() string { return state.Name() })
	return ctx
}

// promptForeign is a foreign that says Prompt.
type promptForeign struct{ *foreign }

func (promptForeign) Prompt() bool { return true }

// heir is forward with a ServeDNS of somebody else's.
type heir struct {
	*forward.Forward
	calls atomic.Int64
}

func (h *heir) Name() string { return "heir" }

func (h *heir) ServeDNS(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	h.calls.Add(1)
	m := new(dns.Msg).SetRcode(r, dns.RcodeNameError)
	return m.Rcode, w.WriteMsg(m)
}

// The plugins of the servers that start next.
var (
	nextForeign *foreign
	nextHeir    *heir
)

func init() {
	at := slices.Index(dnsserver.Directives, "cache") + 1
	dnsserver.Directives = slices.Insert(dnsserver.Directives, at, "foreign", "promptforeign", "heir")
	add := func(name string, link func(next plugin.Handler) plugin.Handler) {
		plugin.Register(name, func(c *caddy.Controller) error {
			dnsserver.GetConfig(c).AddPlugin(link)
			return nil
		})
	}
	add("foreign", func(next plugin.Handler) plugin.Handler {
		nextForeign.next = next
		return nextForeign
	})
	add("promptforeign", func(next plugin.Handler) plugin.Handler {
		nextForeign.next = next
		return promptForeign{nextForeign}
	})
	add("heir", func(plugin.Handler) plugin.Handler { return nextHeir })
}

// withForeign starts a server with a foreign plugin before the zone example.org, behind what lines say.
func withForeign(t *testing.T, lines string, f *foreign) (udp, tcp string) {
	t.Helper()
	return withForeignZone(t, lines, f, laneZone)
}

func withForeignZone(t *testing.T, lines string, f *foreign, zone string) (udp, tcp string) {
	t.Helper()
	db := filepath.Join(t.TempDir(), "db.example.org")
	if err := os.WriteFile(db, []byte(zone), 0o600); err != nil {
		t.Fatal(err)
	}
	nextForeign = f
	_, udp, tcp = start(t, ".:0 {\nbind 127.0.0.1\n"+lines+"\nfile "+db+" example.org\n}")
	return udp, tcp
}

// One slow query holds up no other one, also of those that came with it.
func TestForeignSleeps(t *testing.T) {
	const nap = 2 * time.Second
	f := &foreign{serve: func(f *foreign, ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		if strings.HasPrefix(r.Question[0].Name, "slow.") {
			time.Sleep(nap)
		}
		return plugin.NextOrFailure(f.Name(), f.next, ctx, w, r)
	}}
	udp, tcp := withForeign(t, "foreign", f)
	ask(t, "udp", udp, question("www.example.org.", dns.TypeA))
	for network, addr := range map[string]string{"udp": udp, "tcp": tcp} {
		conn, err := dns.Dial(network, addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		f.calls.Store(0)
		began := time.Now()
		for i := range 32 {
			name := "www.example.org."
			if i == 0 {
				name = "slow.example.org."
			}
			m := question(name, dns.TypeA)
			m.Id = uint16(i)
			if err := conn.WriteMsg(m); err != nil {
				t.Fatal(err)
			}
		}
		var longest, slow time.Duration
		for range 32 {
			conn.SetReadDeadline(time.Now().Add(2 * nap))
			m, err := conn.ReadMsg()
			if err != nil {
				t.Fatalf("%s: %v", network, err)
			}
			if m.Id == 0 {
				slow = time.Since(began)
				continue
			}
			longest = max(longest, time.Since(began))
		}
		t.Logf("%s: the slowest of the others after %v", network, longest)
		if longest > 300*time.Millisecond || slow < nap || f.calls.Load() != 32 { // 20 ms on a quiet machine
			t.Errorf("%s: others took up to %v, the slow one %v; %d calls", network, longest, slow, f.calls.Load())
		}
	}
}

// What a handler keeps of a query stays what it was, and it may write when it has long returned.
func TestForeignKeeps(t *testing.T) {
	type keptQuery struct {
		w    dns.ResponseWriter
		r    *dns.Msg
		text string
	}
	var mu sync.Mutex
	var all []keptQuery
	f := &foreign{serve: func(f *foreign, ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		if strings.HasPrefix(r.Question[0].Name, "keep") {
			mu.Lock()
			all = append(all, keptQuery{w, r, fmt.Sprint(r, w.RemoteAddr(), w.LocalAddr())})
			mu.Unlock()
			return dns.RcodeSuccess, nil
		}
		return plugin.NextOrFailure(f.Name(), f.next, ctx, w, r)
	}}
	udp, tcp := withForeign(t, "foreign", f)
	for network, addr := range map[string]string{"udp": udp, "tcp": tcp} {
		all = nil
		conn, err := dns.Dial(network, addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		const n = 20
		for i := range n {
			m := question(fmt.Sprintf("keep%d.example.org.", i), dns.TypeA)
			m.SetEdns0(uint16(1000+i), false)
			m.Id = uint16(1000 + i)
			conn.WriteMsg(m)
		}
		eventually.Holds(t, "all are kept", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(all) == n
		})
		for i := range 200 { // others come and go
			ask(t, "udp", udp, question(fmt.Sprintf("x%d.wild.example.org.", i), dns.TypeA))
		}
		for _, k := range all {
			if text := fmt.Sprint(k.r, k.w.RemoteAddr(), k.w.LocalAddr()); text != k.text {
				t.Errorf("%s: was\n%s\nis\n%s", network, k.text, text)
			}
			go k.w.WriteMsg(new(dns.Msg).SetRcode(k.r, dns.RcodeYXDomain))
		}
		seen := map[uint16]bool{}
		for range n {
			conn.SetReadDeadline(time.Now().Add(5 * time.Second))
			m, err := conn.ReadMsg()
			if err != nil {
				t.Fatalf("%s: after %d late replies: %v", network, len(seen), err)
			}
			if m.Rcode != dns.RcodeYXDomain || m.Question[0].Name != fmt.Sprintf("keep%d.example.org.", m.Id-1000) {
				t.Errorf("%s: got %v", network, m)
			}
			seen[m.Id] = true
		}
		if len(seen) != n {
			t.Errorf("%s: %d of %d queries got a reply", network, len(seen), n)
		}
	}
}

// A plugin that embeds one of ours is called where it overrides that.
func TestForeignEmbeds(t *testing.T) {
	nextHeir = &heir{Forward: forward.New()}
	_, udp, _ := start(t, ".:0 {\nbind 127.0.0.1\nheir\n}")
	if m := ask(t, "udp", udp, question("www.example.org.", dns.TypeA)); m == nil || m.Rcode != dns.RcodeNameError || nextHeir.calls.Load() != 1 {
		t.Errorf("called %d times, replied %v", nextHeir.calls.Load(), m)
	}
}

// Below cache a plugin is called on misses only. With metadata in the block it is asked for labels with each query, so none is
// answered in the wire lane; and it finds its labels.
func TestForeignBelowCache(t *testing.T) {
	for _, tc := range []struct {
		plugins string
		label   any
		onWire  int64
	}{
		{"lanespy\ncache 30\nforeign", nil, 4},
		{"lanespy\nmetadata\ncache 30\nforeign", "www.example.org.", 0},
	} {
		var label atomic.Value
		f := &foreign{serve: func(f *foreign, ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
			if get := metadata.ValueFunc(ctx, "foreign/name"); get != nil {
				label.Store(get())
			}
			return plugin.NextOrFailure(f.Name(), f.next, ctx, w, r)
		}}
		udp, _ := withForeign(t, tc.plugins, f)
		onWire.Store(0)
		for range 5 {
			if m := ask(t, "udp", udp, question("www.example.org.", dns.TypeA)); m == nil || len(m.Answer) != 3 {
				t.Fatalf("%q: got %v", tc.plugins, m)
			}
		}
		if f.calls.Load() != 1 || label.Load() != tc.label || onWire.Load() != tc.onWire {
			t.Errorf("%q: called %d times with label %v, %d answered in the wire lane", tc.plugins, f.calls.Load(), label.Load(), onWire.Load())
		}
	}
}

// A plugin that is prompt is called where queries are read, over UDP and TCP, unless those behind it may have to wait: where an
// alias leads that the zone has nothing at may take time to find out.
func TestForeignIsPrompt(t *testing.T) {
	inside := strings.NewReplacer("child\tIN CNAME app.dyn\nlost\tIN CNAME missing\n", "", "old\tIN DNAME example.org.\n", "").Replace(laneZone)
	for name, tc := range map[string]struct {
		more   string
		onWire int64
	}{
		"all inside":             {"", 2},
		"one leads out":          {"out\tIN CNAME www.example.net.\n", 0},
		"one leads to a child":   {"child\tIN CNAME app.dyn\n", 0},
		"one is made of a DNAME": {"old\tIN DNAME example.org.\n", 0},
	} {
		f := new(foreign)
		udp, tcp := withForeignZone(t, "lanespy\npromptforeign", f, inside+tc.more)
		onWire.Store(0)
		for network, addr := range map[string]string{"udp": udp, "tcp": tcp} {
			if m := ask(t, network, addr, question("www.example.org.", dns.TypeA)); m == nil || len(m.Answer) != 3 {
				t.Fatalf("%s: %s: got %v", name, network, m)
			}
		}
		if f.calls.Load() != 2 || onWire.Load() != tc.onWire {
			t.Errorf("%s: %d calls, %d in the wire lane, want %d", name, f.calls.Load(), onWire.Load(), tc.onWire)
		}
	}
}
