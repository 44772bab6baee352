package program

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
)

// reference is the directives and flags of CoreDNS 1.14.7.
var reference = struct{ directives, flags []string }{
	strings.Fields(`root metadata geoip cancel proxyproto quic grpc_server https https3 timeouts multisocket reload nsid bufsize bind debug
		trace ready health pprof shed prometheus errors log dnstap local dns64 any chaos loadbalance tsig rewrite autopath acl cache header dnssec
		tls minimal template transfer hosts route53 azure clouddns k8s_external kubernetes file auto secondary etcd loop forward grpc erratic
		whoami on sign view nomad`),
	strings.Fields("conf p dns.port pidfile plugins quiet version"),
}

// The page of differences names each directive, flag and metric that is ours, stays short, and is found.
func TestDifferences(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "DIFFERENCES.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	if n := strings.Count(page, "\n"); n > 80 {
		t.Errorf("it has %d lines", n)
	}
	if main, err := os.ReadFile(filepath.Join(root, "README.md")); err != nil || !strings.Contains(string(main), "(docs/DIFFERENCES.md)") {
		t.Errorf("the README does not lead there: %v", err)
	}
	for _, d := range dnsserver.Directives {
		if ours := !slices.Contains(reference.directives, d); ours && !strings.Contains(page, "*"+d+"*") {
			t.Errorf("the directive %s is missing", d)
		}
	}
	_, usage, _ := run(t, t.TempDir(), "", "-help")
	for _, m := range regexp.MustCompile(`(?m)^  -([a-z.-]+)`).FindAllStringSubmatch(usage, -1) {
		if ours := !slices.Contains(reference.flags, m[1]) && !strings.HasPrefix(m[1], "test."); ours && !strings.Contains(page, "`-"+m[1]+"`") {
			t.Errorf("the flag -%s is missing", m[1])
		}
	}
	readmes, err := filepath.Glob(filepath.Join(root, "plugin", "*", "README.md"))
	if err != nil || len(readmes) == 0 {
		t.Fatal(readmes, err)
	}
	known := map[string]bool{}
	for _, name := range readmes {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("`(coredns_[a-z0-9_]+)").FindAllStringSubmatch(string(text), -1) {
			known[m[1]] = true
		}
	}
	for _, m := range regexp.MustCompile("`(coredns_[a-z0-9_]+)`").FindAllStringSubmatch(page, -1) {
		if !known[m[1]] {
			t.Errorf("no README knows the metric %s", m[1])
		}
	}
}
