package cookie

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/pkg/zone/zonetest"

	"github.com/miekg/dns"
)

// ofHost splits the address of a server into what clients want to know separately.
func ofHost(addr string) (host, port string) {
	host, port, _ = strings.Cut(addr, ":")
	return host, port
}

// Real clients find our cookies good, and get on with a server that requires them.
func TestRealClients(t *testing.T) {
	bothLanes(t, func(t *testing.T) {
		t.Run("dig", func(t *testing.T) {
			path := zonetest.Program(t, "dig", "bind9-dnsutils")
			for options, want := range map[string]string{"": "(good)", "require": "BADCOOKIE, retrying"} {
				host, port := ofHost(serving(t, options)["udp"])
				out, err := exec.Command(path, "@"+host, "-p", port, "+cookie", "www.example.org", "A").CombinedOutput()
				if text := string(out); err != nil || !strings.Contains(text, want) || !strings.Contains(text, "(good)") || !strings.Contains(text, "qr aa rd") || strings.Contains(text, "COOKIE mismatch") {
					t.Errorf("%q: %v\n%s", options, err, text)
				}
			}
		})
		t.Run("kdig", func(t *testing.T) {
			path := zonetest.Program(t, "kdig", "knot-dnsutils")
			for options, want := range map[string]string{"": "COOKIE: ", "require": "bad cookie from"} {
				host, port := ofHost(serving(t, options)["udp"])
				out, err := exec.Command(path, "@"+host, "-p", port, "+cookie=2464c4abcf10c957", "www.example.org", "A").CombinedOutput()
				if text := string(out); err != nil || !strings.Contains(text, want) || !strings.Contains(text, "COOKIE: 2464C4ABCF10C95701000000") || !strings.Contains(text, "Flags: qr aa rd") {
					t.Errorf("%q: %v\n%s", options, err, text)
				}
			}
		})
	})
}

// peers are servers of different make that are given a secret.
var peers = map[string]struct {
	debian string
	args   []string
	conf   string // with the port, folder and secret
}{
	"named": {"bind9", []string{"-g", "-n", "1", "-c"}, `options {
	directory "%[2]s"; pid-file "%[2]s/pid"; session-keyfile "%[2]s/session.key";
	listen-on port %[1]d { 127.0.0.1; }; listen-on-v6 { none; };
	recursion no; dnssec-validation no;
	answer-cookie yes; require-server-cookie yes; cookie-algorithm siphash24; cookie-secret "%[3]s";
};
controls { };
zone "example.org" { type primary; file "%[2]s/zone"; };
`},
	"nsd": {"nsd", []string{"-d", "-c"}, `server:
  ip-address: 127.0.0.1@%[1]d
  username: ""
  zonesdir: "%[2]s"
  pidfile: "%[2]s/pid"
  xfrdfile: "%[2]s/xfrd"
  zonelistfile: "%[2]s/list"
  database: ""
  server-count: 1
  answer-cookie: yes
  cookie-secret: "%[3]s"
remote-control:
  control-enable: no
zone:
  name: example.org
  zonefile: "%[2]s/zone"
`},
	"knotd": {"knot", []string{"-c"}, `server:
  rundir: "%[2]s"
  listen: 127.0.0.1@%[1]d
database:
  storage: "%[2]s"
mod-cookies:
  - id: shared
    secret: "0x%[3]s"
template:
  - id: default
    global-module: mod-cookies/shared
zone:
  - domain: example.org
    file: "%[2]s/zone"
`},
}

// Servers of different make share a secret: what one has made is good at the other (RFC 9018).
func TestRealServers(t *testing.T) {
	for name, p := range peers {
		t.Run(name, func(t *testing.T) {
			path := zonetest.Program(t, name, p.debian)
			dir, port := loopback.Folder(t), loopback.Port()
			write(t, filepath.Join(dir, "zone"), "$ORIGIN example.org.\n$TTL 300\n@ SOA ns hostmaster 1 7200 3600 1209600 300\n@ NS ns\nns A 192.0.2.1\nwww A 192.0.2.1\n")
			conf := filepath.Join(dir, "conf")
			if err := os.WriteFile(conf, fmt.Appendf(nil, p.conf, port, dir, secretA), 0o600); err != nil {
				t.Fatal(err)
			}
			zonetest.Run(t, dir, path, append(p.args, conf)...)
			theirs := fmt.Sprintf("127.0.0.1:%d", port)
			zonetest.Await(t, theirs, "example.org.", 1)
			ours := serving(t, "require\nsecret "+secretA)["udp"]

			_, made := ask(t, "udp", theirs, clientCookie)
			if reply, same := ask(t, "udp", ours, made); reply != "NOERROR answered" || same != made {
				t.Errorf("%s's %s: we say %s, %s", name, made, reply, same)
			}
			_, made = ask(t, "udp", ours, clientCookie)
			reply, same := ask(t, "udp", theirs, made)
			if reply != "NOERROR answered" || name != "named" && same != made {
				t.Errorf("our %s: %s says %s, %s", made, name, reply, same)
			}
			if name == "named" { // it does demand a good one
				forged := made[:47] + map[bool]string{true: "1", false: "0"}[made[47] == '0']
				if reply, _ := ask(t, "udp", theirs, forged); reply != dns.RcodeToString[dns.RcodeBadCookie] {
					t.Errorf("a forged one: %s says %s", name, reply)
				}
			}
		})
	}
}
