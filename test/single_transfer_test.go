package test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coredns/coredns/pb"
	"github.com/coredns/coredns/plugin/pkg/loopback"

	"github.com/miekg/dns"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// Over HTTP and gRPC a reply is one message (RFC 8484 §6): a zone that fits into it comes whole, any other is refused, and
// no part of it passes for all.
func TestTransfersInOneMessage(t *testing.T) {
	dir, web, call := t.TempDir(), loopback.Port(), loopback.Port()
	for name, hosts := range map[string]int{"small": 10, "middle": 1500, "large": 5000} {
		text := fmt.Sprintf("$TTL 60\n@ IN SOA ns h 1 2 3 4 5\n@ IN NS ns\n$GENERATE 1-%d host-$ IN A 192.0.2.1\n", hosts)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	start(t, fmt.Sprintf("https://.:%d grpc://.:%d {\nbind 127.0.0.1\nroot %s\nfile small small.example.org\nfile middle middle.example.org\nfile large large.example.org\ntransfer {\nto *\n}\n}",
		web, call, dir))
	conn, err := grpc.NewClient(fmt.Sprintf("127.0.0.1:%d", call), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	client := http.Client{Timeout: 10 * time.Second}
	carriers := map[string]func([]byte) ([]byte, error){
		"https": func(b []byte) ([]byte, error) {
			r, err := client.Post(fmt.Sprintf("http://127.0.0.1:%d/dns-query", web), "application/dns-message", bytes.NewReader(b))
			if err != nil {
				return nil, err
			}
			defer r.Body.Close()
			return io.ReadAll(r.Body)
		},
		"grpc": func(b []byte) ([]byte, error) {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			r, err := pb.NewDnsServiceClient(conn).Query(ctx, &pb.DnsPacket{Msg: b})
			return r.GetMsg(), err
		},
	}
	for name, want := range map[string]string{"small": "NOERROR 13", "middle": "NOERROR 1503", "large": "REFUSED 0"} {
		for carrier, carry := range carriers {
			for _, q := range []*dns.Msg{new(dns.Msg).SetAxfr(name + ".example.org."), new(dns.Msg).SetIxfr(name+".example.org.", 0, "a.", "b.")} {
				b, err := q.Pack()
				if err != nil {
					t.Fatal(err)
				}
				m := new(dns.Msg)
				if b, err = carry(b); err == nil {
					err = m.Unpack(b)
				}
				if got := fmt.Sprintf("%s %d", dns.RcodeToString[m.Rcode], len(m.Answer)); err != nil || got != want {
					t.Errorf("%s over %s: %s %v, want %s", name, carrier, got, err, want)
				}
			}
		}
	}
}
