package program

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/loopback"

	"github.com/miekg/dns"
)

// server is the program as it serves in a folder of its own, with a Corefile that has the socket ctl.sock.
type server struct {
	t            *testing.T
	folder, addr string
	process      *exec.Cmd
	ended        chan error
}

// serve starts the program. In the Corefile, PORT is its port.
func serve(t *testing.T, corefile string, args ...string) *server {
	t.Helper()
	s := &server{t: t, folder: loopback.Folder(t), addr: loopback.Addr(), ended: make(chan error, 1)}
	s.write(corefile)
	s.process = exec.Command(os.Args[0])
	s.process.Dir, s.process.Env = s.folder, append(os.Environ(), asProgram+"="+strings.Join(append([]string{"-conf", "Corefile"}, args...), "\n"))
	out, err := s.process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.process.Stderr = s.process.Stdout
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
	serving := make(chan bool, 1)
	go func() {
		for in := bufio.NewScanner(out); in.Scan(); {
			if strings.HasPrefix(in.Text(), "compatible with ") {
				serving <- true
			}
		}
		close(serving)
		s.ended <- s.process.Wait()
	}()
	if !<-serving {
		t.Fatal("it does not serve")
	}
	t.Cleanup(func() { s.process.Process.Kill() })
	return s
}

func (s *server) write(corefile string) {
	_, port, _ := net.SplitHostPort(s.addr)
	write(s.t, filepath.Join(s.folder, "Corefile"), strings.ReplaceAll(corefile, "PORT", port))
}

// ask is the reply to a query over network.
func (s *server) ask(network, name string, qtype uint16) *dns.Msg {
	s.t.Helper()
	m := new(dns.Msg).SetQuestion(name, qtype)
	m.SetEdns0(1232, false)
	reply, _, err := (&dns.Client{Net: network, Timeout: 5 * time.Second}).Exchange(m, s.addr)
	if err != nil {
		s.t.Error(err)
		return new(dns.Msg)
	}
	return reply
}

// ctl is what a command says, and its status.
func (s *server) ctl(args ...string) (out, errs string, status int) {
	s.t.Helper()
	return run(s.t, s.folder, "", append([]string{"ctl", "-s", filepath.Join(s.folder, "ctl.sock")}, args...)...)
}

// must is what a command that succeeds says.
func (s *server) must(args ...string) string {
	s.t.Helper()
	out, errs, status := s.ctl(args...)
	if status != 0 || errs != "" {
		s.t.Errorf("ctl %s: status %d, %q", strings.Join(args, " "), status, errs)
	}
	return out
}

// upstream answers all with an address, and counts.
func upstream(t *testing.T) (addr string, asked *atomic.Int32) {
	t.Helper()
	asked = new(atomic.Int32)
	up := dnstest.NewServer(func(w dns.ResponseWriter, r *dns.Msg) {
		asked.Add(1)
		m := new(dns.Msg).SetReply(r)
		m.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: r.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 300}, A: net.IPv4(192, 0, 2, 1)}}
		w.WriteMsg(m)
	})
	t.Cleanup(up.Close)
	return up.Addr, asked
}

// What is flushed is asked for anew, and nothing else is.
func TestControlFlush(t *testing.T) {
	up, asked := upstream(t)
	s := serve(t, ".:PORT {\nbind 127.0.0.1\ncontrol ctl.sock\ncache 300\nforward . "+up+"\n}\n")
	expect := func(what string, misses int32) {
		t.Helper()
		before := asked.Load()
		for _, name := range []string{"a.example.org.", "b.a.example.org.", "c.example.net."} {
			if m := s.ask("udp", name, dns.TypeA); len(m.Answer) != 1 {
				t.Errorf("%s: got %v", what, m)
			}
		}
		if n := asked.Load() - before; n != misses {
			t.Errorf("%s: %d misses, want %d", what, n, misses)
		}
	}
	expect("at first", 3)
	expect("when it is cached", 0)
	for _, tc := range []struct {
		args   []string
		misses int32
	}{
		{[]string{"cache", "flush", "a.example.org"}, 1},
		{[]string{"cache", "flush", "A.example.ORG.", "A"}, 1},
		{[]string{"cache", "flush", "a.example.org", "AAAA"}, 0},
		{[]string{"cache", "flush", "zone", "example.org"}, 2},
		{[]string{"cache", "flush", "all"}, 3},
		{[]string{"cache", "flush", "d.example.org"}, 0},
	} {
		what := strings.Join(tc.args, " ")
		if out, want := s.must(tc.args...), fmt.Sprintf("forgotten: %d\n", tc.misses); out != want {
			t.Errorf("%s: said %q, want %q", what, out, want)
		}
		expect(what, tc.misses)
	}
	if out := s.must("cache", "get", "zone", "example.org"); strings.Count(out, "example.org.") != 2 || !strings.Contains(out, "NOERROR") {
		t.Errorf("cached are\n%s", out)
	}
	if out := s.must("upstreams"); !strings.Contains(out, up) || !strings.Contains(out, " up ") {
		t.Errorf("upstreams are\n%s", out)
	}
}

// An answer that is under way while its name is flushed reaches its client, and is not kept.
func TestControlFlushUnderWay(t *testing.T) {
	var asked atomic.Int32
	came, answer := make(chan struct{}), make(chan struct{})
	up := dnstest.NewServer(func(w dns.ResponseWriter, r *dns.Msg) {
		if asked.Add(1) == 1 {
			close(came)
			<-answer
		}
		m := new(dns.Msg).SetReply(r)
		m.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: r.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 300}, A: net.IPv4(192, 0, 2, 1)}}
		w.WriteMsg(m)
	})
	t.Cleanup(up.Close)
	s := serve(t, ".:PORT {\nbind 127.0.0.1\ncontrol ctl.sock\ncache 300\nforward . "+up.Addr+"\n}\n")
	done := make(chan int)
	go func() { done <- len(s.ask("udp", "a.example.org.", dns.TypeA).Answer) }()
	<-came
	s.must("cache", "flush", "all")
	close(answer)
	if n := <-done; n != 1 {
		t.Errorf("the client got %d records", n)
	}
	for range 2 { // the second one from the cache
		s.ask("udp", "a.example.org.", dns.TypeA)
	}
	if n := asked.Load(); n != 2 {
		t.Errorf("the upstream got %d queries, not 2", n)
	}
}

// plainReply is a reply without what differs from query to query: the id.
func plainReply(m *dns.Msg) string {
	m.Id = 0
	return m.String()
}

// An explained question gets what a client gets, in either lane.
func TestExplain(t *testing.T) {
	up, _ := upstream(t)
	corefile := "example.org:PORT {\nbind 127.0.0.1\ncontrol ctl.sock\ntemplate IN A a.example.org {\nanswer \"{{ .Name }} 60 IN A 192.0.2.7\"\n}\n" +
		"file db.example.org {\nfallthrough\n}\n}\n.:PORT {\nbind 127.0.0.1\ncache 300\nforward . " + up + "\n}\n"
	const db = "@ 3600 IN SOA ns.example.org. h.example.org. 7 7200 3600 1209600 3600\n@ IN NS ns\nns IN A 192.0.2.1\nbig IN TXT \"one\" \"two\"\n"
	for _, lane := range []string{"-dns.wire=true", "-dns.wire=false"} {
		s := serve(t, corefile, lane)
		write(t, filepath.Join(s.folder, "db.example.org"), db)
		s.must("reload")
		for _, q := range []struct {
			name, qtype, transport, block string
			plugins                       []string
			note                          string
		}{
			{"a.example.org.", "A", "udp", "example.org.", []string{"control", "template"}, ""},
			{"big.example.org.", "TXT", "tcp", "example.org.", []string{"control", "template", "file"}, ""},
			{"none.example.org.", "A", "udp", "example.org.", []string{"control", "template", "file"}, ""},
			{"x.example.net.", "A", "udp", ".", []string{"control", "cache", "forward"}, "miss"},
			{"x.example.net.", "A", "udp", ".", []string{"control", "cache"}, "hit (success)"},
		} {
			args := []string{"explain", "-s", filepath.Join(s.folder, "ctl.sock"), "-json", q.name, q.qtype, "-t", q.transport, "-c", "127.0.0.9"}
			out, errs, status := run(t, s.folder, "", args...)
			var got struct {
				Zone, Reply string
				Steps       []struct {
					Plugin string
					Notes  []string
				}
			}
			if err := json.Unmarshal([]byte(out), &got); err != nil || status != 0 {
				t.Fatalf("%v: %v, status %d, %q", q, err, status, errs)
			}
			var plugins, notes []string
			for _, step := range got.Steps {
				plugins, notes = append(plugins, step.Plugin), append(notes, step.Notes...)
			}
			if got.Zone != q.block || !slices.Equal(plugins, q.plugins) || !strings.Contains(strings.Join(notes, "\n"), q.note) {
				t.Errorf("%v %s: block %s, plugins %v, notes %q", q, lane, got.Zone, plugins, notes)
			}
			if q.note == "miss" && !strings.Contains(strings.Join(notes, "\n"), up+" over udp: NOERROR after ") {
				t.Errorf("notes are %q", notes)
			}
			if q.note == "miss" { // the client's question is to be one, too
				s.must("cache", "flush", q.name)
			}
			// The client asks afterwards: what is cached may be a second older by then.
			client := s.ask(q.transport, q.name, dns.StringToType[q.qtype])
			explained := withoutID(got.Reply)
			if want := withoutID(plainReply(client)); withoutTTL(explained) != withoutTTL(want) {
				t.Errorf("%v %s: explained\n%s\nthe client got\n%s", q, lane, explained, want)
			}
		}
		human, _, _ := run(t, s.folder, "", "explain", "-s", filepath.Join(s.folder, "ctl.sock"), "a.example.org")
		if !strings.Contains(human, "Block:    example.org.") || !strings.Contains(human, ";; ANSWER SECTION:\na.example.org.") {
			t.Errorf("explained:\n%s", human)
		}
		once, errs, status := run(t, s.folder, "", "explain", "-once", "x.example.net")
		if status != 0 || !strings.Contains(once, "- miss") || !strings.Contains(once, "192.0.2.1") {
			t.Errorf("once: status %d, %s\n%s", status, errs, once)
		}
	}
}

// A terminal is not told to do what an upstream's words say.
func TestExplainIsForTerminals(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "Corefile"), ". {\ntemplate IN A {\nrcode SERVFAIL\nederror 15 \"gr\u00fcn \x1b[31mred\x07 \u009b2J\"\n}\n}\n")
	out, errs, status := run(t, folder, "", "explain", "-once", "x.example.org")
	if status != 0 || !strings.Contains(out, "gr\u00fcn .[31mred. .2J") || strings.ContainsAny(out, "\x1b\x07\u009b") {
		t.Errorf("status %d, %s\n%q", status, errs, out)
	}
	raw, _, _ := run(t, folder, "", "explain", "-once", "-json", "x.example.org")
	if !strings.Contains(raw, `\u001b[31mred`) {
		t.Errorf("as JSON: %s", raw)
	}
}

// What a plugin did is the return code of what it wrote, and the block is that of the client's question, wherever an alias leads.
func TestExplainTellsWhatWasWritten(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "Corefile"), "example.org {\nacl {\nblock type TXT\ndrop type MX\n}\nrewrite rcode exact none.example.org NXDOMAIN NOERROR\n"+
		"template IN A alias.example.org {\nanswer \"{{ .Name }} 60 IN CNAME www.example.net.\"\n}\ntemplate ANY ANY none.example.org {\nrcode NXDOMAIN\n}\nwhoami\n}\n"+
		"example.net {\ntemplate IN A {\nanswer \"{{ .Name }} 60 IN A 192.0.2.1\"\n}\n}\n")
	for _, q := range []struct{ name, qtype, steps, note string }{
		{"a.example.org", "TXT", "rewrite REFUSED, acl REFUSED wrote", ""},
		{"a.example.org", "MX", "rewrite -, acl -", ""},
		{"a.example.org", "TYPE65280", "rewrite NOERROR, acl NOERROR, template NOERROR, whoami NOERROR wrote", ""},
		{"none.example.org", "A", "rewrite NOERROR, acl NXDOMAIN, template NXDOMAIN wrote", ""},
		{"alias.example.org", "A", "rewrite NOERROR, acl NOERROR, template NOERROR wrote, template NOERROR wrote", "looks up www.example.net. A in block example.net."},
	} {
		out, errs, status := run(t, folder, "", "explain", "-once", "-json", q.name, q.qtype)
		var got struct {
			Zone  string
			Steps []struct {
				Plugin, Rcode string
				Wrote         bool
				Notes         []string
			}
		}
		if err := json.Unmarshal([]byte(out), &got); err != nil || status != 0 {
			t.Fatalf("%v: %v, status %d, %q", q, err, status, errs)
		}
		var steps, notes []string
		for _, s := range got.Steps {
			step := s.Plugin + " " + s.Rcode
			if s.Wrote {
				step += " wrote"
			}
			steps, notes = append(steps, step), append(notes, s.Notes...)
		}
		if got := strings.Join(steps, ", "); got != q.steps {
			t.Errorf("%s %s: %s, want %s", q.name, q.qtype, got, q.steps)
		}
		if got.Zone != "example.org." || strings.Join(notes, "\n") != q.note {
			t.Errorf("%s %s: block %s, notes %q", q.name, q.qtype, got.Zone, notes)
		}
	}
}

func withoutID(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if at := strings.Index(l, ", id: "); at >= 0 {
			lines[i] = l[:at]
		}
	}
	return strings.Join(lines, "\n")
}

// withoutTTL is a text with TTLs that count down left out.
func withoutTTL(text string) string {
	var out []string
	for _, l := range strings.Split(text, "\n") {
		f := strings.Split(l, "\t")
		if len(f) > 4 && f[0] == "x.example.net." {
			f[1] = "TTL"
		}
		out = append(out, strings.Join(f, "\t"))
	}
	return strings.Join(out, "\n")
}

// A reload tells its result; the socket and what was counted go on.
func TestControlReload(t *testing.T) {
	corefile := ".:PORT {\nbind 127.0.0.1\ncontrol ctl.sock\nwhoami\n}\n"
	s := serve(t, corefile)
	for range 3 {
		s.ask("udp", "Www.example.org.", dns.TypeTXT)
	}
	s.ask("tcp", "www.example.net.", dns.TypeA)
	if info, err := os.Stat(filepath.Join(s.folder, "ctl.sock")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, mode %v", err, info.Mode())
	}
	s.write(strings.Replace(corefile, "whoami", "whoamy", 1))
	if _, errs, status := s.ctl("reload"); status != 1 || !strings.Contains(errs, "Unknown directive 'whoamy': did you mean 'whoami'?") {
		t.Errorf("status %d, %q", status, errs)
	}
	s.write(strings.Replace(corefile, "whoami", "log\nwhoami", 1))
	if out := s.must("reload"); !strings.HasPrefix(out, "reloaded in ") {
		t.Errorf("said %q", out)
	}
	s.ask("udp", "www.example.org.", dns.TypeTXT)
	if out := s.must("top", "names", "1"); !strings.Contains(out, "1      4        80.00 %  www.example.org.") || !strings.HasSuffix(out, "of 5\n") {
		t.Errorf("top is\n%s", out)
	}
	if out := s.must("top", "clients"); !strings.Contains(out, "127.0.0.1\n") {
		t.Errorf("top is\n%s", out)
	}
	if out := s.must("top", "types"); !strings.Contains(out, "80.00 %  TXT\n") || !strings.Contains(out, "20.00 %  A\n") {
		t.Errorf("top is\n%s", out)
	}
	if s.must("top", "reset"); !strings.Contains(s.must("top"), "of 0\n") {
		t.Error("the counts go on")
	}
	for _, command := range []string{"status", "zones", "transfers", "connections", "limits", "certificates", "log debug", "cache"} {
		if out := s.must(strings.Fields(command)...); out == "" {
			t.Errorf("%s says nothing", command)
		}
	}
	if out := s.must("-json", "log"); !json.Valid([]byte(out)) || !strings.Contains(out, `"debug"`) {
		t.Errorf("log says %q", out)
	}
	for _, wrong := range [][]string{{}, {"no-such"}, {"cache", "flush"}, {"top", "no-such"}, {"top", "names", "0"}, {"tail", "x=y"}, {"cache", "get", "a", "NOTYPE"}, {"log", "loud"}, {"reload", "now"}} {
		if _, errs, status := s.ctl(wrong...); status == 0 || errs == "" {
			t.Errorf("ctl %v: status %d, %q", wrong, status, errs)
		}
	}
}

// Who reloads into a configuration without control is told of it, and the socket is gone then.
func TestControlReloadsAway(t *testing.T) {
	corefile := ".:PORT {\nbind 127.0.0.1\ncontrol ctl.sock\nwhoami\n}\n"
	s := serve(t, corefile)
	s.write(strings.Replace(corefile, "control ctl.sock\n", "", 1))
	began := time.Now()
	if out := s.must("reload"); !strings.HasPrefix(out, "reloaded in ") || time.Since(began) > 4*time.Second {
		t.Errorf("said %q after %s", out, time.Since(began))
	}
	if _, errs, status := s.ctl("status"); status == 0 || errs == "" {
		t.Errorf("the socket is still there: status %d, %q", status, errs)
	}
	s.ask("udp", "www.example.org.", dns.TypeTXT)
}

// Who watches queries does not hold up the end.
func TestControlTailEnds(t *testing.T) {
	s := serve(t, ".:PORT {\nbind 127.0.0.1\ncontrol ctl.sock\nwhoami\n}\n")
	client := http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("unix", filepath.Join(s.folder, "ctl.sock"))
	}}}
	reply, err := client.Get("http://localhost/v1/tail")
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	began := time.Now()
	s.must("drain")
	if err := <-s.ended; err != nil || time.Since(began) > 3*time.Second {
		t.Errorf("%v after %s", err, time.Since(began))
	}
}

// A tail shows the queries that fit, as they are answered.
func TestControlTail(t *testing.T) {
	s := serve(t, ".:PORT {\nbind 127.0.0.1\ncontrol ctl.sock\nwhoami\n}\nbad.example:PORT {\nbind 127.0.0.1\nforward . "+loopback.Addr()+"\n}\n")
	client := http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("unix", filepath.Join(s.folder, "ctl.sock"))
	}}}
	follow := func(q url.Values) *bufio.Scanner {
		reply, err := client.Get("http://localhost/v1/tail?" + q.Encode())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { reply.Body.Close() })
		return bufio.NewScanner(reply.Body)
	}
	some := follow(url.Values{"name": {"example.org"}, "type": {"A"}, "n": {"2"}})
	failed := follow(url.Values{"failed": {"true"}, "n": {"1"}})
	s.ask("udp", "x.example.net.", dns.TypeA)
	s.ask("udp", "x.example.org.", dns.TypeTXT)
	s.ask("udp", "one.example.org.", dns.TypeA)
	s.ask("tcp", "two.example.org.", dns.TypeA)
	s.ask("udp", "x.bad.example.", dns.TypeA)
	for _, tc := range []struct {
		in                       *bufio.Scanner
		name, proto, rcode, errs string
	}{{some, "one.example.org.", "udp", "NOERROR", ""}, {some, "two.example.org.", "tcp", "NOERROR", ""}, {failed, "x.bad.example.", "udp", "SERVFAIL", "refused"}} {
		if !tc.in.Scan() {
			t.Fatalf("it ended before %s: %v", tc.name, tc.in.Err())
		}
		var got struct{ Name, Proto, Rcode, Error string }
		if err := json.Unmarshal(tc.in.Bytes(), &got); err != nil || got.Name != tc.name || got.Proto != tc.proto || got.Rcode != tc.rcode || !strings.Contains(got.Error, tc.errs) {
			t.Errorf("%v, got %s, want %v", err, tc.in.Bytes(), tc)
		}
	}
	if some.Scan() || failed.Scan() {
		t.Error("they go on")
	}
}

// What has come when the server is drained is answered, and the process ends.
func TestControlDrain(t *testing.T) {
	s := serve(t, ".:PORT {\nbind 127.0.0.1\ncontrol ctl.sock\nerratic {\ndrop 0\ndelay 1 700ms\n}\n}\n")
	const queries = 40
	var asked sync.WaitGroup
	var sent sync.WaitGroup
	sent.Add(queries)
	for i := range queries {
		asked.Go(func() {
			conn, err := dns.Dial([]string{"udp", "tcp"}[i%2], s.addr)
			if err != nil {
				t.Error(err)
				sent.Done()
				return
			}
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(10 * time.Second))
			err = conn.WriteMsg(new(dns.Msg).SetQuestion(fmt.Sprintf("q%d.example.org.", i), dns.TypeA))
			sent.Done()
			if err != nil {
				t.Error(err)
				return
			}
			if m, err := conn.ReadMsg(); err != nil || len(m.Answer) != 1 {
				t.Errorf("query %d is lost: %v, %v", i, err, m)
			}
		})
	}
	sent.Wait()
	if out := s.must("drain"); !strings.Contains(out, fmt.Sprint(s.process.Process.Pid)) {
		t.Errorf("said %q", out)
	}
	asked.Wait()
	select {
	case err := <-s.ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("it goes on")
	}
	if _, err := os.Stat(filepath.Join(s.folder, "ctl.sock")); err == nil {
		t.Error("the socket is still there")
	}
	if _, errs, status := s.ctl("status"); status != 1 || !strings.Contains(errs, "no server at ") {
		t.Errorf("status %d, %q", status, errs)
	}
}
