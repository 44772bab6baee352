package cache

import (
	"bytes"
	"fmt"
	golog "log"
	"math"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/memory"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// entriesOf is what the gauge says of positive entries of caches for a zone.
func entriesOf(zone string) (n float64) {
	all := make(chan prometheus.Metric, 1000)
	cacheSize.Collect(all)
	close(all)
	for m := range all {
		var d dto.Metric
		if m.Write(&d) == nil && strings.Contains(d.String(), fmt.Sprintf("%q", zone)) && strings.Contains(d.String(), Success) {
			n += d.GetGauge().GetValue()
		}
	}
	return n
}

// What is kept survives a reload that changes nothing for the cache, and no other one. The gauge tells what there is.
func TestReload(t *testing.T) {
	u, v := newUpstream(t, 0), newUpstream(t, 0)
	block := func(lines ...string) string { return ".:0 {\nbind 127.0.0.1\n" + strings.Join(lines, "\n") + "\n}" }
	_, port, _ := net.SplitHostPort(u.addr)
	first := []string{"bothlanes", "cache ZONE {\nsuccess 5000\n}", "forward . " + u.addr}
	for i, tc := range []struct {
		name     string
		next     string
		survives bool
		fails    bool
	}{
		{"the same", block(first...), true, false},
		{"written differently", "# a comment\n\n" + block("bothlanes", "cache   ZONE {\n\n  success 5000 # so many\n}", "forward . "+u.addr), true, false},
		{"the same from a snippet", "(x) {\n" + strings.Join(first, "\n") + "\n}\n" + block("import x"), true, false},
		{"another block beside it", block(first...) + "\nexample.net:0 {\nbind 127.0.0.1\nforward . " + v.addr + "\n}", true, false},
		{"the upstream becomes a neighbour", block(first...) + "\nexample.net:" + port + " {\nbind 127.0.0.2\nforward . " + v.addr + "\n}", false, false},
		{"another upstream", block("bothlanes", first[1], "forward . "+v.addr), false, false},
		{"another option below", block("bothlanes", first[1], "forward . "+u.addr+" {\nmax_fails 3\n}"), false, false},
		{"another stanza", block("bothlanes", "cache ZONE {\nsuccess 5001\n}", first[2]), false, false},
		{"another zone", strings.Replace(block(first...), ".:0", "example.org:0", 1), false, false},
		{"a foreign plugin below", block("bothlanes", first[1], "foreign", first[2]), false, false},
		{"a Corefile that is wrong", block(first...) + "\n.:0 {\nno-such-plugin\n}", true, true},
		{"a server that does not start", block(first...) + "\nexample.net:0 {\nbind 192.0.2.1\nforward . " + v.addr + "\n}", true, true},
	} {
		zone := fmt.Sprintf("reload%d.example.org", i)
		s := serve(t, strings.ReplaceAll(block(first...), "ZONE", zone))
		name := "www." + zone + "."
		a := s.ask(new(dns.Msg).SetQuestion(name, dns.TypeA), 0)
		s.ask(new(dns.Msg).SetQuestion("web."+zone+".", dns.TypeA), 1)
		before := u.asked.Load() + v.asked.Load()
		if ok := s.reload(strings.ReplaceAll(tc.next, "ZONE", zone)); ok == tc.fails {
			t.Errorf("%s: the reload went well: %v", tc.name, ok)
		}
		want := 0.0
		if tc.survives {
			want = 2
		}
		if got := entriesOf(zone + "."); got != want {
			t.Errorf("%s: the gauge says %v, want %v", tc.name, got, want)
		}
		b := s.ask(new(dns.Msg).SetQuestion(name, dns.TypeA), 0)
		if b == nil || len(b.Answer) != 1 || (a.Answer[0].String() == b.Answer[0].String() && u.asked.Load()+v.asked.Load() == before) != tc.survives {
			t.Errorf("%s: was %v, is %v", tc.name, a, b)
		}
		if got := entriesOf(zone + "."); got != max(want, 1) {
			t.Errorf("%s: the gauge says %v after a query, want %v", tc.name, got, max(want, 1))
		}
		s.ask(new(dns.Msg).SetQuestion("mail."+zone+".", dns.TypeA), 0)
		if got := entriesOf(zone + "."); got != max(want, 1)+1 {
			t.Errorf("%s: the gauge says %v after another one, want %v", tc.name, got, max(want, 1)+1)
		}
		s.end()
		if got := entriesOf(zone + "."); got != 0 {
			t.Errorf("%s: the gauge says %v at the end", tc.name, got)
		}
	}
	offers.Lock()
	defer offers.Unlock()
	if len(offers.all) > 0 {
		t.Errorf("%d offers are left", len(offers.all))
	}
}

// No cache is swept when it is over: one that was replaced, one of a configuration that did not start, whether it had taken over what is kept or
// not, and the last one.
func TestSweepersEnd(t *testing.T) {
	u := newUpstream(t, 0)
	block := func(capacity string) string {
		return ".:0 {\nbind 127.0.0.1\nbothlanes\ncache {\nsuccess " + capacity + "\n}\nforward . " + u.addr + "\n}"
	}
	const fails = "\nexample.net:0 {\nbind 192.0.2.1\n}"
	before := len(madeBelow)
	s := serve(t, block("5000"))
	if made := madeBelow[before:]; len(made) != 1 || made[0].sweeper == nil {
		t.Fatalf("%d caches, or it is not swept", len(made))
	}
	for _, next := range []string{block("5000") + fails, block("5001") + fails, block("5000"), block("5002")} {
		if ok := s.reload(next); ok == strings.HasSuffix(next, fails) {
			t.Errorf("the reload went well: %v", ok)
		}
	}
	s.end()
	made := madeBelow[before:]
	if len(made) != 5 {
		t.Errorf("%d caches were made", len(made))
	}
	for i, c := range made {
		if c.sweeper != nil {
			t.Errorf("cache %d is swept", i)
		}
	}
}

// What was asked for before a reload, and comes when it is over, is kept unless an alias in it may lead elsewhere now.
func TestReloadWhileAsking(t *testing.T) {
	alias := []string{"example.org. 300 IN CNAME x.org.", "x.org. 30 IN A 192.0.2.1"}
	for i, tc := range []struct {
		records []string
		around  string
		kept    int
	}{{alias, "another Corefile", 0}, {alias, "", 1}, {[]string{aRecord}, "another Corefile", 1}} {
		w, next := newWorld(t, nil), New()
		w.c.text, next.text, next.around = t.Name(), t.Name(), tc.around
		w.says(0, tc.records...)
		inner := w.answer
		w.below(func(rw dns.ResponseWriter, r *dns.Msg) (int, error) {
			w.c.offer()
			next.takeOver()
			return inner(rw, r)
		})
		if _, ttl := w.count("example.org.", dns.TypeA); ttl <= 0 {
			t.Errorf("%d: no answer", i)
		}
		if n := next.positive.len(); n != tc.kept {
			t.Errorf("%d: %d answers are kept, want %d", i, n, tc.kept)
		}
		w.c.giveUp()
		next.giveUp()
	}
}

// A foreign plugin below keeps nothing over a reload, also if all stays the same.
func TestReloadWithForeignPlugin(t *testing.T) {
	u := newUpstream(t, 0)
	corefile := ".:0 {\nbind 127.0.0.1\ncache\nforeign\nforward . " + u.addr + "\n}"
	s := serve(t, corefile)
	m := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
	s.ask(m, 0)
	if s.ask(m, 1); u.asked.Load() != 1 {
		t.Fatalf("the upstream was asked %d times before", u.asked.Load())
	}
	s.reload(corefile)
	if s.ask(m, 2); u.asked.Load() != 2 {
		t.Errorf("the upstream was asked %d times", u.asked.Load())
	}
}

// Reloads while queries come lose no answer, keep no store beyond its time, and do not share stores between servers of the same text.
func TestReloadUnderLoad(t *testing.T) {
	u := newUpstream(t, 0)
	corefile := ".:0 {\nbind 127.0.0.1\nbothlanes\ncache load.example.org\nforward . " + u.addr + "\n}"
	s, other := serve(t, corefile), serve(t, corefile)
	addr := s.instance.Servers()[0].LocalAddr().String()
	stop := make(chan struct{})
	var asked atomic.Int64
	var wg sync.WaitGroup
	for g := range 3 {
		wg.Go(func() {
			c := new(dns.Client)
			for i := g; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				m := new(dns.Msg).SetQuestion(fmt.Sprintf("n%d.load.example.org.", i%50), dns.TypeA)
				m.Id = uint16(i)
				if r, _, err := c.Exchange(m, addr); err != nil || len(r.Answer) != 1 {
					t.Errorf("query %d: %v, %v", i, r, err)
					return
				}
				asked.Add(1)
			}
		})
	}
	for i := range 40 {
		switch i % 4 {
		case 0, 1:
			s.reload(corefile)
		case 2:
			s.reload(strings.Replace(corefile, "load.example.org", "load.example.org {\nsuccess 2000\n}", 1))
		case 3:
			s.reload(corefile + "\n.:0 {\nno-such-plugin\n}")
		}
	}
	close(stop)
	wg.Wait()
	before := u.asked.Load()
	m := new(dns.Msg).SetQuestion("n1.load.example.org.", dns.TypeA)
	if other.ask(m, 0); u.asked.Load() != before+1 {
		t.Error("two servers share what they keep")
	}
	t.Logf("%d queries, of which the upstream saw %d", asked.Load(), before)
}

func TestAllOurs(t *testing.T) {
	c := New()
	ours := new(source)
	for i, tc := range []struct {
		chain []plugin.Handler
		want  bool
	}{
		{[]plugin.Handler{c}, true},
		{[]plugin.Handler{c, ours, New()}, true},
		{[]plugin.Handler{plugin.HandlerFunc(nil), c, ours}, true},
		{[]plugin.Handler{c, ours, plugin.HandlerFunc(nil)}, false},
		{[]plugin.Handler{ours}, false},
	} {
		if got := c.allOurs(tc.chain); got != tc.want {
			t.Errorf("%d: got %v", i, got)
		}
	}
	if module != "github.com/coredns/coredns/" {
		t.Errorf("got %q", module)
	}
}

// The first server block that says how much memory caches may take counts, until a configuration says otherwise.
func TestMemoryOption(t *testing.T) {
	block := func(port int, memory string) string {
		return fmt.Sprintf("example%d.org:0 {\nbind 127.0.0.1\ncache {\n%s\n}\n}\n", port, memory)
	}
	s := serve(t, block(1, "")+block(2, "memory 32M")+block(3, "memory 16M"))
	check := func(what string, want int64) {
		t.Helper()
		if got := processBudget().limit.Load(); got != memory.Live(want) {
			t.Errorf("%s: %d octets, want %d", what, got, memory.Live(want))
		}
	}
	check("two say it", 32<<20)
	if s.reload(block(1, "memory 8M") + "example2.org:0 {\nbind 192.0.2.1\ncache\n}\n") {
		t.Error("the reload went well")
	}
	check("a reload that failed", 32<<20)
	s.reload(block(1, ""))
	check("nobody says it", new(want).octets(memory.Limit()))
}

// Capacities beyond the default raise the memory to what the process may use; what has no room there is told.
func TestCapacitiesWantMemory(t *testing.T) {
	const gib = 1 << 30
	for _, tc := range []struct {
		options []string // one cache each
		limit   int64
		want    int64
		warns   string
	}{
		{[]string{""}, math.MaxInt64, mostMemory, ""},
		{[]string{""}, 100 << 20, 25 << 20, ""},
		{[]string{"", "success 10000", "denial 9000"}, math.MaxInt64, mostMemory, ""},
		{[]string{"success 100000"}, math.MaxInt64, mostMemory, ""},
		{[]string{"success 1010000"}, math.MaxInt64, 1000000 * perEntry, ""},
		{[]string{"success 1010000", "denial 1010000\nsuccess 5"}, math.MaxInt64, 2000000 * perEntry, ""},
		{[]string{"success 1010000"}, 4 * gib, 1000000 * perEntry, ""},
		{[]string{"success 1010000"}, gib, gib / 4, "1010000 entries, as success and denial say, take about 534 MiB, and all caches together may take 256, "},
		{[]string{"success 1010000", "memory 8M"}, gib, 8 << 20, ""}, // it was decided
	} {
		c := caddy.NewTestController("dns", "")
		var w *want
		for _, options := range tc.options {
			cfg := config{settings: defaults(), keys: []string{"."}}
			one := caddy.NewTestController("dns", "cache {\n"+options+"\n}")
			if err := directive.Parse(one, &cfg); err != nil {
				t.Fatal(err)
			}
			w = wantOf(c, &cfg.settings)
		}
		if got := w.octets(tc.limit); got != tc.want {
			t.Errorf("%q of %d: %d octets, want %d", tc.options, tc.limit, got, tc.want)
		}
		out := logged(func() { w.warn(tc.limit); w.warn(tc.limit) })
		if tc.warns == "" && out != "" || strings.Count(out, "\n") > 1 || !strings.Contains(out, tc.warns) {
			t.Errorf("%q of %d: logged %q", tc.options, tc.limit, out)
		}
	}
}

// logged is what f logs.
func logged(f func()) string {
	var b bytes.Buffer
	golog.SetOutput(&b)
	defer golog.SetOutput(os.Stderr)
	f()
	return b.String()
}
