package hosts

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/stamp"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// writeMany writes a file with n names, each with an address of its own.
func writeMany(tb testing.TB, n int) (file string) {
	tb.Helper()
	file = filepath.Join(tb.TempDir(), "hosts")
	f, err := os.Create(file)
	if err != nil {
		tb.Fatal(err)
	}
	w := bufio.NewWriter(f)
	for i := range n {
		fmt.Fprintf(w, "10.%d.%d.%d host-%d.rack%d.example.org\n", i>>16&255, i>>8&255, i&255, i, i%1000)
	}
	if err := w.Flush(); err != nil {
		tb.Fatal(err)
	}
	f.Close()
	return file
}

// A million names, asked in an order that no cache of the processor knows.
func BenchmarkMany(b *testing.B) {
	const n, asked = 1 << 20, 1 << 16
	var h plugin.WireHandler
	for name, make := range map[string]func(i int) (string, uint16){
		"name":    func(i int) (string, uint16) { return fmt.Sprintf("host-%d.rack%d.example.org.", i, i%1000), dns.TypeA },
		"missing": func(i int) (string, uint16) { return fmt.Sprintf("guest-%d.rack%d.example.org.", i, i%1000), dns.TypeA },
		"address": func(i int) (string, uint16) {
			return fmt.Sprintf("%d.%d.%d.10.in-addr.arpa.", i&255, i>>8&255, i>>16&255), dns.TypePTR
		},
	} {
		b.Run(name, func(b *testing.B) {
			if h == nil {
				h = serving(b, "hosts "+writeMany(b, n))
			}
			packets := [asked][]byte{}
			for i := range packets {
				qname, typ := make(i * 7919 % n)
				packets[i], _ = new(dns.Msg).SetQuestion(qname, typ).Pack()
			}
			var q wire.Query
			var w wire.Reply
			buf := [512]byte{}
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				q.Parse(packets[i%asked])
				i++
				w.Reset(buf[:])
				if h.ServeWire(context.Background(), &w, &q) != wire.Done {
					b.Fatal("not answered")
				}
			}
		})
	}
}

// What a file of a hundred thousand names takes to read, and the memory for it.
func BenchmarkRead(b *testing.B) {
	const n = 100000
	h := serving(b, "hosts "+writeMany(b, n))
	b.ReportAllocs()
	for b.Loop() {
		h.seen = stamp.Stamp{}
		h.readHosts()
	}
}
