package test

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/loopback"

	"github.com/miekg/dns"
)

// While the process is in lameduck mode it answers as before, whatever takes an upstream: those end only when no listener is left.
func TestLameduckForwards(t *testing.T) {
	dir := t.TempDir()
	certificates(t, dir)
	plain, tls, grpc := loopback.Port(), loopback.Port(), loopback.Port()
	start(t, fmt.Sprintf(`dns://.:%d tls://.:%d grpc://.:%d {
		bind 127.0.0.1
		tls %[4]s/cert.pem %[4]s/key.pem %[4]s/ca.pem
		template IN A {
			answer "{{ .Name }} 1 IN A 192.0.2.1"
		}
	}`, plain, tls, grpc, dir))
	for name, upstream := range map[string]string{
		"udp":  fmt.Sprintf("forward . 127.0.0.1:%d {\nmax_concurrent 1000\n}", plain),
		"tls":  fmt.Sprintf("forward . tls://127.0.0.1:%d {\ntls %s\ntls_servername ns.example.org\n}", tls, filepath.Join(dir, "ca.pem")),
		"grpc": fmt.Sprintf("grpc . 127.0.0.1:%d {\ntls %s\ntls_servername ns.example.org\n}", grpc, filepath.Join(dir, "ca.pem")),
	} {
		t.Run(name, func(t *testing.T) { lameduckForwards(t, upstream) })
	}
}

func lameduckForwards(t *testing.T, upstream string) {
	const lameduck = time.Second
	i, udp, tcp, err := CoreDNSServerAndPorts(fmt.Sprintf(".:0 {\nbind 127.0.0.1\nerrors\nhealth %s {\nlameduck %s\n}\nready %s\ncache 30\n%s\nloop\nreload\nloadbalance\n}",
		loopback.Addr(), lameduck, loopback.Addr(), upstream))
	if err != nil {
		t.Fatal(err)
	}
	var n atomic.Int32
	fresh := func() *dns.Msg { return question(fmt.Sprintf("q%d.example.org.", n.Add(1)), dns.TypeA) }
	if m := ask(t, "udp", udp, fresh()); m == nil || len(m.Answer) != 1 {
		t.Fatalf("before: got %v", m)
	}
	begin, ended := time.Now(), make(chan struct{})
	go func() {
		defer close(ended)
		if errs := i.ShutdownCallbacks(); len(errs) > 0 {
			t.Error(errs)
		}
	}()
	asked := 0
	for time.Since(begin) < lameduck*8/10 {
		for network, addr := range map[string]string{"udp": udp, "tcp": tcp} {
			if m := ask(t, network, addr, fresh()); m == nil || m.Rcode != dns.RcodeSuccess || len(m.Answer) != 1 {
				t.Fatalf("%s, %s after the beginning: got %v", network, time.Since(begin), m)
			}
			asked++
		}
		time.Sleep(10 * time.Millisecond)
	}
	select {
	case <-ended:
		t.Error("it has ended before its time")
	default:
	}
	<-ended
	if took := time.Since(begin); took < lameduck {
		t.Errorf("it has ended after %s", took)
	}
	CoreDNSServerStop(i)
	if m := ask(t, "tcp", tcp, fresh()); m != nil {
		t.Errorf("it answers on: %v", m)
	}
	if asked < 10 {
		t.Errorf("only %d queries", asked)
	}
}
