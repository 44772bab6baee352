package program

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/loopback"

	"github.com/miekg/dns"
)

// stamp is a plugin that puts a record with its name into each reply that passes it.
const stamp = `package %[1]s

import (
	"context"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/nonwriter"

	"github.com/miekg/dns"
)

const name = "%[1]s"

func init() {
	plugin.Register(name, func(c *caddy.Controller) error {
		dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler { return stamp{next} })
		return nil
	})
}

type stamp struct{ next plugin.Handler }

func (stamp) Name() string { return name }

func (s stamp) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	nw := nonwriter.New(w)
	if rcode, err := plugin.NextOrFailure(name, s.next, ctx, nw, r); nw.Msg == nil {
		return rcode, err
	}
	m := nw.Msg.Copy()
	m.Extra = append(m.Extra, &dns.TXT{Hdr: dns.RR_Header{Name: "stamp.", Rrtype: dns.TypeTXT, Class: dns.ClassINET}, Txt: []string{name}})
	return dns.RcodeSuccess, w.WriteMsg(m)
}
`

// A build has plugins of modules from elsewhere, each in the place that was asked for; the sources do not change.
func TestCustomBuild(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"north", "east", "south"} {
		folder := filepath.Join(dir, name)
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		files := map[string]string{name + ".go": fmt.Sprintf(stamp, name), "go.mod": "module example.org/" + name + "\n"}
		if name == "south" {
			delete(files, "go.mod") // a mere folder
		}
		for file, text := range files {
			if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	// What docs/PLUGINS.md builds works in a folder of its own, too.
	if err := os.CopyFS(filepath.Join(dir, "notype3"), os.DirFS(filepath.Join(root, "examples", "plugin", "notype3"))); err != nil {
		t.Fatal(err)
	}
	before := status(t)
	binary := filepath.Join(dir, "server")
	plugins := fmt.Sprintf("%[1]s/south before=whoami, %[1]s/north after=acl, east:%[1]s/east after=acl, %[1]s/notype3 before=cache", dir)
	build := makeAsTests(t, "custom", "PLUGINS="+plugins, "BINARY="+binary)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if after := status(t); after != before {
		t.Errorf("the sources have changed from %q to %q", before, after)
	}

	addr := loopback.Addr()
	_, port, _ := strings.Cut(addr, ":")
	corefile := filepath.Join(dir, "Corefile")
	if err := os.WriteFile(corefile, []byte(".:"+port+" {\nbind 127.0.0.1\nsouth\neast\nnorth\nnotype3 AAAA\nwhoami\n}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	server := exec.Command(binary, "-conf", corefile)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		server.Process.Kill()
		server.Wait()
	}()
	stamps := ""
	for end := time.Now().Add(30 * time.Second); stamps == "" && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		m, err := dns.Exchange(new(dns.Msg).SetQuestion("example.org.", dns.TypeA), addr)
		if err != nil {
			continue // it is not there yet
		}
		for _, rr := range m.Extra {
			if txt, ok := rr.(*dns.TXT); ok {
				stamps += txt.Txt[0] + " "
			}
		}
	}
	if stamps != "south east north " { // from the innermost
		t.Errorf("the reply passed %s", stamps)
	}
	m, err := dns.Exchange(new(dns.Msg).SetQuestion("example.org.", dns.TypeAAAA), addr)
	if err != nil || m.Rcode != dns.RcodeSuccess || len(m.Answer) > 0 || strings.Contains(m.String(), "SRV") {
		t.Errorf("notype3 has not denied AAAA: %v, %v", m, err)
	}
}

// status is what has changed in the sources, as git has it.
func status(t *testing.T) string {
	t.Helper()
	c := exec.Command("git", "status", "--short")
	c.Dir = root
	out, err := c.Output()
	if err != nil {
		t.Skipf("the sources are not those of git: %v", err)
	}
	return string(out)
}

// A build that cannot be made says why, and which of the plugins it is.
func TestCustomBuildFails(t *testing.T) {
	for plugins, want := range map[string]string{
		"":                      "no plugin: a plugin is [NAME:]PACKAGE[@VERSION]",
		"x:./plugin/whoami":     `its package registers ["whoami"], not x`,
		"./plugin/whoami":       "the build has a plugin whoami already",
		"./not/there after=acl": "./not/there is not a folder",
	} {
		binary := filepath.Join(t.TempDir(), "server")
		build := makeAsTests(t, "custom", "PLUGINS="+plugins, "BINARY="+binary)
		out, err := build.CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v\n%s", plugins, err, out)
		}
		if _, err := os.Stat(binary); err == nil {
			t.Errorf("%s: there is a program", plugins)
		}
	}
}
