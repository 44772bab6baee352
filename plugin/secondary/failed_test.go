package secondary

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	_ "github.com/coredns/coredns/plugin/auto"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/cookie"
	_ "github.com/coredns/coredns/plugin/dnssec"
	_ "github.com/coredns/coredns/plugin/dynupdate"
	_ "github.com/coredns/coredns/plugin/hosts"
	_ "github.com/coredns/coredns/plugin/loadbalance"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	_ "github.com/coredns/coredns/plugin/trace"

	"github.com/coredns/caddy"
)

// A reload that fails because a plugin cannot start leaves nothing behind of those that have started before it.
func TestFailedReload(t *testing.T) {
	logtest.Capture(t)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"db.a.example": "$TTL 5\n@ IN SOA ns h 1 2 3 4 5\n@ NS ns\n", "hosts": "192.0.2.1 a.example\n",
		"weights": "a.example\n192.0.2.1 1\n", "secrets": "e5e973e5a6b2a43f48e7dc849e37bfcf\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	db := filepath.Join(dir, "db.a.example")
	good := ".:0 {\nbind 127.0.0.1\ntrace 127.0.0.1:9\ncookie {\nsecret_file " + filepath.Join(dir, "secrets") + "\n}\ncache\n" +
		"loadbalance weighted " + filepath.Join(dir, "weights") + "\nhosts " + filepath.Join(dir, "hosts") + "\ntransfer {\nto 127.0.0.1:9\n}\n" +
		"dnssec\nfile " + db + " b.example\nauto {\ndirectory " + dir + "\n}\n" +
		"dynupdate d.example {\nfile " + db + "\ndatabase " + filepath.Join(dir, "updates") + "\nallow key. * *\n}\n"
	bad := good + "secondary c.example {\ntransfer from 127.0.0.1:1\ntsig none.\n}\n}\n"
	input := func(text string) caddy.Input {
		return caddy.CaddyfileInput{Filepath: "Corefile", Contents: []byte(text), ServerTypeName: "dns"}
	}
	dnsserver.Quiet = true
	i, err := caddy.Start(input(good + "}\n"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { i.ShutdownCallbacks(); i.Stop() }()
	if _, err := i.Restart(input(bad)); err == nil {
		t.Fatal("a key that is not there is no error")
	}
	// The first time some are made that stay, as for the process.
	before := runtime.NumGoroutine()
	const times = 40 // more than there are of before, which may end meanwhile
	for range times {
		if _, err := i.Restart(input(bad)); err == nil {
			t.Fatal("a key that is not there is no error")
		}
	}
	// What tells secondaries may have to wait for one that does not answer.
	for end := time.Now().Add(30 * time.Second); runtime.NumGoroutine() > before+times/2; {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
