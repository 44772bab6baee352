package test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
)

// What a plugin misses in its block, or in its files, is found when a configuration is only looked at, in the words of a
// start.
func TestValidateRefusesAsAStart(t *testing.T) {
	damaged := filepath.Join(t.TempDir(), "damaged")
	if err := os.WriteFile(damaged, []byte("this is no state\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	lost := filepath.Join(t.TempDir(), "not there", "state")
	for name, lines := range map[string]string{
		"k8s_external without kubernetes": "k8s_external example.org",
		"autopath of no AutoPather":       "autopath @whoami",
		"transfer without the key":        "transfer {\nto 127.0.0.1\ntsig a.key\n}",
		"secondary without the key":       "secondary example.org {\ntransfer from 127.0.0.1\ntsig a.key\n}",
		"dynupdate without the key":       "dynupdate example.org {\nallow a.key * *\nforward 127.0.0.1 tsig b.key\n}",
		"validator, damaged state":        "validator {\nstate " + damaged + "\n}",
		"validator, damaged nta_file":     "validator {\nnta_file " + damaged + "\n}",
		"validator, no folder":            "validator {\nstate \"" + lost + "\"\n}",
		"dnstap without certificate":      "dnstap listen tls://127.0.0.1:0 full",
	} {
		t.Run(name, func(t *testing.T) {
			text := ".:0 {\nbind 127.0.0.1\n" + lines + "\nwhoami\n}"
			i, want := CoreDNSServer(text)
			if want == nil {
				CoreDNSServerStop(i)
				t.Fatal("it starts")
			}
			if err := dnsserver.Validate(NewInput(text)); err == nil || err.Error() != want.Error() {
				t.Errorf("got %v, a start fails with %v", err, want)
			}
		})
	}
}

// The states of different anchors do not fit into one file: the block that writes last would leave the other's out. Blocks
// with the same anchors may share one.
func TestOneStateForOneSetOfAnchors(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	const other = "\nanchor \"example.org. IN DS 1 13 2 0000000000000000000000000000000000000000000000000000000000000000\""
	text := func(state, more string) string {
		return ".:0 {\nbind 127.0.0.1\nvalidator {\nstate " + state + "\n}\nwhoami\n}\n" +
			"example.org:0 {\nbind 127.0.0.1\nvalidator {\nstate " + filepath.Dir(state) + "/./" + filepath.Base(state) + more + "\n}\nwhoami\n}\n"
	}
	want := "state \"" + state + "\" is that of other anchors in another server block: each needs a file of its own"
	if err := dnsserver.Validate(NewInput(text(state, other))); err == nil || !strings.Contains(err.Error(), ":3: "+want) {
		t.Errorf("different anchors: %v", err)
	}
	if err := dnsserver.Validate(NewInput(text(state, ""))); err != nil {
		t.Errorf("the same anchors: %v", err)
	}
	first, second := other, strings.Replace(other, "DS 1 ", "DS 2 ", 1)
	twice := strings.Replace(text(state, first+second), "validator {", "validator {"+second+first, 1)
	if err := dnsserver.Validate(NewInput(twice)); err != nil {
		t.Errorf("the same anchors in another order: %v", err)
	}
	if err := dnsserver.Validate(NewInput(strings.Replace(text(state, other), "/./", "/./other-", 1))); err != nil {
		t.Errorf("a file for each: %v", err)
	}
}

// Who only looks at a configuration asks nobody, and needs no credentials: neither a cloud's API nor etcd.
func TestValidateAsksNobody(t *testing.T) {
	var asked atomic.Int64
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			asked.Add(1)
			conn.Close()
		}
	}()
	url := "http://" + listener.Addr().String()
	cloud := filepath.Join(t.TempDir(), "cloud")
	if err := os.WriteFile(cloud, []byte(strings.ReplaceAll(`{"activeDirectoryEndpoint": "URL", "resourceManagerEndpoint": "URL"}`, "URL", "https://"+listener.Addr().String())), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AZURE_ENVIRONMENT_FILEPATH", cloud)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_REGION", "us-east-1")
	for _, lines := range []string{
		"route53 example.org:Z1 {\naws_access_key a b\naws_endpoint " + url + "\n}",
		"clouddns example.org:project:zone {\ncredentials none\nendpoint " + url + "\n}",
		"azure group:example.org {\ntenant t\nclient c\nsecret s\nsubscription s\nenvironment AZURESTACKCLOUD\n}",
		"etcd example.org {\nendpoint " + url + "\nwatch\n}",
	} {
		if err := dnsserver.Validate(NewInput(".:0 {\nbind 127.0.0.1\n" + lines + "\nwhoami\n}")); err != nil {
			t.Errorf("%s: %v", lines, err)
		}
		time.Sleep(50 * time.Millisecond) // a connection that is not to be
		if n := asked.Swap(0); n > 0 {
			t.Errorf("%s: %d connections", lines, n)
		}
	}
}
