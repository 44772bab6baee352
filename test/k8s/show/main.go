// Command show serves the stock Corefile of a cluster from a real Kubernetes API on this machine, asks it what
// pods ask, and prints the answers. It goes on serving until it is interrupted.
//
//	go run ./test/k8s/show -server ./coredns
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/coredns/coredns/test/clusterbed"

	"github.com/miekg/dns"
)

// lookups are what is asked, in this order.
var lookups = []struct{ what, name, typ string }{
	{"a service with a cluster IP", "cart.shop.svc.cluster.local", "A"},
	{"and its other address family", "cart.shop.svc.cluster.local", "AAAA"},
	{"where its port https is", "_https._tcp.cart.shop.svc.cluster.local", "SRV"},
	{"a headless service: all its endpoints", "db.shop.svc.cluster.local", "A"},
	{"one of them, by hostname", "db-0.db.shop.svc.cluster.local", "A"},
	{"a service elsewhere", "elsewhere.shop.svc.cluster.local", "CNAME"},
	{"a pod, by address", "10-244-10-1.shop.pod.cluster.local", "A"},
	{"the name of an address", "1.10.96.10.in-addr.arpa", "PTR"},
	{"no such service: a search list goes on", "www.example.org.shop.svc.cluster.local", "A"},
	{"the version of the specification", "dns-version.cluster.local", "TXT"},
}

func main() {
	log.SetFlags(0)
	server := flag.String("server", "./coredns", "the server's program")
	port := flag.Int("port", 1053, "port to serve on")
	once := flag.Bool("once", false, "end after the lookups")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *server, *port, *once); err != nil {
		log.Fatal(err)
	}
}

// run serves until ctx ends. All it has started has ended when it returns.
func run(ctx context.Context, server string, port int, once bool) (err error) {
	own := new(holder)
	defer own.end()
	defer func() {
		if failed, ok := recover().(failure); ok {
			err = failed
		}
	}()
	fmt.Println("Starting etcd and kube-apiserver ...")
	bed := clusterbed.Start(own, clusterbed.Options{})
	bed.Apply("fixture.yaml", "fixture-status.yaml")

	corefile := filepath.Join(own.TempDir(), "Corefile")
	text := fmt.Sprintf(stock, port, bed.DNSKubeconfig)
	if err := os.WriteFile(corefile, []byte(text), 0o644); err != nil {
		return err
	}
	fmt.Printf("\nThe Corefile:\n\n%s\n", text)
	cmd := exec.CommandContext(ctx, server, "-conf", corefile)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s (make build makes it): %w", server, err)
	}
	defer func() {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
	}()
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	if err := serving(ctx, addr); err != nil {
		return err
	}
	for _, l := range lookups {
		if err := show(addr, l.what, l.name, l.typ); err != nil {
			return err
		}
	}
	if once {
		return nil
	}
	fmt.Printf("\nThe server goes on, on %s; the API is %s, and KUBECONFIG=%s may do all there.\nControl-C ends everything.\n", addr, bed.URL, bed.AdminKubeconfig)
	<-ctx.Done()
	return nil
}

// stock is what clusters ship, but for the port, the way to the API and the addresses of health and metrics.
const stock = `.:%d {
    bind 127.0.0.1
    errors
    health 127.0.0.1:1080
    ready 127.0.0.1:1081
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        kubeconfig %s
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl 30
    }
    prometheus 127.0.0.1:1082
    forward . /etc/resolv.conf {
        max_concurrent 1000
    }
    cache 30
    loop
    reload
    loadbalance
}
`

// startLimit is how long the server may take until it answers from the API.
const startLimit = 30 * time.Second

func serving(ctx context.Context, addr string) error {
	m := new(dns.Msg)
	m.SetQuestion("kubernetes.default.svc.cluster.local.", dns.TypeA)
	for end := time.Now().Add(startLimit); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		if reply, err := dns.Exchange(m, addr); err == nil && len(reply.Answer) > 0 {
			return nil
		}
	}
	return errors.Join(fmt.Errorf("the server does not answer on %s", addr), ctx.Err())
}

// show asks and prints the answer.
func show(addr, what, name, typ string) error {
	m := new(dns.Msg)
	m.SetQuestion(dns.Fqdn(name), dns.StringToType[typ])
	reply, err := dns.Exchange(m, addr)
	if err != nil {
		return fmt.Errorf("asking for %s %s: %w", name, typ, err)
	}
	host, port, _ := strings.Cut(addr, ":")
	fmt.Printf("\n# %s\ndig @%s -p %s %s %s\n", what, host, port, name, typ)
	if len(reply.Answer) == 0 {
		fmt.Printf("    %s, no records\n", dns.RcodeToString[reply.Rcode])
	}
	for _, rr := range reply.Answer {
		fmt.Println("    " + rr.String())
	}
	return nil
}
