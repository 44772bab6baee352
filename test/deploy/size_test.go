package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/custom"
)

// entries is the list of plugins in a file of the module's folder.
func entries(t *testing.T, name string) []custom.Entry {
	t.Helper()
	f, err := os.Open(filepath.Join("../..", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := custom.ReadList(f, name)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// What the server for clusters has is in the other, too, and in the same order.
func TestClusterListIsPart(t *testing.T) {
	all := entries(t, custom.ListFile)
	for _, e := range entries(t, "plugin.cfg.k8s") {
		for len(all) > 0 && (all[0].Name != e.Name || all[0].Package != e.Package) {
			all = all[1:]
		}
		if len(all) == 0 {
			t.Fatalf("%s: %s:%s is not in plugin.cfg, or stands higher there", e.Where, e.Name, e.Package)
		}
	}
}

// stock is a cluster's Corefile, as docs/KUBERNETES.md has it.
const stock = `.:53 {
    errors
    health {
        lameduck 5s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        endpoint http://localhost:8001
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl 30
    }
    prometheus :9153
    forward . 192.0.2.53
    cache 30
    loop
    reload
    loadbalance
}
`

// The programs that make builds are as small as they are to be, and the one for clusters takes a cluster's Corefile.
func TestSizes(t *testing.T) {
	if testing.Short() {
		t.Skip("builds two servers")
	}
	if runtime.GOOS+runtime.GOARCH != "linuxamd64" {
		t.Skip("sizes are those of linux/amd64")
	}
	tool(t, "make", "make")
	for _, tc := range []struct {
		target string
		most   int64 // octets
	}{{"coredns", 48e6}, {"k8s", 28e6}} {
		binary := filepath.Join(t.TempDir(), "coredns")
		if out, err := exec.Command("make", "-C", "../..", tc.target, "CHECKS=", "BINARY="+binary).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", tc.target, err, out)
		}
		info, err := os.Stat(binary)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d octets", tc.target, info.Size())
		if info.Size() > tc.most {
			t.Errorf("%s: %d octets, more than %d", tc.target, info.Size(), tc.most)
		}
		corefile := filepath.Join(t.TempDir(), "Corefile")
		if err := os.WriteFile(corefile, []byte(stock), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(binary, "validate", "-conf", corefile).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", tc.target, err, out)
		}
		out, err := exec.Command(binary, "-plugins").CombinedOutput()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(out), "template"); got != (tc.target == "coredns") {
			t.Errorf("%s has template: %v", tc.target, got)
		}
	}
}
