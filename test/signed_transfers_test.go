package test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/loopback"

	"github.com/miekg/dns"
)

// above is plugins that stand above transfer in a chain, as they stand in a block.
var above = map[string]string{
	"metadata": "metadata", "cancel": "cancel 5s", "nsid": "nsid x", "bufsize": "bufsize 512", "debug": "debug", "ready": "ready 127.0.0.1:0",
	"health": "health 127.0.0.1:0", "prometheus": "prometheus 127.0.0.1:0", "errors": "errors", "log": "log", "throttle": "throttle {\nresponses 1000\n}",
	"cookie": "cookie", "local": "local", "dns64": "dns64", "any": "any", "chaos": "chaos", "loadbalance": "loadbalance",
	"rewrite": "rewrite type HINFO A", "autopath": "autopath /dev/null", "acl": "acl {\nallow net 127.0.0.0/8\n}", "cache": "cache {\nserve_stale\n}",
	"header": "header {\nresponse set ra\n}", "minimal": "minimal", "template": "template ANY ANY other.example.org {\nrcode NXDOMAIN\n}",
	"hosts": "hosts {\n192.0.2.9 other.example.net\nfallthrough\n}", "limits": "limits {\n}", "trace": "trace", "shed": "shed",
	"all of the middle": "metadata\nlog\nerrors\nloadbalance\ncache\nminimal\nnsid x\nheader {\nresponse set ra\n}\nany\nprometheus 127.0.0.1:0",
}

// TestSignedTransfersThrough: transfers of many messages, whole and in increments, are signed and intact below each plugin.
func TestSignedTransfersThrough(t *testing.T) {
	const hosts = 3000
	var text strings.Builder
	text.WriteString(updateSeed)
	for i := range hosts {
		fmt.Fprintf(&text, "host%d TXT %s\n", i, strings.Repeat("x", 40))
	}
	for _, name := range slices.Sorted(maps.Keys(above)) {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			seed := filepath.Join(dir, "db")
			if err := os.WriteFile(seed, []byte(text.String()), 0o600); err != nil {
				t.Fatal(err)
			}
			port := loopback.Port()
			start(t, fmt.Sprintf("example.org:%d {\nbind 127.0.0.1\ntsig {\nsecret %s %s\nrequire AXFR IXFR\n}\n%s\ntransfer {\nto *\n}\ndynupdate {\nfile %s\nallow %s * *\n}\n}",
				port, updateKey, updateSecret, above[name], seed, updateKey))
			addr := fmt.Sprintf("127.0.0.1:%d", port)
			lines, serial := fetched(t, addr, updateKey)
			if len(lines) != hosts+6 || serial != 10 {
				t.Fatalf("%d records, serial %d", len(lines), serial)
			}
			up := new(dns.Msg).SetUpdate("example.org.")
			for i := range 900 {
				rr, _ := dns.NewRR(fmt.Sprintf("new%d.example.org. 60 IN TXT %s", i, strings.Repeat("y", 30)))
				up.Insert([]dns.RR{rr})
			}
			if reply := sendUpdate(t, "tcp", addr, up); reply.Rcode != 0 {
				t.Fatal(reply)
			}
			m := new(dns.Msg).SetIxfr("example.org.", serial, "ns1.example.org.", "hostmaster.example.org.")
			m.SetTsig(updateKey, dns.HmacSHA256, 300, time.Now().Unix())
			tr := dns.Transfer{TsigSecret: map[string]string{updateKey: updateSecret}}
			envelopes, err := tr.In(m, addr)
			if err != nil {
				t.Fatal(err)
			}
			records, messages := 0, 0
			for e := range envelopes {
				if e.Error != nil {
					t.Fatal(e.Error)
				}
				records += len(e.RR)
				messages++
			}
			if records != 904 || messages < 2 {
				t.Errorf("%d records of what changed, in %d messages", records, messages)
			}
		})
	}
}

// TestSignedTransferBesideZones: a transfer is signed if its query is, message by message, also of a zone for which
// the tsig plugin demands nothing and signs no other reply.
func TestSignedTransferBesideZones(t *testing.T) {
	const hosts = 3000
	var text strings.Builder
	text.WriteString(updateSeed)
	for i := range hosts {
		fmt.Fprintf(&text, "host%d TXT %s\n", i, strings.Repeat("x", 40))
	}
	file := filepath.Join(t.TempDir(), "db")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, addr := start(t, fmt.Sprintf("example.org:0 {\nbind 127.0.0.1\ntsig example.net {\nsecret %s %s\n}\ntransfer {\nto *\n}\nfile %s\n}", updateKey, updateSecret, file))
	if lines, _ := fetched(t, addr, updateKey); len(lines) != hosts+6 {
		t.Errorf("%d records", len(lines))
	}
}

// TestKeyReload: keys of a file work as soon as they stand there, and no longer.
func TestKeyReload(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys")
	write := func(names ...string) {
		text := ""
		for _, n := range names {
			text += fmt.Sprintf("key %q { algorithm hmac-sha256; secret %q; };\n", n, updateSecret)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("one.")
	_, udp, _ := start(t, ".:0 {\nbind 127.0.0.1\ntsig {\nsecrets "+file+"\nreload 10ms\n}\nwhoami\n}")
	works := func(key string) bool {
		m := question("example.org.", dns.TypeA)
		m.SetTsig(key, dns.HmacSHA256, 300, time.Now().Unix())
		c := dns.Client{TsigSecret: map[string]string{key: updateSecret}}
		reply, _, err := c.Exchange(m, udp)
		return err == nil && reply.Rcode == dns.RcodeSuccess && reply.IsTsig() != nil
	}
	if !works("one.") || works("two.") {
		t.Fatal("before")
	}
	write("two.", "third-one.")
	for deadline := time.Now().Add(10 * time.Second); !works("two."); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the new key does not work")
		}
	}
	if works("one.") {
		t.Error("a key that is gone works")
	}
}
