package test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/etcd/etcdtest"
	"github.com/coredns/coredns/plugin/etcd/msg"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/loopback"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// put writes a service.
func put(t *testing.T, s *etcdtest.Server, name, value string) {
	t.Helper()
	if _, err := s.Client.Put(context.Background(), msg.Path(name, "skydns"), value); err != nil {
		t.Fatal(err)
	}
}

// What has been written to etcd is in the next answer.
func TestEtcdAnswersWhatIsWritten(t *testing.T) {
	s := etcdtest.Start(t, zap.NewNop())
	_, udp, _ := start(t, ".:0 {\nbind 127.0.0.1\netcd skydns.test {\nendpoint "+s.URL+"\n}\n}")
	for i := range 200 {
		addr := fmt.Sprintf("192.0.2.%d", i)
		put(t, s, "a.web.skydns.test", `{"host":"`+addr+`"}`)
		if got, want := brief(ask(t, "udp", udp, question("web.skydns.test.", dns.TypeA))), "NOERROR aa | web.skydns.test. 300 A "+addr+" | "; got != want {
			t.Fatalf("after %d changes: %s", i, got)
		}
	}
}

// A zone of etcd is exported as a master file.
func TestEtcdZoneIsExported(t *testing.T) {
	s := etcdtest.Start(t, zap.NewNop())
	put(t, s, "a.web.skydns.test", `{"host":"192.0.2.1"}`)
	socket := filepath.Join(loopback.Folder(t), "control.sock")
	start(t, ".:0 {\nbind 127.0.0.1\ncontrol "+socket+"\netcd skydns.test {\nendpoint "+s.URL+"\n}\n}")
	client := http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", socket) }}}
	t.Cleanup(client.CloseIdleConnections)
	reply, err := client.Get("http://localhost/v1/zones/export?name=skydns.test")
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if err != nil || len(lines) != 2 || !strings.Contains(lines[0], "SOA") || lines[1] != "a.web.skydns.test.\t300\tIN\tA\t192.0.2.1" {
		t.Errorf("%v: %s", err, text)
	}
}

// A service that leads to a name of the zone which etcd does not have is answered with what others have there; services
// that lead to one another are given up.
func TestEtcdAliasIntoAChild(t *testing.T) {
	s := etcdtest.Start(t, zap.NewNop())
	dir := aliasWorld(t)
	for name, value := range map[string]string{
		"app.corp.test": `{"host":"app.dyn.corp.test"}`, "gone.corp.test": `{"host":"gone.dyn.corp.test"}`, "srv.corp.test": `{"host":"app.dyn.corp.test","port":80}`,
		"one.a.test": `{"host":"two.b.test"}`, "two.b.test": `{"host":"one.a.test"}`,
	} {
		put(t, s, name, value)
	}
	if err := os.WriteFile(dir+"/db.two", []byte("$ORIGIN c.test.\n@ 60 IN SOA ns h 1 2 3 4 5\n@ 60 IN NS ns\nround 60 IN CNAME round.corp.test.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	put(t, s, "round.corp.test", `{"host":"round.c.test"}`)
	_, udp, _ := start(t, ".:0 {\nbind 127.0.0.1\nlanespy\netcd corp.test a.test b.test {\nendpoint "+s.URL+"\n}\n}\ndyn.corp.test:0 {\nbind 127.0.0.1\nfile "+dir+"/db.dyn\n}\nc.test:0 {\nbind 127.0.0.1\nfile "+dir+"/db.two\n}")
	for name, want := range map[string]string{
		"app.corp.test. A":    "NOERROR aa | app.corp.test. 300 CNAME app.dyn.corp.test.; app.dyn.corp.test. 100 A 192.0.2.42 | ",
		"app.corp.test. AAAA": "NOERROR aa |  | corp.test. 30 SOA",
		"gone.corp.test. A":   "NOERROR aa |  | corp.test. 30 SOA",
	} {
		var typ string
		fmt.Sscan(name, &name, &typ)
		if got := brief(ask(t, "udp", udp, question(name, dns.StringToType[typ]))); got != want {
			t.Errorf("%s %s: %s\nwant %s", name, typ, got, want)
		}
	}
	m := ask(t, "udp", udp, question("srv.corp.test.", dns.TypeSRV))
	if m == nil || len(m.Answer) != 1 || len(m.Extra) != 1 || m.Extra[0].Header().Name != "app.dyn.corp.test." {
		t.Errorf("SRV: %v", m)
	}
	for _, name := range []string{"one.a.test.", "round.corp.test."} {
		before := asMessages.Load()
		if m := ask(t, "udp", udp, question(name, dns.TypeA)); m == nil {
			t.Errorf("%s: no reply", name)
		}
		if n := asMessages.Load() - before; n > 12 {
			t.Errorf("%s: %d questions", name, n)
		}
	}
}

// etcdKeys is how many keys below a path the metrics say are kept.
func etcdKeys(t *testing.T, path string) float64 {
	t.Helper()
	all, err := prometheus.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range all {
		for _, m := range family.GetMetric() {
			if family.GetName() == "coredns_etcd_keys" && m.GetLabel()[0].GetValue() == path {
				return m.GetGauge().GetValue()
			}
		}
	}
	return 0
}

// A reload forgets nothing of what is kept of an etcd that is away, and the changes are followed when it is back.
func TestEtcdReloadWhileAway(t *testing.T) {
	s := etcdtest.Start(t, zap.NewNop())
	put(t, s, "a.web.skydns.test", `{"host":"192.0.2.1"}`)
	corefile := func(n int) string {
		return fmt.Sprintf("# %d\n.:0 {\nbind 127.0.0.1\netcd skydns.test {\nendpoint %s\nwatch\n}\n}", n, s.URL)
	}
	i, udp, _, err := CoreDNSServerAndPorts(corefile(0))
	if err != nil {
		t.Fatal(err)
	}
	r := &running{i}
	t.Cleanup(r.end)
	udp = loopback.To(udp)
	web := func() string { return brief(ask(t, "udp", udp, question("web.skydns.test.", dns.TypeA))) }
	const first = "NOERROR aa | web.skydns.test. 300 A 192.0.2.1 | "
	eventually.Holds(t, "the first answer", func() bool { return web() == first })
	eventually.Holds(t, "the copy", func() bool { return etcdKeys(t, "/skydns/") == 1 }) // the answer may be etcd's own
	serial := brief(ask(t, "udp", udp, question("skydns.test.", dns.TypeSOA)))
	s.Kill()
	for n := 1; n < 4; n++ {
		next, err := r.instance.Restart(NewInput(corefile(n)))
		if err != nil {
			t.Fatal(err)
		}
		r.instance = next
		if got := web(); got != first {
			t.Fatalf("after reload %d: %s", n, got)
		}
	}
	if got := brief(ask(t, "udp", udp, question("skydns.test.", dns.TypeSOA))); got != serial {
		t.Errorf("the serial was %s and is %s", serial, got)
	}
	s.Run()
	put(t, s, "a.web.skydns.test", `{"host":"192.0.2.2"}`)
	eventually.Holds(t, "the change", func() bool { return web() == "NOERROR aa | web.skydns.test. 300 A 192.0.2.2 | " })
}
