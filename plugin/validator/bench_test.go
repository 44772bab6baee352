package validator

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// sink is a client that only looks.
type sink struct{ test.ResponseWriter }

func (*sink) WriteMsg(*dns.Msg) error { return nil }

// What was validated before costs no signature check; unchecked is the same with CD, which goes through untouched.
func BenchmarkServe(b *testing.B) {
	for name, change := range map[string]func(*dns.Msg){"validated": do, "unchecked": func(m *dns.Msg) { do(m); m.CheckingDisabled = true }} {
		b.Run(name, func(b *testing.B) {
			v, _ := lab(b, "")
			m := new(dns.Msg)
			m.SetQuestion("www.example.", dns.TypeA)
			change(m)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := v.ServeDNS(context.Background(), &sink{}, m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// benchWire asks for one name in the wire lane, again and again. before is called before each query; so often each is
// parked.
func benchWire(b *testing.B, parked int, before func(*Validator)) {
	v, s := lab(b, "")
	wired(v, s)
	m := new(dns.Msg).SetQuestion("www.example.", dns.TypeA)
	do(m)
	packet, err := m.Pack()
	if err != nil {
		b.Fatal(err)
	}
	var w wire.Reply
	var q wire.Query
	buf := make([]byte, 4096)
	serveWire(b, v, &w, &q, packet, buf)
	b.ReportAllocs()
	for b.Loop() {
		before(v)
		if n := serveWire(b, v, &w, &q, packet, buf); n != parked {
			b.Fatalf("parked %d times", n)
		}
	}
}

// What was validated before is judged where it is read, in the wire lane.
func BenchmarkGlance(b *testing.B) { benchWire(b, 0, func(*Validator) {}) }

// A validated miss below kept keys costs one check more than one that goes through unchecked (B3); bare is that check alone.
func BenchmarkMiss(b *testing.B) {
	v, _ := lab(b, "")
	serve := func(b *testing.B, change func(*dns.Msg)) {
		m := new(dns.Msg).SetQuestion("www.example.", dns.TypeA)
		change(m)
		b.ReportAllocs()
		for b.Loop() {
			v.memory.checks.forget()
			if _, err := v.ServeDNS(context.Background(), &sink{}, m); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("unchecked", func(b *testing.B) { serve(b, func(m *dns.Msg) { do(m); m.CheckingDisabled = true }) })
	b.Run("validated", func(b *testing.B) { serve(b, do) })
	b.Run("wire", func(b *testing.B) { benchWire(b, 1, func(v *Validator) { v.memory.checks.forget() }) })
	b.Run("bare", func(b *testing.B) {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			b.Fatal(err)
		}
		sum := sha256.Sum256([]byte("www.example."))
		r, s, err := ecdsa.Sign(rand.Reader, k, sum[:])
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if !ecdsa.Verify(&k.PublicKey, sum[:], r, s) {
				b.Fatal("no signature")
			}
		}
	})
}
